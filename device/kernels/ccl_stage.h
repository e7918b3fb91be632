/* SPDX-License-Identifier: MIT
 *
 * Collectives on the CPU in which some members' buffers are not on the heap.
 * These members copy their input through their workspaces, one piece at a time.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_STAGE_H
#define IRIS_DEVICE_KERNELS_CCL_STAGE_H

#include <iris/device/kernels/ccl_meet.h>
#include <iris/device/kernels/ccl_rows.h>
#include <iris/device/kernels/ccl_share.h>
#include <iris/device/core/vector.h>

/* When members enqueue the call, only those that stage their input know it. The
 * hello tells the others: such a member names the byte before its heap as its
 * input. If any member does so, all take the steps below.
 *
 * In step e a workgroup
 * - meets this workgroup of all members, with the hello in the first step, with
 *   a bye in the others;
 * - copies its next piece into the stage of the other parity;
 * - reads the members' current piece, from their stages or, for members whose
 *   buffers are on the heap, in place;
 * - in an all_reduce, writes its sums of this piece into its stage, and reads
 *   the other members' sums of the previous piece. The first piece is copied
 *   before the hello. A call ends with a bye if peers may still read a member's
 *   buffer. Peers may still read its stage after the call. A member writes its
 *   own memory only.
 *
 * Why two parities suffice: a workgroup writes data for step e after it has met
 * all members in step e - 1. They have then finished step e - 2, which had the
 * same parity. This is true of the first piece, too, with every kernel before
 * this one (ccl_args.h). */

#if IRIS_ON_CPU
/* From this number of bytes in a step on, stores past the cache write the
 * stage. */
#define IRIS_CCL_STAGE_PAST 8192

/* A workgroup's part in such a call. A buffer with parts has `bytes` bytes for
 * each member. Pieces are cut from every part in the same way. */
typedef struct iris_d_ccl_stage {
    iris_wg_t wg;
    iris_d_ccl_t ccl;
    const struct iris_ccl_staging *how;
    const iris_d_u64_t *members; /* the members' inputs, or the mark that
                                  * they are staged */
    iris_d_u64_t *from; /* a word for each member, for rows of inputs */
    const char *in;
    char *out;
    size_t begin; /* first of this workgroup's bytes of each part */
    size_t end;
    size_t part;        /* bytes from one part of `in` to the next; 0: it has no
                  * parts */
    iris_bool_t copies; /* this rank's input goes through its stage */
    iris_bool_t keeps;  /* in a reduction: this rank writes `out` */
} iris_d_ccl_stage_t;

IRIS_DEVICE iris_bool_t iris_d_ccl_stages(const iris_d_ccl_t *ccl,
                                          const iris_d_u64_t *members,
                                          uint32_t i)
{
    int64_t rank =
        iris_d_ccl_word(&iris_i_ccl_members(ccl->space)[ccl->count + i]);

    return members[i] ==
           (uint64_t)iris_d_load_constant(&ccl->dev.heap_bases[rank]) - 1;
}

/* Number of members that stage their input. All members compute the same
 * number. */
IRIS_DEVICE uint32_t iris_d_ccl_num_staged(const iris_d_ccl_t *ccl,
                                           const iris_d_u64_t *members)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < ccl->count; i++) {
        count += iris_d_ccl_stages(ccl, members, i) ? 1 : 0;
    }
    return count;
}

IRIS_DEVICE iris_d_ccl_stage_t
iris_d_ccl_stage(iris_wg_t wg, const iris_d_ccl_t *ccl,
                 const struct iris_ccl_staging *how, size_t bytes)
{
    size_t grains = (bytes + IRIS_CCL_STAGE_GRAIN - 1) / IRIS_CCL_STAGE_GRAIN;
    iris_d_ccl_stage_t stage;

    stage.wg = wg;
    stage.ccl = *ccl;
    stage.how = how;
    stage.begin = iris_d_share(wg, wg.id, grains) * IRIS_CCL_STAGE_GRAIN;
    stage.end = iris_d_share(wg, wg.id + 1, grains) * IRIS_CCL_STAGE_GRAIN;
    stage.begin = stage.begin < bytes ? stage.begin : bytes;
    stage.end = stage.end < bytes ? stage.end : bytes;
    return stage;
}

/* Piece `k` of this workgroup's bytes, from the start of a part. Pieces behind
 * the last one are empty. */
