/* SPDX-License-Identifier: MIT
 *
 * Collectives of ranks that do not all map each other's heaps: every member
 * sends its part to each of the others, piece by piece. CPUs only.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_FAR_H
#define IRIS_DEVICE_KERNELS_CCL_FAR_H

#include <iris/device/kernels/ccl_rows.h>
#include <iris/device/kernels/ccl_space.h>
#include <iris/device/wg.h>

#if IRIS_ON_CPU
/* The word that a member sends at the end of a step: the step's number, which
 * never starts again from 0, and behind it bits of the call's number. 2^44
 * steps of 20 us take eleven years. */
enum { IRIS_D_FAR_CALL_BITS = 20 };

IRIS_DEVICE uint64_t iris_d_far_word(uint64_t step, uint32_t call)
{
    return step << IRIS_D_FAR_CALL_BITS |
           (call & ((1u << IRIS_D_FAR_CALL_BITS) - 1));
}

/* A step of a call, and the piece that it moves. */
typedef struct iris_d_far_step {
    uint64_t number; /* counted from 1 over all calls with the workspace */
    uint64_t row;
    uint64_t at; /* bytes into the row of each part */
    uint64_t bytes;
} iris_d_far_step_t;

IRIS_DEVICE char *iris_d_far_at(const struct iris_ccl_space *space,
                                int64_t offset)
{
    return (char *)(uintptr_t)space + offset;
}

/* The slot in which this rank receives member i's piece of a step. Two slots,
 * by the step's parity, are enough: a member that sends in a step has heard
 * from all members in the step before, and they had then finished all earlier
 * steps. */
IRIS_DEVICE char *iris_d_far_slot(const struct iris_ccl_space *space,
                                  uint64_t step, uint64_t i)
{
    uint64_t slot = (step & 1) * (uint64_t)space->count + i;

    return iris_d_far_at(space, space->slots) +
           slot * 2 * (uint64_t)space->slot_bytes;
}

/* This rank's address of the same place on member m. Workspaces may be at other
 * offsets there. */
IRIS_DEVICE void *iris_d_far_of(iris_dev_t dev, struct iris_ccl_space *space,
                                const void *place, uint64_t m)
{
    int64_t *members = iris_i_ccl_members(space);
    int rank = (int)members[space->count + (int64_t)m];
    uintptr_t theirs = (uintptr_t)members[m] -
                       (uintptr_t)iris_d_load_constant(&dev.heap_bases[rank]);

    return (char *)dev.heap_base + theirs +
           ((const char *)place - (char *)space);
}

/* The description of this rank's call, which members that make a different call
 * read. */
IRIS_DEVICE struct iris_dev_call *
iris_d_far_what(const struct iris_ccl_space *space)
{
    return (struct iris_dev_call *)(void *)iris_d_far_at(
        space, space->call + 8 * IRIS_CCL_CALL_WHAT);
}

/* Sends this rank's piece to all members, then the number of the step and the
 * call's signature. */
