/* SPDX-License-Identifier: MIT
 *
 * Collectives of ranks that do not all map each other's heaps: every member
 * sends its part to each of the others, piece by piece. For calls that cannot go by
 * level (ccl_levels.h). GPUs have it in objects compiled with IRIS_FAR.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_FAR_H
#define IRIS_DEVICE_KERNELS_CCL_FAR_H

#include <iris/device/kernels/ccl_rows.h>
#include <iris/device/kernels/ccl_share.h>
#include <iris/device/kernels/ccl_space.h>
#include <iris/device/wg/wg.h>

#if IRIS_ON_CPU || IRIS_FAR
#if IRIS_ON_CPU
#define IRIS_D_FAR_RARE IRIS_CPU_COLD
#else
#define IRIS_D_FAR_RARE IRIS_DEVICE_CALLED
#endif

/* The word that a member sends at the end of a step. Its upper bits are the
 * step's number, which never starts again from 0, its lower bits come from the
 * call's number. 2^44 steps of 20 us take eleven years. */
enum { IRIS_D_FAR_CALL_BITS = 20 };

IRIS_DEVICE uint64_t iris_d_far_word(uint64_t step, uint32_t call)
{
    return step << IRIS_D_FAR_CALL_BITS |
           (call & ((1u << IRIS_D_FAR_CALL_BITS) - 1));
}

/* A step of a call, and the pieces that it moves: `bytes` of each of some rows
 * of each part. */