IRIS_DEVICE iris_d_ccl_share_t iris_d_ccl_piece(const iris_d_ccl_stage_t *stage,
                                                size_t k)
{
    size_t most = stage->how->piece;
    iris_d_ccl_share_t piece = {stage->begin + k * most, 0};

    if (piece.begin < stage->end) {
        piece.bytes = stage->end - piece.begin;
        piece.bytes = piece.bytes < most ? piece.bytes : most;
    }
    return piece;
}

/* This workgroup's stage on member i for step `epoch`. */
IRIS_DEVICE char *iris_d_ccl_stage_of(const iris_d_ccl_stage_t *stage,
                                      uint32_t i, uint64_t epoch)
{
    const iris_d_ccl_t *ccl = &stage->ccl;
    size_t bytes = (size_t)iris_d_ccl_word(&ccl->space->stage_bytes);

    return iris_d_ccl_peer(ccl, i, &ccl->space->stages) +
           (size_t)(epoch & 1) * bytes + stage->wg.id * stage->how->region;
}

/* Copies into a stage. The step writes `all` bytes. A plain store has to take
 * the line from the core that read it in an earlier step: 27 ns for each line
 * between distant cores. But if there are few bytes, readers are faster with
 * data in the cache. */
IRIS_DEVICE void iris_d_ccl_stage_copy(char *to, const char *from, size_t bytes,
                                       size_t all)
{
    if (all < IRIS_CCL_STAGE_PAST) {
        iris_d_copy_bytes(to, from, bytes);
    } else {
        iris_d_copy_past(to, from, bytes);
    }
}

/* Copies piece `k` of every other member's part into this rank's stage, for
 * step `epoch`. */
IRIS_DEVICE_LARGE void iris_d_ccl_stage_in(const iris_d_ccl_stage_t *stage,
                                           size_t k, uint64_t epoch)
{
    iris_d_ccl_share_t piece = iris_d_ccl_piece(stage, k);
    uint32_t parts = stage->part == 0 ? 1 : stage->ccl.count;
    char *to = iris_d_ccl_stage_of(stage, stage->ccl.index, epoch);

    for (uint32_t i = 0; i < parts && piece.bytes > 0; i++) {
        if (parts == 1 || i != stage->ccl.index) {
            iris_d_ccl_stage_copy(to + i * stage->how->piece,
                                  stage->in + i * stage->part + piece.begin,
                                  piece.bytes, piece.bytes);
        }
    }
    iris_d_past_fence();
}

/* Copies the first piece, ahead of the hello. Returns the address that this
 * rank has to name there as its input. */
IRIS_DEVICE const void *iris_d_ccl_stage_first(const iris_d_ccl_stage_t *stage)
{
    if (stage->copies) {
        iris_d_ccl_stage_in(stage, 0, stage->ccl.epoch);
    }
    return (const void *)(stage->ccl.dev.heap_base - 1);
}

/* Address of piece `k` of member i's part for this rank. */
IRIS_DEVICE const char *iris_d_ccl_input(const iris_d_ccl_stage_t *stage,
                                         uint32_t i, size_t k)
{
    const iris_d_ccl_t *ccl = &stage->ccl;
    size_t part = stage->part == 0 ? 0 : ccl->index;
    size_t at = iris_d_ccl_piece(stage, k).begin + part * stage->part;

    if (i == ccl->index) {
        return stage->in + at;
    }
    return iris_d_ccl_stages(ccl, stage->members, i)
               ? iris_d_ccl_stage_of(stage, i, ccl->epoch) +
                     part * stage->how->piece
               : iris_d_ccl_at(stage->members, i) + at;
}

/* Begins step `k` of a call and copies the next piece. The hello has begun the
 * first step. */
IRIS_DEVICE void iris_d_ccl_stage_step(iris_d_ccl_stage_t *stage, size_t k)
{
    if (k > 0) {
        iris_d_ccl_bye(stage->wg, &stage->ccl);
        stage->ccl.epoch++;
    }
    if (stage->copies) {
        iris_d_ccl_stage_in(stage, k + 1, stage->ccl.epoch + 1);
    }
}

/* ---- Reductions ---------------------------------------------------------- */

/* Combines this rank's share of piece `k`, and stores the sums for the others
 * at `copy` unless that is NULL. */
