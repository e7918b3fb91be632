/* SPDX-License-Identifier: MIT
 *
 * Kernels whose workgroups do collectives, for scripts/amd-emu. run.py knows the
 * kernels by their names.
 */
#ifndef EMU_WG_CCL_H
#define EMU_WG_CCL_H

#include <iris/device.h>
#include <iris/device/wg_ccl_tile.h>

#include "wg_args.h"

/* The kernel does its collective twice, so that the second one finds what the
 * first one left: of other elements, and into another part of `out`. */
#define EMU_WG_TURNS 2u

/* Where a turn of a workgroup begins in `in` and in `out`. */
IRIS_DEVICE char *emu_wg_at(iris_wg_t wg, void *data, uint32_t turn)
{
    return (char *)data + (EMU_WG_TURNS * wg.id + turn) * EMU_WG_BYTES;
}

/* A tile whose rows may have a gap behind them. */
IRIS_DEVICE iris_tile_t emu_wg_tile(const struct emu_wg_args *args, void *data,
                                    uint32_t parts, uint32_t gap)
{
    return iris_tile(data, parts * args->rows, (uint32_t)args->count,
                     (uint32_t)args->count + gap * args->gaps, sizeof(float));
}

/* clang-format off */
/* emu_wgccl_<name>: a collective of args->count elements or bytes between p and
 * q, by the handle `ccl`. */
#define WG_CCL(name, ...)                                                      \
    IRIS_KERNEL(emu_wgccl_##name, struct emu_wg_args)                          \
    {                                                                          \
        iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);       \
                                                                               \
        for (uint32_t turn = 0; turn < EMU_WG_TURNS; turn++) {                 \
            char *p = emu_wg_at(wg, args->in, turn);                           \
            char *q = emu_wg_at(wg, args->out, turn);                          \
                                                                               \
            __VA_ARGS__;                                                       \
        }                                                                      \
        iris_wg_ccl_end(wg, &ccl);                                             \
        ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);                     \
        iris_wg_ccl_end(wg, &ccl); /* a use without a step */                  \
    }
WG_CCL(reduce_f32, iris_wg_all_reduce(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F32, IRIS_REDUCE_SUM))
WG_CCL(oneshot_bf16, iris_wg_all_reduce_one_shot(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_BF16, IRIS_REDUCE_AVG))
WG_CCL(oneshot_f8e5m2, iris_wg_all_reduce_one_shot(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F8E5M2, IRIS_REDUCE_SUM))
WG_CCL(twoshot_f8e4m3, iris_wg_all_reduce_two_shot(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F8E4M3, IRIS_REDUCE_SUM))
WG_CCL(oneshot_i64, iris_wg_all_reduce_one_shot(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_I64, IRIS_REDUCE_MIN))
WG_CCL(twoshot_f32, iris_wg_all_reduce_two_shot(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F32, IRIS_REDUCE_MAX))
WG_CCL(twoshot_f16, iris_wg_all_reduce_two_shot(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F16, IRIS_REDUCE_SUM))
WG_CCL(ring_f32, iris_wg_all_reduce_ring(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F32, IRIS_REDUCE_SUM))
WG_CCL(atomic_f32, iris_wg_all_reduce_atomic(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F32))
WG_CCL(scatter_f32, iris_wg_reduce_scatter(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F32, IRIS_REDUCE_SUM))
WG_CCL(allgather_u8, iris_wg_all_gather(wg, &ccl, p, q, args->count))
WG_CCL(gather_u8, iris_wg_gather(wg, &ccl, p, q, args->count, args->root))
WG_CCL(alltoall_u8, iris_wg_all_to_all(wg, &ccl, p, q, args->count))
WG_CCL(broadcast_u8, iris_wg_broadcast(
    wg, &ccl, p, q, args->count, args->root))
WG_CCL(deal_u8, iris_wg_scatter(wg, &ccl, p, q, args->count, args->root))
WG_CCL(root_f32, iris_wg_reduce(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_F32, IRIS_REDUCE_SUM, args->root))
WG_CCL(root_bf16, iris_wg_reduce(
    wg, &ccl, p, q, args->count, IRIS_DTYPE_BF16, IRIS_REDUCE_MAX, args->root))

/* The same on tiles of args->rows rows and args->count columns, with a part for
 * each of two members where there are parts. */
#define WG_TILE(name, in_parts, out_parts, ...)                                \
    WG_CCL(name,                                                               \
        iris_tile_t in = emu_wg_tile(args, p, in_parts, 3);                    \
        iris_tile_t out = emu_wg_tile(args, q, out_parts, 1);                  \
        __VA_ARGS__)
WG_TILE(tilereduce_f32, 1, 1, iris_wg_tile_all_reduce(
    wg, &ccl, in, out, IRIS_DTYPE_F32, IRIS_REDUCE_SUM))
WG_TILE(tileoneshot_f32, 1, 1, iris_wg_tile_all_reduce_one_shot(
    wg, &ccl, in, out, IRIS_DTYPE_F32, IRIS_REDUCE_SUM))
WG_TILE(tiletwoshot_f32, 1, 1, iris_wg_tile_all_reduce_two_shot(
    wg, &ccl, in, out, IRIS_DTYPE_F32, IRIS_REDUCE_SUM))
WG_TILE(tilescatter_f32, 2, 1, iris_wg_tile_reduce_scatter(
    wg, &ccl, in, out, IRIS_DTYPE_F32, IRIS_REDUCE_SUM))
WG_TILE(tileallgather_f32, 1, 2, iris_wg_tile_all_gather(wg, &ccl, in, out))
WG_TILE(tilegather_f32, 1, 2, iris_wg_tile_gather(
    wg, &ccl, in, out, args->root))
WG_TILE(tilealltoall_f32, 2, 2, iris_wg_tile_all_to_all(wg, &ccl, in, out))
WG_TILE(tilebroadcast_f32, 1, 1, iris_wg_tile_broadcast(
    wg, &ccl, in, out, args->root))
WG_TILE(tiledeal_f32, 2, 1, iris_wg_tile_scatter(
    wg, &ccl, in, out, args->root))
WG_TILE(tileroot_f32, 1, 1, iris_wg_tile_reduce(
    wg, &ccl, in, out, IRIS_DTYPE_F32, IRIS_REDUCE_SUM, args->root))
#undef WG_TILE
#undef WG_CCL
/* clang-format on */

#endif /* EMU_WG_CCL_H */