typedef struct iris_d_far_step {
    uint64_t number; /* counted from 1 over all calls with the workspace */
    uint64_t row;    /* among the member's own rows, if it has any */
    uint64_t rows;
    uint64_t bytes;
    const char *in; /* at row 0 */
    char *out;
    uint64_t in_pitch;
    uint64_t in_of_peer;
    uint64_t out_of_peer;
    int32_t to_root; /* 1: the root receives; 0: it is the only sender */
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

/* The rows of each part that member m combines, or gets. */
IRIS_DEVICE iris_d_ccl_rows_t
iris_d_far_rows(const struct iris_ccl_far_args *args, uint64_t m)
{
    iris_d_ccl_rows_t all = {0, 1, args->rows};

    return args->own_rows
               ? iris_d_ccl_rows_of(m, (size_t)args->start.space->count,
                                    args->rows, args->striding)
               : all;
}

/* The end of a step's rows. */
IRIS_DEVICE uint64_t iris_d_far_last(const iris_d_far_step_t *step,
                                     iris_d_ccl_rows_t rows)
{
    uint64_t end = step->row + step->rows;

    return end < rows.count ? end : rows.count;
}

/* Writes a word of a member, behind the releases of this lane. */
IRIS_DEVICE_CALLED void iris_d_far_tell(iris_dev_t dev, uint64_t *word,
                                        uint64_t value, int rank)
{
    iris_atomic_store_u64(dev, word, value, rank,
                          IRIS_TSAN ? IRIS_RELEASE : IRIS_RELAXED,
                          IRIS_SCOPE_SYSTEM);
}

/* A put by the workgroup. */
IRIS_DEVICE_CALLED void iris_d_far_send_bytes(iris_wg_t wg, iris_dev_t dev,
                                              const void *from, void *to,
                                              size_t bytes, int rank)
{
    iris_wg_put(wg, dev, from, to, bytes, rank);
}

/* Sends this rank's pieces to member m. */
IRIS_DEVICE void iris_d_far_give_to(iris_wg_t wg, iris_dev_t dev,
                                    const struct iris_ccl_far_args *args,
                                    const iris_d_far_step_t *step, uint64_t m)
{
    struct iris_ccl_space *space = args->start.space;
    uint64_t self = (uint64_t)space->index;
    int rank = (int)iris_i_ccl_members(space)[space->count + (int64_t)m];
    iris_d_ccl_rows_t rows = iris_d_far_rows(args, m);
    uint64_t last = iris_d_far_last(step, rows);
    char *slot = (char *)iris_d_far_of(
        dev, space, iris_d_far_slot(space, step->number, self), m);

    for (uint64_t k = step->row; k < last; k++) {
        iris_d_far_send_bytes(wg, dev,
                              step->in + m * step->in_of_peer +
                                  (rows.first + k * rows.step) * step->in_pitch,
                              slot + (k - step->row) * step->bytes, step->bytes,
                              rank);
    }
}

/* Sends the step's pieces, then the number of the step and the call's
 * signature. The pieces may be overwritten once this returns. */
IRIS_DEVICE void iris_d_far_give(iris_wg_t wg, iris_dev_t dev,
                                 const struct iris_ccl_far_args *args,
                                 const iris_d_far_step_t *step)
{
    struct iris_ccl_space *space = args->start.space;
    uint64_t n = (uint64_t)space->count, self = (uint64_t)space->index;
    const int64_t *ranks = iris_i_ccl_members(space) + n;
    uint64_t *byes = (uint64_t *)(void *)iris_d_far_at(space, space->byes);

    for (uint64_t m = 0; m < n; m++) {
        if (args->root < 0 ||
            (uint64_t)args->root == (step->to_root ? m : self)) {
            iris_d_far_give_to(wg, dev, args, step, m);
        }
    }
    iris_wg_barrier(wg);
    if (!iris_wg_leader(wg)) {
        return;
    }
    /* Mapped members need no more. For other members, the word follows the
     * bytes on the same way, so it needs no wait such as that of
     * iris_fence(). */
    iris_d_fence(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    for (uint64_t m = 0; m < n; m++) {
        iris_d_far_tell(
            dev, (uint64_t *)iris_d_far_of(dev, space, &byes[self], m),
            iris_d_far_word(step->number, args->start.call), (int)ranks[m]);
    }
}

/* Ends the kernel, because member m makes a different call. If m is this rank,
 * an earlier kernel ended in the middle of a step. One lane calls it. */
IRIS_D_FAR_RARE void iris_d_far_differ(iris_dev_t dev,
                                       const struct iris_ccl_start *start,
                                       uint64_t step, uint64_t m)
{
    struct iris_ccl_space *space = start->space;
    int rank = (int)iris_i_ccl_members(space)[space->count + (int64_t)m];
    struct iris_dev_mismatch mismatch;
    const uint64_t *there;

    mismatch.rank = dev.rank;
    mismatch.other = rank == dev.rank ? -1 : rank;
    mismatch.count = step;
    mismatch.own = mismatch.theirs = start->what;
    if (rank != dev.rank) {
        there = (const uint64_t *)iris_d_far_of(dev, space,
                                                iris_d_far_what(space), m);
        mismatch.theirs.what = iris_load_u64(dev, &there[0], rank);
        for (int k = 0; k < 3; k++) {
            mismatch.theirs.sizes[k] = iris_load_u64(dev, &there[1 + k], rank);
        }
    }
    iris_d_mismatch_tell(dev, &mismatch);
}

/* The same for all lanes of a workgroup. */
IRIS_DEVICE void iris_d_far_differs(iris_wg_t wg, iris_dev_t dev,
                                    const struct iris_ccl_start *start,
                                    uint64_t step, uint64_t m)
{
    if (iris_wg_leader(wg)) {
        iris_d_far_differ(dev, start, step, m);
    }
#if IRIS_D_WATCHED
    if (!iris_wg_leader(wg)) {
        iris_d_end_lane();
    }
#endif
}

/* After the leader's wait until a word is at least `least`: the word, for all
 * lanes. They end if the leader has ended in its wait: then barriers do not
 * wait for it. */
IRIS_DEVICE uint64_t iris_d_far_waited(iris_wg_t wg, const uint64_t *word,
                                       uint64_t least, uint64_t seen)
{
    iris_wg_barrier(wg);
#if IRIS_ON_CPU
    (void)word, (void)least;
#else
    seen = iris_d_load(word, sizeof *word, iris_d_ccl_relaxed());
    if (IRIS_UNLIKELY(seen < least)) {
        iris_d_end_lane();
    }
#endif
    return seen;
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
        uint64_t least = iris_d_far_word(step, 0), seen = 0;

        if (iris_wg_leader(wg)) {
            seen = iris_wait_until_u64(dev, &byes[m], IRIS_CMP_GE, least);
        }
        seen = iris_d_far_waited(wg, &byes[m], least, seen);
        if (seen >> IRIS_D_FAR_CALL_BITS == step &&
            seen != iris_d_far_word(step, args->start.call)) {
            iris_d_far_differs(wg, dev, &args->start, step, m);
        }
    }
}

/* ---- Combining ---- */

/* Bytes of some members that are combined in the group's order, as on one
 * node. */
typedef struct iris_d_far_sum {
    const iris_d_u64_t *in; /* their addresses */
    uint32_t count;
    enum iris_d_kind kind;
    iris_reduce_op_t op;
    uint32_t wider; /* bytes of a sum for each byte of an element */
    struct iris_ccl_scale scale;
    const char *before; /* not NULL: sums to which they are added */
    char *sums; /* not NULL: gets the sums, neither scaled nor rounded */
    char *to;   /* gets the result otherwise; may be one of `in` */
    size_t bytes;
} iris_d_far_sum_t;

#if IRIS_ON_CPU
IRIS_DEVICE void iris_d_far_combine(iris_wg_t wg, const iris_d_far_sum_t *sum)
{
    iris_d_ccl_row_t row;

    (void)wg;
    row.in = sum->in;
    row.count = sum->count;
    row.op = sum->op;
    row.scale = sum->scale;
    for (row.at = 0; row.at < sum->bytes; row.at += IRIS_CCL_ROW) {
        size_t left = sum->bytes - row.at;

        row.before =
            sum->before == NULL ? NULL : sum->before + row.at * sum->wider;
        row.sums = sum->sums == NULL ? NULL : sum->sums + row.at * sum->wider;
        iris_d_ccl_reduce_row(sum->kind, row,
                              left < IRIS_CCL_ROW ? left : IRIS_CCL_ROW,
                              sum->to + row.at);
    }
}
#else
/* A lane's bytes at a time, and their sums. */
#define IRIS_D_FAR_BLOCK IRIS_D_FLOAT8_BLOCK
typedef union iris_d_far_block {
    uint64_t words[4];
    iris_d_block_t block;
    iris_d_sums_t sums;
} iris_d_far_block_t;

/* At most 8 bytes, at any address. */
IRIS_DEVICE uint64_t iris_d_far_read(const char *from, size_t bytes)
{
    return bytes == sizeof(uint64_t) && ((uintptr_t)from & 7) == 0
               ? *(const iris_d_u64_t *)from
               : iris_d_far_gather(from, bytes);
}

IRIS_DEVICE void iris_d_far_write(char *to, uint64_t word, size_t bytes)
{
    if (bytes == sizeof(uint64_t) && ((uintptr_t)to & 7) == 0) {
        *(iris_d_u64_t *)to = word;
    } else {
        iris_d_far_scatter(to, word, bytes);
    }
}

/* The bytes of word k of the sums of `bytes` bytes. */
IRIS_DEVICE size_t iris_d_far_part(const iris_d_far_sum_t *sum, size_t bytes,
                                   uint32_t k)
{
    size_t all = bytes * sum->wider, first = 8 * (size_t)k;

    return all <= first ? 0 : all - first < 8 ? all - first : 8;
}

IRIS_DEVICE void iris_d_far_combine_block(const iris_d_far_sum_t *sum,
                                          size_t at, size_t bytes)
{
    iris_d_far_block_t sums, next;

    IRIS_D_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        sums.words[k] = next.words[k] = 0;
        if (sum->before != NULL) {
            sums.words[k] =
                iris_d_far_read(sum->before + at * sum->wider + 8 * (size_t)k,
                                iris_d_far_part(sum, bytes, k));
        }
    }
    for (uint32_t m = 0; m < sum->count; m++) {
        next.words[0] = iris_d_far_read(iris_d_ccl_at(sum->in, m) + at, bytes);
        if (m == 0 && sum->before == NULL) {
            iris_d_fold_begin(sum->kind, &sums.sums, &next.block,
                              IRIS_D_FAR_BLOCK);
        } else {
            iris_d_fold(sum->kind, sum->op, &sums.sums, &next.block,
                        IRIS_D_FAR_BLOCK);
        }
    }
    if (sum->sums == NULL) {
        iris_d_fold_finish(sum->kind, &next.block, &sums.sums, sum->scale,
                           IRIS_D_FAR_BLOCK);
        iris_d_far_write(sum->to + at, next.words[0], bytes);
        return;
    }
    IRIS_D_UNROLL
    for (uint32_t k = 0; k < 4; k++) {
        iris_d_far_write(sum->sums + at * sum->wider + 8 * (size_t)k,
                         sums.words[k], iris_d_far_part(sum, bytes, k));
    }
}