IRIS_DEVICE_LARGE void
iris_d_ccl_stage_reduce(const iris_d_ccl_stage_t *stage,
                        const struct iris_ccl_reduce_args *args, size_t k,
                        char *copy)
{
    const iris_d_ccl_t *ccl = &stage->ccl;
    iris_d_ccl_share_t piece = iris_d_ccl_piece(stage, k);
    iris_d_ccl_share_t share = {0, piece.bytes};
    iris_d_ccl_row_t row;

    row.in = stage->from;
    row.count = ccl->count;
    row.op = (iris_reduce_op_t)args->op;
    row.scale = args->scale;
    row.before = row.sums = NULL;
    if (copy != NULL) {
        share = iris_d_ccl_share(ccl->index, ccl->count, piece.bytes);
    } else if (!stage->keeps) {
        return;
    }
    for (uint32_t i = 0; i < ccl->count; i++) {
        stage->from[i] = (uint64_t)(uintptr_t)iris_d_ccl_input(stage, i, k);
    }
    for (size_t at = 0; at < share.bytes; at += IRIS_CCL_ROW) {
        size_t left = share.bytes - at;
        size_t bytes = left < IRIS_CCL_ROW ? left : IRIS_CCL_ROW;
        char *to = stage->keeps ? stage->out + piece.begin + share.begin + at
                                : copy + at;

        row.at = share.begin + at;
        iris_d_ccl_reduce_row((enum iris_d_kind)args->kind, row, bytes, to);
        if (copy != NULL && stage->keeps) {
            iris_d_ccl_stage_copy(copy + at, to, bytes, share.bytes);
        }
    }
    iris_d_past_fence();
}

/* The address of a member's sums of step `epoch`, behind its input. */
IRIS_DEVICE char *iris_d_ccl_sums(const iris_d_ccl_stage_t *stage, uint32_t i,
                                  uint64_t epoch)
{
    return iris_d_ccl_stage_of(stage, i, epoch) + stage->how->piece;
}

/* Copies the other members' sums of piece `k`, from the previous step. */
IRIS_DEVICE void iris_d_ccl_stage_collect(const iris_d_ccl_stage_t *stage,
                                          size_t k)
{
    const iris_d_ccl_t *ccl = &stage->ccl;
    iris_d_ccl_share_t piece = iris_d_ccl_piece(stage, k);

    for (uint32_t i = 1; i < ccl->count && stage->keeps; i++) {
        uint32_t peer = iris_d_ccl_after(ccl, i);
        iris_d_ccl_share_t share =
            iris_d_ccl_share(peer, ccl->count, piece.bytes);

        iris_d_copy_bytes(stage->out + piece.begin + share.begin,
                          iris_d_ccl_sums(stage, peer, ccl->epoch - 1),
                          share.bytes);
    }
}

IRIS_DEVICE iris_d_ccl_stage_t
iris_d_ccl_stage_reduction(iris_wg_t wg, const iris_d_ccl_t *ccl,
                           const struct iris_ccl_reduce_args *args)
{
    iris_d_ccl_stage_t stage =
        iris_d_ccl_stage(wg, ccl, &args->staging, args->bytes);

    stage.in = (const char *)args->in;
    stage.out = (char *)args->out;
    stage.part = args->shape == IRIS_CCL_SCATTER ? args->bytes : 0;
    stage.copies = args->staging.staged;
    stage.keeps = args->root < 0 || ccl->index == (uint32_t)args->root;
    return stage;
}

/* The address that the hello has to name as the input of a rank that stages
 * it. */
IRIS_CPU_APART const void *
iris_d_ccl_reduce_first(iris_wg_t wg, iris_d_ccl_t ccl,
                        const struct iris_ccl_reduce_args *args)
{
    iris_d_ccl_stage_t stage = iris_d_ccl_stage_reduction(wg, &ccl, args);

    return iris_d_ccl_stage_first(&stage);
}

