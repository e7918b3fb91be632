/* SPDX-License-Identifier: MIT
 *
 * The library's kernels for one type and one operation each, which compile in a
 * tenth of the time. AMD_NARROW_<header> picks those of a header.
 */
#ifndef AMD_NARROW_H
#define AMD_NARROW_H

#include <iris/device/wg/kernel.h>

/* Headers define bodies only; NARROW makes the kernel, of arguments some of
 * which are constants. */
#undef IRIS_KERNEL
#define IRIS_KERNEL(name, ARGS) \
    IRIS_DEVICE void name##_body(iris_wg_t wg, const ARGS *args)
#define NARROW(name, ARGS, CONSTANTS)                                          \
    extern "C" __global__ void IRIS_D_MAX_LANES(512) name##_gpu(ARGS args)     \
    {                                                                          \
        iris_wg_t wg = {iris_d_wg_id(), iris_d_num_wgs(), iris_d_num_lanes()}; \
        CONSTANTS;                                                             \
        name##_body(wg, &args);                                                \
    }

#ifdef AMD_NARROW_ccl_reduce
#include <iris/device/kernels/ccl_reduce.h>
NARROW(iris_k_ccl_reduce, struct iris_ccl_reduce_args,
       (args.kind = IRIS_D_KIND_f32, args.op = IRIS_REDUCE_SUM))
#endif

#ifdef AMD_NARROW_ccl_matrix
#include <iris/device/kernels/ccl_matrix.h>
NARROW(iris_k_ccl_matrix, struct iris_ccl_reduce_args,
       (args.kind = IRIS_D_KIND_f32, args.op = IRIS_REDUCE_SUM))
#endif

#ifdef AMD_NARROW_ccl_move
#include <iris/device/kernels/ccl_move.h>
NARROW(iris_k_ccl_move, struct iris_ccl_move_args, (void)0)
#endif

#ifdef AMD_NARROW_ccl_near /* kernels with the workspace as arguments */
#include <iris/device/kernels/ccl_move.h>
#include <iris/device/kernels/ccl_packet.h>
#include <iris/device/kernels/ccl_reduce.h>
NARROW(iris_k_ccl_reduce_f32_sum, struct iris_ccl_reduce_args, (void)0)
NARROW(iris_k_ccl_move_near, struct iris_ccl_move_args, (void)0)
NARROW(iris_k_ccl_once_f32_sum, struct iris_ccl_packet_args, (void)0)
#endif

#ifdef AMD_NARROW_ccl_packet
#include <iris/device/kernels/ccl_packet.h>
NARROW(iris_k_ccl_packet, struct iris_ccl_packet_args,
       (args.kind = IRIS_D_KIND_f32, args.op = IRIS_REDUCE_SUM,
        args.exchange = IRIS_CCL_REDUCE_TWO))
#endif

#ifdef AMD_NARROW_ccl_spread /* that kernel's broadcast */
#define iris_k_ccl_packet_body iris_k_ccl_spread_packet_body
#include <iris/device/kernels/ccl_packet.h>
NARROW(iris_k_ccl_spread_packet, struct iris_ccl_packet_args,
       (args.kind = IRIS_D_KIND_f32, args.exchange = IRIS_CCL_SPREAD))
#endif

#ifdef AMD_NARROW_ccl_unordered
#include <iris/device/kernels/ccl_unordered.h>
NARROW(iris_k_ccl_unordered, struct iris_ccl_reduce_args,
       (args.kind = IRIS_D_KIND_f32, args.op = IRIS_REDUCE_SUM))
#endif

#ifdef AMD_NARROW_ccl_pairs /* a piece that is sent, and one that is received */
#include <iris/device/kernels/ccl_pairs.h>
IRIS_KERNEL(iris_k_ccl_send_pairs, struct iris_ccl_pairs_args)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(&args->start, 0);

    iris_d_pair_send(wg, &ccl, args, 0, 0);
}
IRIS_KERNEL(iris_k_ccl_receive_pairs, struct iris_ccl_pairs_args)
{
    iris_d_ccl_t ccl = iris_d_ccl_of(&args->start, 0);

    iris_d_pair_receive(wg, &ccl, args, 0, 0);
}
NARROW(iris_k_ccl_send_pairs, struct iris_ccl_pairs_args, (void)0)
NARROW(iris_k_ccl_receive_pairs, struct iris_ccl_pairs_args, (void)0)
#endif