IRIS_D_FAR_RARE void iris_d_far_combine(iris_wg_t wg,
                                        const iris_d_far_sum_t *sum)
{
    size_t blocks = (sum->bytes + IRIS_D_FAR_BLOCK - 1) / IRIS_D_FAR_BLOCK;

    IRIS_WG_LANES (wg, i, blocks) {
        size_t at = i * IRIS_D_FAR_BLOCK, left = sum->bytes - at;

        iris_d_far_combine_block(
            sum, at, left < IRIS_D_FAR_BLOCK ? left : IRIS_D_FAR_BLOCK);
    }
}
#endif

/* Combines the members' pieces at `from` of their slots. */
IRIS_DEVICE void iris_d_far_reduce(iris_wg_t wg,
                                   const struct iris_ccl_far_args *args,
                                   const iris_d_far_step_t *step, uint64_t from,
                                   char *out)
{
    struct iris_ccl_space *space = args->start.space;
    iris_d_u64_t *table =
        (iris_d_u64_t *)(void *)iris_d_far_at(space, space->tables);
    iris_d_far_sum_t sum;

    iris_wg_barrier(wg); /* no lane reads the table of the row before */
    IRIS_WG_LANES (wg, m, (size_t)space->count) {
        table[m] = (uintptr_t)iris_d_far_slot(space, step->number, m) + from;
    }
    iris_wg_barrier(wg);
    sum.in = table;
    sum.count = (uint32_t)space->count;
    sum.kind = (enum iris_d_kind)args->kind;
    sum.op = (iris_reduce_op_t)args->op;
    sum.wider = 1; /* it has no sums */
    sum.scale = args->scale;
    sum.before = NULL;
    sum.sums = NULL;
    sum.to = out;
    sum.bytes = step->bytes;
    iris_d_far_combine(wg, &sum);
}