IRIS_DEVICE void iris_d_far_give(iris_wg_t wg, iris_dev_t dev,
                                 const struct iris_ccl_far_args *args,
                                 iris_d_far_step_t step)
{
    struct iris_ccl_space *space = args->start.space;
    uint64_t n = (uint64_t)space->count, self = (uint64_t)space->index;
    const int64_t *ranks = iris_i_ccl_members(space) + n;
    const char *in =
        (const char *)args->in + step.row * args->in_pitch + step.at;
    uint64_t *byes = (uint64_t *)(void *)iris_d_far_at(space, space->byes);

    for (uint64_t m = 0; m < n; m++) {
        if (args->root < 0 || args->reduces || (uint64_t)args->root == self) {
            iris_wg_put(wg, dev, in + m * args->in_of_peer,
                        iris_d_far_of(dev, space,
                                      iris_d_far_slot(space, step.number, self),
                                      m),
                        step.bytes, (int)ranks[m]);
        }
    }
    iris_wg_barrier(wg);
    /* Mapped members need no more. For other members, the word follows the
     * bytes on the same way, so it needs no wait such as that of
     * iris_fence(). */
    iris_d_fence(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    for (uint64_t m = 0; m < n; m++) {
        iris_atomic_store_u64(
            dev, (uint64_t *)iris_d_far_of(dev, space, &byes[self], m),
            iris_d_far_word(step.number, args->start.call), (int)ranks[m],
            IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    }
}

/* Ends the kernel, because member m makes a different call. If m is this rank,
 * an earlier kernel ended in the middle of a step. */
IRIS_CPU_COLD void iris_d_far_differ(iris_wg_t wg, iris_dev_t dev,
                                     const struct iris_ccl_far_args *args,
                                     uint64_t step, uint64_t m)
{
    struct iris_ccl_space *space = args->start.space;
    int rank = (int)iris_i_ccl_members(space)[space->count + (int64_t)m];
    struct iris_dev_mismatch mismatch;

    mismatch.rank = dev.rank;
    mismatch.other = rank == dev.rank ? -1 : rank;
    mismatch.count = step;
    mismatch.own = mismatch.theirs = args->start.what;
    if (rank != dev.rank) {
        iris_wg_get(wg, dev,
                    iris_d_far_of(dev, space, iris_d_far_what(space), m),
                    &mismatch.theirs, sizeof mismatch.theirs, rank);
    }
    iris_i_cpu_mismatch(dev.cpu, &mismatch);
}

/* Waits for all members' pieces. A member that is a step ahead has heard from
 * this rank, and found that both make the same call. */
IRIS_DEVICE void iris_d_far_await(iris_wg_t wg, iris_dev_t dev,
                                  const struct iris_ccl_far_args *args,
                                  uint64_t step)
{
    struct iris_ccl_space *space = args->start.space;
    uint64_t *byes = (uint64_t *)(void *)iris_d_far_at(space, space->byes);

    for (uint64_t m = 0; m < (uint64_t)space->count; m++) {
        uint64_t seen = iris_wait_until_u64(dev, &byes[m], IRIS_CMP_GE,
                                            iris_d_far_word(step, 0));

        if (seen >> IRIS_D_FAR_CALL_BITS == step &&
            seen != iris_d_far_word(step, args->start.call)) {
            iris_d_far_differ(wg, dev, args, step, m);
        }
    }
}

/* Combines the pieces in the group's order, as on one node. */
IRIS_DEVICE void iris_d_far_reduce(const struct iris_ccl_far_args *args,
                                   iris_d_far_step_t step, char *out)
{
    struct iris_ccl_space *space = args->start.space;
    iris_d_u64_t *table =
        (iris_d_u64_t *)(void *)iris_d_far_at(space, space->tables);
    iris_d_ccl_row_t row;

    for (uint64_t m = 0; m < (uint64_t)space->count; m++) {
        table[m] = (uintptr_t)iris_d_far_slot(space, step.number, m);
    }
    row.in = table;
    row.count = (uint32_t)space->count;
    row.op = (iris_reduce_op_t)args->op;
    for (row.at = 0; row.at < step.bytes; row.at += IRIS_CCL_ROW) {
        size_t left = step.bytes - row.at;

        iris_d_ccl_reduce_row((enum iris_d_kind)args->kind, row,
                              left < IRIS_CCL_ROW ? left : IRIS_CCL_ROW,
                              out + row.at);
    }
}

IRIS_DEVICE void iris_d_far_take(const struct iris_ccl_far_args *args,
                                 iris_d_far_step_t step)
{
    struct iris_ccl_space *space = args->start.space;
    char *out = (char *)args->out + step.row * args->out_pitch + step.at;

    if (args->reduces) {
        if (args->root < 0 || args->root == space->index) {
            iris_d_far_reduce(args, step, out);
        }
    } else if (args->root >= 0) {
        iris_d_copy_bytes(
            out, iris_d_far_slot(space, step.number, (uint64_t)args->root),
            step.bytes);
    } else {
        for (uint64_t m = 0; m < (uint64_t)space->count; m++) {
            iris_d_copy_bytes(out + m * args->out_of_peer,
                              iris_d_far_slot(space, step.number, m),
                              step.bytes);
        }
    }
}

/* Begins a call; returns the number of the step before its first. */
IRIS_DEVICE uint64_t iris_d_far_begin(iris_wg_t wg, iris_dev_t dev,
                                      const struct iris_ccl_far_args *args)
{
    struct iris_ccl_space *space = args->start.space;
    uint64_t *epoch = (uint64_t *)(void *)iris_d_far_at(space, space->epochs);
    uint64_t number = *epoch;

    if ((number & IRIS_CCL_BUSY) != 0) {
        iris_d_far_differ(wg, dev, args, number & ~IRIS_CCL_BUSY,
                          (uint64_t)space->index);
    }
    *epoch |= IRIS_CCL_BUSY;
    *iris_d_far_what(space) = args->start.what;
    return number;
}

IRIS_DEVICE void iris_d_far_end(struct iris_ccl_space *space, uint64_t number)
{
    *(uint64_t *)(void *)iris_d_far_at(space, space->epochs) = number;
}

/* One workgroup of one lane. */
IRIS_KERNEL(iris_k_ccl_far, struct iris_ccl_far_args)
{
    iris_dev_t dev = iris_dev_init(args->start.context);
    iris_d_far_step_t step;

    step.number = iris_d_far_begin(wg, dev, args);
    for (step.row = 0; step.row < args->rows; step.row++) {
        for (step.at = 0; step.at < args->bytes; step.at += step.bytes) {
            step.bytes = args->bytes - step.at < args->piece
                             ? args->bytes - step.at
                             : args->piece;
            step.number++;
            iris_d_far_give(wg, dev, args, step);
            iris_d_far_await(wg, dev, args, step.number);
            iris_d_far_take(args, step);
        }
    }
    iris_d_far_end(args->start.space, step.number);
}
#endif

#endif /* IRIS_DEVICE_KERNELS_CCL_FAR_H */