#ifdef AMD_NARROW_fill
#include <iris/device/kernels/fill.h>
NARROW(iris_k_fill, struct iris_fill_args, (void)0)
NARROW(iris_k_arange_f16, struct iris_row_args, (void)0)
NARROW(iris_k_linspace_f64, struct iris_row_args, (void)0)
#endif

#ifdef AMD_NARROW_random
#include <iris/device/kernels/random.h>
NARROW(iris_k_uniform_f32, struct iris_random_args, (void)0)
NARROW(iris_k_uniform_f16, struct iris_random_args, (void)0)
NARROW(iris_k_uniform_f64, struct iris_random_args, (void)0)
#endif

#ifdef AMD_NARROW_matmul
#include <iris/device/kernels/matmul.h>
NARROW(iris_k_matmul_f32, struct iris_matmul_args, (void)0)
#endif

#ifdef AMD_NARROW_ccl_wg /* a kernel of a program, whose workgroups reduce */
#include <iris/device/wg_ccl.h>
struct amd_wg_args {
    iris_ccl_device_t handle;
    const void *in;
    void *out;
    uint64_t count;
};
IRIS_KERNEL(iris_k_ccl_wg_packet, struct amd_wg_args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);

    iris_wg_all_reduce_one_shot(wg, &ccl, args->in, args->out, args->count,
                                IRIS_DTYPE_F32, IRIS_REDUCE_SUM);
    iris_wg_ccl_end(wg, &ccl);
}
NARROW(iris_k_ccl_wg_packet, struct amd_wg_args, (void)0)

IRIS_KERNEL(iris_k_ccl_wg_ring, struct amd_wg_args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);

    iris_wg_all_reduce_ring(wg, &ccl, args->in, args->out, args->count,
                            IRIS_DTYPE_F32, IRIS_REDUCE_SUM);
}
NARROW(iris_k_ccl_wg_ring, struct amd_wg_args, (void)0)

/* Its workspace is given back, and taken again. */
IRIS_KERNEL(iris_k_ccl_wg_end, struct amd_wg_args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);

    iris_wg_ccl_end(wg, &ccl);
    ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);
    ((uint64_t *)args->out)[iris_d_lane()] = ccl.ccl.epoch;
}
NARROW(iris_k_ccl_wg_end, struct amd_wg_args, (void)0)
#endif

#ifdef AMD_NARROW_ccl_tile /* tiles that go through stages, and a word behind */
#include <iris/device/wg_ccl_tile.h>
struct amd_tile_args {
    iris_ccl_device_t handle;
    iris_tile_t in;
    iris_tile_t out;
    const int16_t *beside; /* what other lanes may have stored in out */
    int32_t *behind;
};
IRIS_KERNEL(iris_k_ccl_tile_wg_packet, struct amd_tile_args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);

    iris_wg_tile_all_reduce_one_shot(wg, &ccl, args->in, args->out,
                                     IRIS_DTYPE_F32, IRIS_REDUCE_SUM);
    args->behind[iris_d_lane()] = args->beside[iris_d_lane()];
}
NARROW(iris_k_ccl_tile_wg_packet, struct amd_tile_args, (void)0)
#endif

#ifdef AMD_NARROW_ccl_batch /* with IRIS_MAX_LANES at most 256 */
#include <iris/device/wg_ccl.h>
_Static_assert(IRIS_CCL_WG_BATCHES, "lanes with several packets each");
IRIS_KERNEL(iris_k_ccl_batch_packet, struct iris_ccl_packet_args)
{
    iris_d_ccl_step_t step;

    step.ccl = iris_d_ccl_begin(wg, &args->start);
    iris_d_ccl_step_init(&step, args, NULL);
    iris_d_ccl_next_piece(&step, args, 0);
    iris_d_ccl_exchange_batches(wg, &step, args);
    iris_d_ccl_end(wg, &step.ccl);
}
NARROW(iris_k_ccl_batch_packet, struct iris_ccl_packet_args,
       (args.kind = IRIS_D_KIND_f32, args.op = IRIS_REDUCE_SUM,
        args.exchange = IRIS_CCL_REDUCE_ONE))
#endif

#endif /* AMD_NARROW_H */