/* Copies the bytes at `from` in the members' slots to a row of this rank. */
IRIS_DEVICE void iris_d_far_take_row(iris_wg_t wg,
                                     const struct iris_ccl_far_args *args,
                                     const iris_d_far_step_t *step,
                                     uint64_t from, char *out)
{
    struct iris_ccl_space *space = args->start.space;

    if (args->root >= 0 && step->to_root && args->root != space->index) {
        return;
    }
    if (args->reduces) {
        iris_d_far_reduce(wg, args, step, from, out);
    } else if (args->root >= 0 && !step->to_root) {
        iris_d_wg_bytes(
            wg, out,
            iris_d_far_slot(space, step->number, (uint64_t)args->root) + from,
            step->bytes);
    } else {
        for (uint64_t m = 0; m < (uint64_t)space->count; m++) {
            iris_d_wg_bytes(wg, out + m * step->out_of_peer,
                            iris_d_far_slot(space, step->number, m) + from,
                            step->bytes);
        }
    }
}

IRIS_DEVICE uint64_t *iris_d_far_epoch(const struct iris_ccl_space *space)
{
    return (uint64_t *)(void *)iris_d_far_at(space, space->epochs);
}

/* Begins a kernel. Returns the number of the step before its first one. */
IRIS_DEVICE uint64_t iris_d_far_begin(iris_wg_t wg, iris_dev_t dev,
                                      const struct iris_ccl_start *start)
{
    struct iris_ccl_space *space = start->space;
    /* This kernel may have written it, so no cache may have it. */
    uint64_t number =
        iris_d_load(iris_d_far_epoch(space), 8, iris_d_ccl_relaxed());

    iris_wg_barrier(wg); /* all lanes have read it */
    if ((number & IRIS_CCL_BUSY) != 0) {
        iris_d_far_differs(wg, dev, start, number & ~IRIS_CCL_BUSY,
                           (uint64_t)space->index);
    }
    if (iris_wg_leader(wg)) {
        *iris_d_far_epoch(space) = number | IRIS_CCL_BUSY;
        *iris_d_far_what(space) = start->what;
    }
    return number & ~IRIS_CCL_BUSY;
}

