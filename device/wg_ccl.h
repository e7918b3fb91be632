/* SPDX-License-Identifier: MIT
 *
 * Collectives of workgroups inside a kernel: one workgroup of each member meets
 * those with the same index. iris/ccl_device.h makes the handle for it.
 *
 * Each index has a workspace for one workgroup (ccl_args.h), so that workgroups
 * of one rank need not wait for each other. In it a workgroup takes the steps
 * of collectives by packets (ccl_exchange.h). As there, no barrier comes before
 * or after, and the result has the bits of those variants of iris/ccl.h that
 * keep the group's order. If the group has ranks of several nodes, it takes the
 * steps of ccl_far.h instead: each member sends its part to all others, which
 * combine it in the same order. wg_ccl_tile.h has the same collectives for
 * tiles.
 */
#ifndef IRIS_DEVICE_WG_CCL_H
#define IRIS_DEVICE_WG_CCL_H

#include <iris/device/wg/ccl_handle.h>
#include <iris/device/kernels/ccl_batch.h>
#include <iris/device/kernels/ccl_far.h>
#include <iris/device/kernels/ccl_loose.h>
#include <iris/device/kernels/ccl_watch.h>

/** A workgroup's use of a handle, from iris_wg_ccl_begin() to
 *  iris_wg_ccl_end(), with its current step. Every lane has a copy. */
typedef struct iris_wg_ccl {
    iris_d_ccl_t ccl;
    struct iris_ccl_start start;
    uint64_t piece;
    uint32_t before; /* the low half of the step before its first */
    uint32_t far;
} iris_wg_ccl_t;

/* Whether the group has ranks of several nodes. Kernels of GPUs without code for
 * that pay nothing. */
IRIS_DEVICE iris_bool_t iris_d_wg_ccl_is_far(const iris_wg_ccl_t *wg_ccl)
{
    return (IRIS_ON_CPU || IRIS_FAR) && IRIS_UNLIKELY(wg_ccl->far);
}

/* ---- Calls of a workgroup --------------------------------------------------
 *
 * All lanes of the workgroup call the functions here together, with the same
 * arguments, outside lane loops.
 *
 * @use workgroup; blocks
 * @param wg_ccl  result of iris_wg_ccl_begin()
 * @param in  elements that the call reads
 * @param out  elements that the call writes */

/** Begins to use a handle as workgroup `index`, less than the handle's max_wgs.
 *  No two workgroups of a rank may use the same index at the same time.
 *  @use never blocks
 *  @param index  number of this workgroup among those of the handle, from 0 */
IRIS_DEVICE iris_wg_ccl_t iris_wg_ccl_begin(iris_wg_t wg,
                                            const iris_ccl_device_t *handle,
                                            uint32_t index)
{
    iris_wg_ccl_t wg_ccl;
    iris_d_ccl_t *ccl = &wg_ccl.ccl;

    (void)wg;
    wg_ccl.piece = handle->piece;
    wg_ccl.start.context = handle->context;
    wg_ccl.start.what.what = 0;
    wg_ccl.start.what.sizes[0] = 0;
    wg_ccl.start.what.sizes[1] = 0;
    wg_ccl.start.what.sizes[2] = 0;
    wg_ccl.start.call = 0;
    wg_ccl.start.steps = 0;
    wg_ccl.start.space =
        (struct iris_ccl_space *)(void *)((char *)handle->spaces +
                                          index * handle->stride);
    *ccl = iris_d_ccl_of(&wg_ccl.start, 0);
    ccl->start = NULL; /* each call has its own start */
    wg_ccl.before = 0;
    wg_ccl.far = handle->far;
#if IRIS_ON_CPU || IRIS_FAR
    if (iris_d_wg_ccl_is_far(&wg_ccl)) {
        ccl->epoch = iris_d_far_begin(wg, ccl->dev, &wg_ccl.start);
        return wg_ccl;
    }
#endif
#if IRIS_ON_CPU
    ccl->epoch = iris_d_or_u64(iris_d_ccl_epoch(ccl, 0), IRIS_CCL_BUSY,
                               iris_d_order(IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM));
#else /* this kernel may have written it, so no cache may have it */
    ccl->epoch =
        iris_d_load_u64(iris_d_ccl_epoch(ccl, 0), iris_d_ccl_relaxed());
#endif
    wg_ccl.before = (uint32_t)ccl->epoch;
    if (IRIS_UNLIKELY((ccl->epoch & IRIS_CCL_BUSY) != 0)) {
        iris_d_ccl_differ(ccl, ccl->index);
    }
    return wg_ccl;
}