/* Reduces, after the hello, and ends the kernel. */
IRIS_CPU_APART void
iris_d_ccl_reduce_staged(iris_wg_t wg, iris_d_ccl_t ccl,
                         const struct iris_ccl_reduce_args *args,
                         iris_d_ccl_tables_t tables)
{
    iris_d_ccl_stage_t stage = iris_d_ccl_stage_reduction(wg, &ccl, args);
    iris_bool_t all_staged =
        iris_d_ccl_num_staged(&ccl, tables.in) == ccl.count;
    /* Two members both combine everything: this moves no more bytes, and saves
     * a step. Not if one of them does not stage: it may write its sums over its
     * input. */
    iris_bool_t to_all =
        args->shape == IRIS_CCL_TO_ALL && !(ccl.count == 2 && all_staged);

    stage.members = tables.in;
    stage.from = (iris_d_u64_t *)(uintptr_t)tables.out;
    for (size_t k = 0; k < stage.how->pieces; k++) {
        iris_d_ccl_stage_step(&stage, k);
        iris_d_ccl_stage_reduce(
            &stage, args, k,
            to_all ? iris_d_ccl_sums(&stage, ccl.index, stage.ccl.epoch)
                   : NULL);
        if (to_all && k > 0) {
            iris_d_ccl_stage_collect(&stage, k - 1);
        }
    }
    if (to_all || !(all_staged || args->async)) {
        iris_d_ccl_bye(wg, &stage.ccl);
    }
    if (to_all) {
        stage.ccl.epoch++;
        iris_d_ccl_stage_collect(&stage, stage.how->pieces - 1);
        /* The next kernel may cut the stage in another way, and peers may still
         * read these sums when it copies its first piece. So that piece goes to
         * the other parity. */
        stage.ccl.epoch++;
    }
    iris_d_ccl_end(wg, &stage.ccl);
}

/* ---- Collectives that only move data
 * ----------------------------------------- */

IRIS_DEVICE iris_d_ccl_stage_t
iris_d_ccl_stage_move(iris_wg_t wg, const iris_d_ccl_t *ccl,
                      const struct iris_ccl_move_args *args)
{
    iris_d_ccl_stage_t stage =
        iris_d_ccl_stage(wg, ccl, &args->staging, args->bytes);

    stage.in = (const char *)args->in;
    stage.out = (char *)args->out;
    stage.part = args->in_of_peer + args->in_of_self;
    stage.keeps = 1;
    stage.copies = args->staging.staged &&
                   (args->root < 0 || ccl->index == (uint32_t)args->root);
    return stage;
}

/* Like iris_d_ccl_reduce_first(). */
IRIS_CPU_APART const void *
iris_d_ccl_move_first(iris_wg_t wg, iris_d_ccl_t ccl,
                      const struct iris_ccl_move_args *args)
{
    iris_d_ccl_stage_t stage = iris_d_ccl_stage_move(wg, &ccl, args);

    return iris_d_ccl_stage_first(&stage);
}

/* Copies piece `k` of every member's part to its place. */
IRIS_DEVICE_LARGE void
iris_d_ccl_stage_out(const iris_d_ccl_stage_t *stage,
                     const struct iris_ccl_move_args *args, size_t k)
{
    const iris_d_ccl_t *ccl = &stage->ccl;
    iris_d_ccl_share_t piece = iris_d_ccl_piece(stage, k);
    size_t part = args->out_of_peer + args->out_of_self;

    for (uint32_t i = 0; i < ccl->count && piece.bytes > 0; i++) {
        uint32_t peer = iris_d_ccl_after(ccl, i);
        const char *from = iris_d_ccl_input(stage, peer, k);
        char *to = stage->out + peer * part + piece.begin;

        if ((args->root < 0 || peer == (uint32_t)args->root) && from != to) {
            iris_d_copy_bytes(to, from, piece.bytes);
        }
    }
}

/* Moves the data after the hello, and ends the kernel. It always reads,
 * with every variant. */
IRIS_CPU_APART void
iris_d_ccl_move_staged(iris_wg_t wg, iris_d_ccl_t ccl,
                       const struct iris_ccl_move_args *args,
                       iris_d_ccl_tables_t tables)
{
    iris_d_ccl_stage_t stage = iris_d_ccl_stage_move(wg, &ccl, args);

    stage.members = tables.in;
    for (size_t k = 0; k < stage.how->pieces; k++) {
        iris_d_ccl_stage_step(&stage, k);
        iris_d_ccl_stage_out(&stage, args, k);
    }
    if (!args->async && iris_d_ccl_num_staged(&ccl, tables.in) < ccl.count) {
        iris_d_ccl_bye(wg, &stage.ccl);
    }
    iris_d_ccl_end(wg, &stage.ccl);
}
#endif

#endif /* IRIS_DEVICE_KERNELS_CCL_STAGE_H */