/* Counts a step, whose number all lanes know. */
IRIS_DEVICE void iris_d_far_count(iris_wg_t wg,
                                  const struct iris_ccl_space *space,
                                  uint64_t number)
{
    if (iris_wg_leader(wg)) {
        *iris_d_far_epoch(space) = number | IRIS_CCL_BUSY;
    }
}

IRIS_DEVICE void iris_d_far_end(iris_wg_t wg,
                                const struct iris_ccl_space *space)
{
    if (iris_wg_leader(wg)) {
        *iris_d_far_epoch(space) &= ~IRIS_CCL_BUSY;
    }
}

/* Whether the end of this workgroup's kernel waits until the messages that it has
 * sent have arrived. On a GPU, another kernel behind it always does. */
IRIS_DEVICE void iris_d_far_owes(iris_dev_t dev, iris_bool_t owes)
{
#if IRIS_ON_CPU
    iris_d_far_lane(dev.cpu)->posted &= owes;
#else
    (void)dev, (void)owes;
#endif
}

/* Takes the next step: sends its pieces, and waits for those of all members. */
IRIS_DEVICE void iris_d_far_exchange(iris_wg_t wg, iris_dev_t dev,
                                     const struct iris_ccl_far_args *args,
                                     iris_d_far_step_t *step)
{
    step->number++;
    iris_d_far_count(wg, args->start.space, step->number);
    iris_d_far_give(wg, dev, args, step);
    iris_d_far_await(wg, dev, args, step->number);
}

IRIS_DEVICE void iris_d_far_step(iris_wg_t wg, iris_dev_t dev,
                                 const struct iris_ccl_far_args *args,
                                 iris_d_far_step_t *step)
{
    iris_d_ccl_rows_t rows =
        iris_d_far_rows(args, (uint64_t)args->start.space->index);
    uint64_t last = iris_d_far_last(step, rows);

    iris_d_far_exchange(wg, dev, args, step);
    for (uint64_t k = step->row; k < last; k++) {
        iris_d_far_take_row(wg, args, step, (k - step->row) * step->bytes,
                            step->out +
                                (rows.first + k * rows.step) * args->out_pitch);
    }
}

/* One workgroup. A step moves whole rows, or a piece of one. */
IRIS_KERNEL(iris_k_ccl_far, struct iris_ccl_far_args)
{
    iris_dev_t dev = iris_dev_init(args->start.context);
    uint64_t rows = iris_d_far_rows(args, 0).count; /* no member has more */
    iris_d_far_step_t step;

    step.in_pitch = args->in_pitch;
    step.in_of_peer = args->in_of_peer;
    step.out_of_peer = args->out_of_peer;
    step.to_root = args->reduces;
    step.rows = args->bytes <= args->piece ? args->piece / args->bytes : 1;
    step.number = iris_d_far_begin(wg, dev, &args->start);
    for (step.row = 0; step.row < rows; step.row += step.rows) {
        for (uint64_t at = 0; at < args->bytes; at += step.bytes) {
            uint64_t left = args->bytes - at;

            step.bytes = left < args->piece ? left : args->piece;
            step.in = (const char *)args->in + at;
            step.out = (char *)args->out + at;
            iris_d_far_step(wg, dev, args, &step);
        }
    }
    iris_d_far_end(wg, args->start.space);
    iris_d_far_owes(dev, 0); /* the members have waited for all of it */
}
#endif

#endif /* IRIS_DEVICE_KERNELS_CCL_FAR_H */
