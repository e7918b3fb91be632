/* SPDX-License-Identifier: MIT
 *
 * The kernel that wg_tiles.c times: its workgroups reduce tiles of f32.
 */
#ifndef IRIS_BENCH_WG_TILES_KERNELS_H
#define IRIS_BENCH_WG_TILES_KERNELS_H

#include <iris/device.h>
#include <iris/device/wg_ccl_tile.h>

enum wg_tiles_how { WG_TILES_ANY, WG_TILES_ONE_SHOT, WG_TILES_TWO_SHOT };

struct wg_tiles_args {
    iris_ccl_device_t handle;
    float *in; /* `high` by `wide` tiles of `rows` by `cols` elements */
    float *out;
    uint32_t high;
    uint32_t wide;
    uint32_t rows;
    uint32_t cols;
    int32_t how; /* enum wg_tiles_how */
};

IRIS_DEVICE iris_tile_t wg_tiles_at(const struct wg_tiles_args *args,
                                    float *data, uint32_t t)
{
    uint32_t width = args->wide * args->cols;
    iris_tile_t all =
        iris_tile(data, args->high * args->rows, width, width, sizeof *data);

    return iris_tile_block(all, t / args->wide, t % args->wide, args->rows,
                           args->cols);
}

IRIS_KERNEL(wg_tiles_reduce, struct wg_tiles_args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);
    uint32_t tiles = args->high * args->wide;

    for (uint32_t t = wg.id; t < tiles; t += wg.num_wgs) {
        iris_tile_t in = wg_tiles_at(args, args->in, t);
        iris_tile_t out = wg_tiles_at(args, args->out, t);

        if (args->how == WG_TILES_ANY) {
            iris_wg_tile_all_reduce(wg, &ccl, in, out, IRIS_DTYPE_F32,
                                    IRIS_REDUCE_SUM);
        } else if (args->how == WG_TILES_ONE_SHOT) {
            iris_wg_tile_all_reduce_one_shot(wg, &ccl, in, out, IRIS_DTYPE_F32,
                                             IRIS_REDUCE_SUM);
        } else {
            iris_wg_tile_all_reduce_two_shot(wg, &ccl, in, out, IRIS_DTYPE_F32,
                                             IRIS_REDUCE_SUM);
        }
    }
    iris_wg_ccl_end(wg, &ccl);
}

#endif /* IRIS_BENCH_WG_TILES_KERNELS_H */