/** Ends the use of the handle. This kernel or another one may begin again.
 *  @use never blocks */
IRIS_DEVICE void iris_wg_ccl_end(iris_wg_t wg, iris_wg_ccl_t *wg_ccl)
{
    wg.id = 0;
    wg.num_wgs = 1;
#if IRIS_ON_CPU || IRIS_FAR
    if (iris_d_wg_ccl_is_far(wg_ccl)) {
        iris_d_far_end(wg, wg_ccl->ccl.space);
        iris_wg_barrier(wg);
        return;
    }
#endif
    wg_ccl->ccl.before = wg_ccl->before;
    iris_d_ccl_end(wg, &wg_ccl->ccl);
    iris_wg_barrier(wg);
}

/* The call's number, computed as on the host. */
IRIS_DEVICE uint32_t iris_d_wg_ccl_number(const struct iris_dev_call *what)
{
    uint64_t hash = (what->what ^ 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;

    hash = (hash ^ hash >> 32 ^ what->sizes[0]) * 0xd6e8feb86659fd93u;
    return (uint32_t)(hash ^ hash >> 32);
}

/* Begins a call. Clears the flags if the call's steps would take them past the
 * last value. */
IRIS_DEVICE iris_d_ccl_t iris_d_wg_ccl_call(iris_wg_t wg,
                                            const iris_wg_ccl_t *wg_ccl,
                                            const struct iris_ccl_start *start)
{
    const uint32_t last = (1u << IRIS_CCL_EPOCH_BITS) - 1;
    iris_d_ccl_t ccl = wg_ccl->ccl;

    ccl.start = start;
    ccl.call = start->call;
    ccl.before = (uint32_t)ccl.epoch;
    if (IRIS_UNLIKELY(last - (ccl.before & last) < start->steps)) {
        ccl.epoch = iris_d_ccl_begin_anew(wg, *start, ccl.epoch);
    }
    return ccl;
}

/* Every member sends its part to the root, so the root hears from all of them,
 * and keeps their parts or combines them. The other members meet each other, as
 * in a broadcast. */
IRIS_DEVICE void iris_d_wg_ccl_bring(iris_wg_t wg,
                                     const iris_d_ccl_step_t *step,
                                     const struct iris_ccl_packet_args *args)
{
    uint32_t root = (uint32_t)args->root;
    iris_bool_t own = step->ccl.index == root;
    iris_bool_t combines = args->exchange == IRIS_CCL_BRING_SUMS;
    iris_d_ccl_share_t all = {0, step->bytes};
    char *slot = iris_d_ccl_slots(step, root) + step->mine;

    IRIS_LANES (wg, u, step->units) {
        if (u < iris_d_ccl_units(step->bytes)) {
            uint64_t data = iris_d_ccl_take(step->in, step->bytes, u);

            if (!own) {
                iris_d_ccl_send(step, slot, u, data);
            } else if (!combines) {
                iris_d_ccl_give(step->out + root * step->part, step->bytes, u,
                                data);
            }
        }
    }
    iris_d_ccl_greet(wg, &step->ccl, step->ccl.count);
    if (own && !combines) {
        iris_d_ccl_collect(wg, step, 0);
    }
    IRIS_LANES (wg, u, own && combines ? step->units : 0) {
        if (u < iris_d_ccl_units(step->bytes)) {
            iris_d_ccl_exchange_unit(step, args, all, u);
        }
    }
}

/* One step of a workgroup's collective. */
IRIS_DEVICE void iris_d_wg_ccl_step(iris_wg_t wg, iris_d_ccl_step_t *step,
                                    const struct iris_ccl_packet_args *args)
{
    if (args->exchange == IRIS_CCL_BRING ||
        args->exchange == IRIS_CCL_BRING_SUMS) {
        iris_d_wg_ccl_bring(wg, step, args);
    } else if (args->exchange == IRIS_CCL_DEAL) {
        step->part = 0; /* `out` has one part */
        iris_d_ccl_spread(wg, step, (uint32_t)args->root, args->bytes);
    } else if (iris_d_ccl_is_whole(step, args->exchange)) {
        iris_d_ccl_exchange_batches(wg, step, args);
    } else {
        iris_d_ccl_one_step(wg, step, args);
    }
}

/* A call without elements: the members only meet, so that one with another call
 * is found. */
IRIS_DEVICE void iris_d_wg_ccl_meet(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                    struct iris_ccl_start *start)
{
    iris_d_ccl_t ccl;

    start->steps = 1;
    ccl = iris_d_wg_ccl_call(wg, wg_ccl, start);
    ccl.epoch++;
    iris_d_ccl_greet(wg, &ccl, ccl.count);
    iris_d_ccl_go_on(&ccl);
    wg_ccl->ccl.epoch = ccl.epoch;
}

#if IRIS_ON_CPU || IRIS_FAR
/* One collective of members that do not all map each other's heaps. */
IRIS_D_FAR_RARE void iris_d_wg_ccl_far(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                       const struct iris_ccl_packet_args *args)
{
    int how = args->exchange;
    iris_bool_t brings = how == IRIS_CCL_BRING || how == IRIS_CCL_BRING_SUMS;
    iris_bool_t deals = how == IRIS_CCL_DEAL;
    iris_bool_t parts =
        deals || how == IRIS_CCL_REDUCE_PARTS || how == IRIS_CCL_SWAP;
    uint64_t bytes = args->bytes, part = parts ? bytes : 0, at = 0;
    struct iris_ccl_far_args far = {
        args->start, NULL, NULL, bytes,      0,        0, 0, 0,          part,
        bytes,       -1,   0,    args->kind, args->op, 0, 0, args->scale};
    iris_d_far_step_t step = {0, 0, 1, 0, NULL, NULL, 0, part, bytes, brings};

    far.piece = 2 * wg_ccl->piece;
    far.rows = bytes != 0;
    far.reduces = how <= IRIS_CCL_REDUCE_PARTS || how == IRIS_CCL_BRING_SUMS;
    if (brings || deals || how == IRIS_CCL_SPREAD) {
        far.root = args->root;
    }
    step.number = wg_ccl->ccl.epoch;
    if (iris_wg_leader(wg)) {
        *iris_d_far_what(args->start.space) = args->start.what;
    }
    do { /* a call without elements only meets */
        step.bytes = bytes - at < far.piece ? bytes - at : far.piece;
        step.in = (const char *)args->in + at;
        step.out = (char *)args->out + at;
        iris_d_far_step(wg, wg_ccl->ccl.dev, &far, &step);
        at += step.bytes;
    } while (at < bytes);
    iris_wg_barrier(wg); /* all lanes see `out` */
    wg_ccl->ccl.epoch = step.number;
}
#endif

/* One collective with `bytes` bytes for each part. A step begins when all lanes
 * have ended the previous step, in which they heard from all members. So two
 * parities suffice however lanes divide the units, and members may have
 * different numbers of lanes. */
IRIS_DEVICE void iris_d_wg_ccl(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                               struct iris_ccl_packet_args *args)
{
    IRIS_UNUSED struct iris_cpu_wg *cpu = IRIS_D_SELF();
    IRIS_UNUSED iris_d_collective_t collective = {NULL, 0, NULL, 0, 0};
    iris_d_ccl_step_t step;

    wg.id = 0;
    wg.num_wgs = 1;
    iris_wg_barrier(wg); /* other lanes' writes to `in` are visible */
    if (args->bytes == 0 && !iris_d_wg_ccl_is_far(wg_ccl)) {
        iris_d_wg_ccl_meet(wg, wg_ccl, &args->start);
        return;
    }
    IRIS_D_HOOK_CPU(cpu, collective = iris_d_before_collective(
                             cpu, iris_d_wg_parts(&wg_ccl->ccl, args)));
#if IRIS_ON_CPU || IRIS_FAR
    if (iris_d_wg_ccl_is_far(wg_ccl)) {
        iris_d_wg_ccl_far(wg, wg_ccl, args);
        IRIS_D_HOOK_CPU(cpu, iris_d_after_collective(cpu, &collective));
        return;
    }
#endif
    args->piece = wg_ccl->piece < args->bytes ? wg_ccl->piece : args->bytes;
    args->start.steps =
        (uint32_t)((args->bytes + args->piece - 1) / args->piece);
    step.ccl = iris_d_wg_ccl_call(wg, wg_ccl, &args->start);
    iris_d_ccl_step_init(&step, args, NULL);
    for (size_t done = 0; done < args->bytes; done += args->piece) {
        iris_d_ccl_next_piece(&step, args, done);
        iris_d_wg_ccl_step(wg, &step, args);
        iris_wg_barrier(wg);
        iris_d_ccl_go_on(&step.ccl);
    }
    wg_ccl->ccl.epoch = step.ccl.epoch;
    IRIS_D_HOOK_CPU(cpu, iris_d_after_collective(cpu, &collective));
}

/* If a workgroup would send this number of bytes or more in one shot, two shots
 * are worth the second wait. */
#define IRIS_D_WG_TWO_SHOT_BYTES ((size_t)16384)

/* The exchange for `bytes` bytes of each member. Two members send the same
 * number of bytes in one shot and in two. */
IRIS_DEVICE enum iris_ccl_exchange iris_d_wg_shots(const iris_wg_ccl_t *wg_ccl,
                                                   size_t bytes)
{
    size_t peers = wg_ccl->ccl.count - 1;

    return peers > 1 && bytes * peers >= IRIS_D_WG_TWO_SHOT_BYTES
               ? IRIS_CCL_REDUCE_TWO
               : IRIS_CCL_REDUCE_ONE;
}

/* The factor of a reduction's results. */
IRIS_DEVICE struct iris_ccl_scale iris_d_wg_scale(const iris_wg_ccl_t *wg_ccl,
                                                  iris_reduce_op_t op)
{
    struct iris_ccl_scale scale;

    scale.f64 = 1;
    if (op == IRIS_REDUCE_AVG) {
        scale.f64 = iris_d_value_f64(
            (uint64_t)iris_d_ccl_word(&wg_ccl->ccl.space->average));
    }
    scale.f32 = (float)scale.f64;
    scale.unused = 0;
    return scale;
}

IRIS_DEVICE struct iris_ccl_packet_args
iris_d_wg_ccl_args(const iris_wg_ccl_t *wg_ccl, const void *in, void *out,
                   enum iris_ccl_exchange exchange, uint64_t what)
{
    struct iris_ccl_packet_args args;

    args.start = wg_ccl->start;
    args.start.what.what = what;
    args.in = in;
    args.out = out;
    args.bytes = 0;
    args.piece = 0;
    args.kind = 0;
    args.op = 0;
    args.exchange = (int32_t)exchange;
    args.root = 0;
    args.to_root = 0;
    args.scale = iris_d_wg_scale(wg_ccl, IRIS_REDUCE_SUM);
    return args;
}

/* Values of enum iris_ccl_variant in reports of mismatches, and of enum
 * iris_compared_op for a collective that only workgroups have. */
enum {
    IRIS_D_WG_TWO_SHOT = 2,
    IRIS_D_WG_ATOMIC = 9,
    IRIS_D_WG_RING = 11,
    IRIS_D_WG_GATHER = 9,
    IRIS_D_WG_REDUCE = 10,
    IRIS_D_WG_SCATTER = 12,
};

IRIS_DEVICE void iris_d_wg_ccl_reduce(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                      struct iris_ccl_packet_args *args,
                                      size_t count, iris_dtype_t dtype,
                                      iris_reduce_op_t op)
{
    size_t each = (size_t)iris_d_reduced_as(dtype, op, &args->kind);

    if (each == 0) { /* there is no such reduction */
        return;
    }
    args->op = (int32_t)(op == IRIS_REDUCE_AVG ? IRIS_REDUCE_SUM : op);
    args->scale = iris_d_wg_scale(wg_ccl, op);
    args->bytes =
        count * each * iris_d_kind_bytes((enum iris_d_kind)args->kind);
    if (args->exchange == IRIS_CCL_REDUCE_ANY) {
        args->exchange = (int32_t)iris_d_wg_shots(wg_ccl, args->bytes);
    }
    if (args->exchange == IRIS_CCL_REDUCE_TWO) {
        args->start.what.what |= (uint64_t)IRIS_D_WG_TWO_SHOT
                                 << IRIS_DEV_CALL_VARIANT;
    }
    args->start.what.what |= (uint64_t)dtype << IRIS_DEV_CALL_DTYPE |
                             (uint64_t)op << IRIS_DEV_CALL_REDUCE;
    args->start.what.sizes[0] = count;
    args->start.call = iris_d_wg_ccl_number(&args->start.what);
    iris_d_wg_ccl(wg, wg_ccl, args);
}

IRIS_DEVICE void iris_d_wg_ccl_move(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                    struct iris_ccl_packet_args *args,
                                    size_t bytes)
{
    args->bytes = bytes;
    args->start.what.what |= (uint64_t)IRIS_DTYPE_U8 << IRIS_DEV_CALL_DTYPE;
    args->start.what.sizes[0] = bytes;
    args->start.call = iris_d_wg_ccl_number(&args->start.what);
    iris_d_wg_ccl(wg, wg_ccl, args);
}

/* ---- Collectives of a workgroup --------------------------------------------
 *
 * All lanes of the workgroup call a collective together, with the same
 * arguments, outside lane loops. Workgroups with the same index, one of each
 * member of the handle's group, make the same calls in the same order, each
 * with its own buffers. `in` and `out` are any global memory of this rank,
 * aligned for their elements. They do not overlap, or are the same where
 * iris/ccl.h allows that. On return all lanes of the workgroup see `out`, and
 * `in` may be written. Kernels of members that make different calls end with
 * IRIS_ERR_MISMATCH, as those of iris/ccl.h do.
 *
 * @use workgroup; blocks
 * @param wg_ccl  result of iris_wg_ccl_begin()
 * @param in  elements that the call reads
 * @param out  elements that the call writes */

IRIS_DEVICE void iris_d_wg_all_reduce(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                      enum iris_ccl_exchange exchange,
                                      const void *in, void *out, size_t count,
                                      iris_dtype_t dtype, iris_reduce_op_t op)
{
    struct iris_ccl_packet_args args =
        iris_d_wg_ccl_args(wg_ccl, in, out, exchange, 0);

    iris_d_wg_ccl_reduce(wg, wg_ccl, &args, count, dtype, op);
}

/** Combines `count` elements of all members, in the group's order. Sends them
 *  in one shot or in two, as their bytes and the number of members make it
 *  faster; the bits are the same. */
IRIS_DEVICE void iris_wg_all_reduce(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                    const void *in, void *out, size_t count,
                                    iris_dtype_t dtype, iris_reduce_op_t op)
{
    iris_d_wg_all_reduce(wg, wg_ccl, IRIS_CCL_REDUCE_ANY, in, out, count, dtype,
                         op);
}

/** iris_wg_all_reduce() in one shot: each member sends all of its elements to
 *  every other one, and combines them itself. For few members or bytes. */
IRIS_DEVICE void iris_wg_all_reduce_one_shot(iris_wg_t wg,
                                             iris_wg_ccl_t *wg_ccl,
                                             const void *in, void *out,
                                             size_t count, iris_dtype_t dtype,
                                             iris_reduce_op_t op)
{
    iris_d_wg_all_reduce(wg, wg_ccl, IRIS_CCL_REDUCE_ONE, in, out, count, dtype,
                         op);
}

/** iris_wg_all_reduce() in two shots: each member combines a share and sends the
 *  result to all. For many members and some KB this sends fewer bytes. */
IRIS_DEVICE void iris_wg_all_reduce_two_shot(iris_wg_t wg,
                                             iris_wg_ccl_t *wg_ccl,
                                             const void *in, void *out,
                                             size_t count, iris_dtype_t dtype,
                                             iris_reduce_op_t op)
{
    iris_d_wg_all_reduce(wg, wg_ccl, IRIS_CCL_REDUCE_TWO, in, out, count, dtype,
                         op);
}

/* The two collectives that do not keep the group's order. A group of one member
 * has no order to keep. */
IRIS_DEVICE void iris_d_wg_ccl_loose(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                     struct iris_ccl_reduce_args *args,
                                     size_t count, iris_dtype_t dtype)
{
    IRIS_UNUSED struct iris_cpu_wg *cpu = IRIS_D_SELF();
    size_t each;
    uint32_t members = wg_ccl->ccl.count;
    IRIS_UNUSED iris_d_collective_t collective = {NULL, 0, NULL, 0, 0};
    iris_d_ccl_loose_t loose;

    args->kind = 0;
    each = (size_t)iris_d_reduced_as(dtype, (iris_reduce_op_t)args->op,
                                     &args->kind);
    args->bytes =
        count * each * iris_d_kind_bytes((enum iris_d_kind)args->kind);
    iris_wg_barrier(wg);
    if (each == 0 || args->op == IRIS_REDUCE_AVG ||
        args->kind >= IRIS_D_NUM_KINDS) {
        return;
    }
    args->start = wg_ccl->start;
    args->start.steps = args->shape == IRIS_CCL_RINGED ? 2 * members - 1 : 1;
    args->start.what.what =
        (uint64_t)dtype << IRIS_DEV_CALL_DTYPE |
        (uint64_t)args->op << IRIS_DEV_CALL_REDUCE |
        (uint64_t)(args->shape == IRIS_CCL_RINGED ? IRIS_D_WG_RING
                                                  : IRIS_D_WG_ATOMIC)
            << IRIS_DEV_CALL_VARIANT;
    args->start.what.sizes[0] = count;
    args->start.call = iris_d_wg_ccl_number(&args->start.what);
    wg.id = 0;
    wg.num_wgs = 1;
    if (count == 0) {
        iris_d_wg_ccl_meet(wg, wg_ccl, &args->start);
        return;
    }
    IRIS_D_HOOK_CPU(
        cpu, collective = iris_d_before_collective(
                 cpu, iris_d_wg_collective(args->in, args->out, args->bytes)));
    args->rings = 1;
    args->scale = iris_d_wg_scale(wg_ccl, (iris_reduce_op_t)args->op);
    loose.wg = wg;
    loose.args = args;
    loose.ccl = iris_d_wg_ccl_call(wg, wg_ccl, &args->start);
    iris_d_ccl_loose_step(&loose);
    iris_d_ccl_go_on(&loose.ccl);
    wg_ccl->ccl.epoch = loose.ccl.epoch;
    IRIS_D_HOOK_CPU(cpu, iris_d_after_collective(cpu, &collective));
}

/** iris_wg_all_reduce() around a ring. `in` and `out` are on the heap. Does not
 *  combine in the group's order: 16-bit floats are rounded at each member, and
 *  the bits depend on the count. Does nothing for AVG and 8-bit floats. In a
 *  group with ranks of several nodes it is iris_wg_all_reduce(). */
IRIS_DEVICE void iris_wg_all_reduce_ring(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                         const void *in, void *out,
                                         size_t count, iris_dtype_t dtype,
                                         iris_reduce_op_t op)
{
    struct iris_ccl_reduce_args args;

    if (wg_ccl->ccl.count == 1 || iris_d_wg_ccl_is_far(wg_ccl)) {
        iris_wg_all_reduce(wg, wg_ccl, in, out, count, dtype, op);
        return;
    }
    args.in = in;
    args.out = out;
    args.op = (int32_t)op;
    args.shape = IRIS_CCL_RINGED;
    iris_d_wg_ccl_loose(wg, wg_ccl, &args, count, dtype);
}

/** Sums: each member adds its elements to every member's `out` by atomics. `in`
 *  and `out` are on the heap and do not overlap. Floats differ from run to run
 *  and between members. In a group with ranks of several nodes it is
 *  iris_wg_all_reduce(). */
IRIS_DEVICE void iris_wg_all_reduce_atomic(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                           const void *in, void *out,
                                           size_t count, iris_dtype_t dtype)
{
    struct iris_ccl_reduce_args args;

    if (wg_ccl->ccl.count == 1 || iris_d_wg_ccl_is_far(wg_ccl)) {
        iris_wg_all_reduce(wg, wg_ccl, in, out, count, dtype, IRIS_REDUCE_SUM);
        return;
    }
    args.in = in;
    args.out = out;
    args.op = IRIS_REDUCE_SUM;
    args.shape = IRIS_CCL_ADDED;
    iris_d_wg_ccl_loose(wg, wg_ccl, &args, count, dtype);
}

/** `in` has a part of `count` elements for each member. Member i gets all
 *  members' i-th parts, combined. */
IRIS_DEVICE void iris_wg_reduce_scatter(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                        const void *in, void *out, size_t count,
                                        iris_dtype_t dtype, iris_reduce_op_t op)
{
    struct iris_ccl_packet_args args =
        iris_d_wg_ccl_args(wg_ccl, in, out, IRIS_CCL_REDUCE_PARTS, 2);

    iris_d_wg_ccl_reduce(wg, wg_ccl, &args, count, dtype, op);
}

/** iris_wg_all_reduce() to member `root` only. The other members' `out` is not
 *  written. */
IRIS_DEVICE void iris_wg_reduce(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                const void *in, void *out, size_t count,
                                iris_dtype_t dtype, iris_reduce_op_t op,
                                uint32_t root)
{
    struct iris_ccl_packet_args args = iris_d_wg_ccl_args(
        wg_ccl, in, out, IRIS_CCL_BRING_SUMS,
        IRIS_D_WG_REDUCE | (uint64_t)root << IRIS_DEV_CALL_ROOT);

    args.root = (int32_t)root;
    iris_d_wg_ccl_reduce(wg, wg_ccl, &args, count, dtype, op);
}

/** Member `root`'s `in` has a part of `bytes` bytes for each member; `out` gets
 *  this member's. The other members' `in` is not read. */
IRIS_DEVICE void iris_wg_scatter(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                 const void *in, void *out, size_t bytes,
                                 uint32_t root)
{
    struct iris_ccl_packet_args args = iris_d_wg_ccl_args(
        wg_ccl, in, out, IRIS_CCL_DEAL,
        IRIS_D_WG_SCATTER | (uint64_t)root << IRIS_DEV_CALL_ROOT);

    args.root = (int32_t)root;
    iris_d_wg_ccl_move(wg, wg_ccl, &args, bytes);
}

/** `out` gets the `bytes` bytes of all members, in the group's order. */
IRIS_DEVICE void iris_wg_all_gather(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                    const void *in, void *out, size_t bytes)
{
    struct iris_ccl_packet_args args =
        iris_d_wg_ccl_args(wg_ccl, in, out, IRIS_CCL_GATHER, 1);

    iris_d_wg_ccl_move(wg, wg_ccl, &args, bytes);
}

/** iris_wg_all_gather() to member `root` only. The other members' `out` is not
 *  written. */
IRIS_DEVICE void iris_wg_gather(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                const void *in, void *out, size_t bytes,
                                uint32_t root)
{
    struct iris_ccl_packet_args args = iris_d_wg_ccl_args(
        wg_ccl, in, out, IRIS_CCL_BRING,
        IRIS_D_WG_GATHER | (uint64_t)root << IRIS_DEV_CALL_ROOT);

    args.root = (int32_t)root;
    iris_d_wg_ccl_move(wg, wg_ccl, &args, bytes);
}

/** Member i gets the i-th part of every member's `in`, in the group's order.
 *  Each part has `bytes` bytes. */
IRIS_DEVICE void iris_wg_all_to_all(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                    const void *in, void *out, size_t bytes)
{
    struct iris_ccl_packet_args args =
        iris_d_wg_ccl_args(wg_ccl, in, out, IRIS_CCL_SWAP, 3);

    iris_d_wg_ccl_move(wg, wg_ccl, &args, bytes);
}

/** `out` gets the `bytes` bytes of member `root`'s `in`. The other members'
 *  `in` is not read. `root` is a member's index in the group. */
IRIS_DEVICE void iris_wg_broadcast(iris_wg_t wg, iris_wg_ccl_t *wg_ccl,
                                   const void *in, void *out, size_t bytes,
                                   uint32_t root)
{
    struct iris_ccl_packet_args args =
        iris_d_wg_ccl_args(wg_ccl, in, out, IRIS_CCL_SPREAD,
                           4 | (uint64_t)root << IRIS_DEV_CALL_ROOT);

    args.root = (int32_t)root;
    iris_d_wg_ccl_move(wg, wg_ccl, &args, bytes);
}

#endif /* IRIS_DEVICE_WG_CCL_H */
