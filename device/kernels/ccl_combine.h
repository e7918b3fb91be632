/* SPDX-License-Identifier: MIT
 *
 * How a lane reads the members' elements from their buffers and combines them.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_COMBINE_H
#define IRIS_DEVICE_KERNELS_CCL_COMBINE_H

#include <iris/device/kernels/ccl_fold.h>
#include <iris/device/kernels/ccl_meet.h>
#include <iris/device/kernels/ccl_rows.h>
#include <iris/device/kernels/ccl_share.h>

/* The work of one workgroup: combines `share` of the members' buffers and
 * writes the result to `copies` of the buffers, `to` bytes from the start of
 * each. The first of these buffers belongs to the member `turn` after this
 * one. */
typedef struct iris_d_ccl_work {
    iris_d_ccl_t ccl;
    iris_d_ccl_tables_t tables;
    iris_d_ccl_share_t share;
    uint32_t copies;
    uint32_t turn;
    size_t to;
    enum iris_d_kind kind;
    iris_reduce_op_t op;
} iris_d_ccl_work_t;

/* The target of the i-th copy of the bytes at `at` in the share. */
IRIS_DEVICE char *iris_d_ccl_result(const iris_d_ccl_work_t *work, uint32_t i,
                                    size_t at)
{
    uint32_t member = iris_d_ccl_after(&work->ccl, work->turn + i);

    return iris_d_ccl_at(work->tables.out, member) + work->to + at;
}

#if IRIS_ON_CPU
#define IRIS_CCL_PIECE IRIS_CCL_ROW

IRIS_DEVICE void iris_d_ccl_reduce(const iris_d_ccl_work_t *work,
                                   const struct iris_ccl_reduce_args *args,
                                   size_t at, size_t bytes)
{
    iris_d_ccl_row_t row;
    char *own = iris_d_ccl_result(work, 0, at);

    row.in = work->tables.in;
    row.at = work->share.begin + at;
    row.count = work->ccl.count;
    row.op = work->op;
    row.scale = args->scale;
    row.before = row.sums = NULL;
    iris_d_ccl_reduce_row(work->kind, row, bytes, own);
    for (uint32_t i = 1; i < work->copies; i++) {
        iris_d_copy_bytes(iris_d_ccl_result(work, i, at), own, bytes);
    }
}
#else
#define IRIS_CCL_PIECE IRIS_CCL_BLOCK_BYTES
/* Number of members whose loads a lane has in flight. */
#define IRIS_CCL_BATCH 4

IRIS_DEVICE void iris_d_load_wide(uint32_t *words, const char *from)
{
    union {
        iris_d_u128_t wide;
        uint32_t words[4];
    } u;

    u.wide = *(const iris_d_u128_t *)from;
    IRIS_D_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        words[k] = u.words[k];
    }
}

IRIS_DEVICE void iris_d_store_wide(char *to, const uint32_t *words)
{
    union {
        iris_d_u128_t wide;
        uint32_t words[4];
    } u;

    IRIS_D_UNROLL
    for (unsigned k = 0; k < 4; k++) {
        u.words[k] = words[k];
    }
    *(iris_d_u128_t *)to = u.wide;
}

/* The `bytes` bytes at `from` as a word, at most four of them. */
IRIS_DEVICE uint32_t iris_d_ccl_load_word(const char *from, size_t bytes)
{
    uint32_t word = 0;

    IRIS_D_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        word |= i < bytes ? (uint32_t)(uint8_t)from[i] << (8 * i) : 0;
    }
    return word;
}

IRIS_DEVICE void iris_d_ccl_store_word(char *to, uint32_t word, size_t bytes)
{
    IRIS_D_UNROLL
    for (unsigned i = 0; i < 4; i++) {
        if (i < bytes) {
            to[i] = (char)(word >> (8 * i));
        }
    }
}

/* Blocks at the end are shorter, and buffers need not be aligned to blocks. */
IRIS_DEVICE void iris_d_ccl_load(iris_d_block_t *to, const char *from,
                                 size_t bytes)
{
    iris_bool_t words = (((uintptr_t)from | bytes) & 3) == 0;

    if (((uintptr_t)from & 15) == 0 && bytes == sizeof *to) {
        iris_d_load_wide(to->words, from);
        return;
    }
    IRIS_D_UNROLL
    for (unsigned k = 0; k < sizeof *to / 4; k++) {
        size_t left = 4 * k < bytes ? bytes - 4 * k : 0;

        if (words && left != 0) {
            to->words[k] = *(const iris_d_u32_t *)(from + 4 * k);
        } else {
            to->words[k] = iris_d_ccl_load_word(from + 4 * k, left);
        }
    }
}

IRIS_DEVICE void iris_d_ccl_store(char *to, const iris_d_block_t *from,
                                  size_t bytes)
{
    iris_bool_t words = (((uintptr_t)to | bytes) & 3) == 0;

    if (((uintptr_t)to & 15) == 0 && bytes == sizeof *from) {
        iris_d_store_wide(to, from->words);
        return;
    }
    IRIS_D_UNROLL
    for (unsigned k = 0; k < sizeof *from / 4; k++) {
        size_t left = 4 * k < bytes ? bytes - 4 * k : 0;

        if (words && left != 0) {
            *(iris_d_u32_t *)(to + 4 * k) = from->words[k];
        } else {
            iris_d_ccl_store_word(to + 4 * k, from->words[k], left);
        }
    }
}

/* Combines the members' blocks at `at`, in the group's order. */
IRIS_DEVICE void iris_d_ccl_combine(const iris_d_ccl_work_t *work,
                                    const struct iris_ccl_reduce_args *args,
                                    size_t at, size_t bytes,
                                    iris_d_block_t *result)
{
    enum iris_d_kind kind = work->kind;
    iris_reduce_op_t op = work->op;
    uint32_t count = work->ccl.count;
    iris_d_block_t blocks[IRIS_CCL_BATCH];
    iris_d_sums_t sums;

    for (uint32_t first = 0; first < count; first += IRIS_CCL_BATCH) {
        IRIS_D_UNROLL
        for (uint32_t k = 0; k < IRIS_CCL_BATCH; k++) {
            if (first + k < count) {
                iris_d_ccl_load(&blocks[k],
                                iris_d_ccl_at(work->tables.in, first + k) + at,
                                bytes);
            }
        }
        /* Moves the next block down, because registers cannot be indexed. The
         * loop must not be unrolled: that would repeat all of the
         * arithmetic. */
        for (uint32_t k = 0; k < IRIS_CCL_BATCH && first + k < count; k++) {
            if (first + k == 0) {
                iris_d_fold_begin(kind, &sums, &blocks[0], sizeof blocks[0]);
            } else {
                iris_d_fold(kind, op, &sums, &blocks[0], sizeof blocks[0]);
            }
            IRIS_D_UNROLL
            for (uint32_t j = 1; j < IRIS_CCL_BATCH; j++) {
                blocks[j - 1] = blocks[j];
            }
        }
    }
    iris_d_fold_finish(kind, result, &sums, args->scale, sizeof *result);
}

IRIS_DEVICE void iris_d_ccl_reduce(const iris_d_ccl_work_t *work,
                                   const struct iris_ccl_reduce_args *args,
                                   size_t at, size_t bytes)
{
    iris_d_block_t result;

    iris_d_ccl_combine(work, args, work->share.begin + at, bytes, &result);
    for (uint32_t i = 0; i < work->copies; i++) {
        iris_d_ccl_store(iris_d_ccl_result(work, i, at), &result, bytes);
    }
}

/* Blocks that a lane takes in a turn, and has in flight of each member, where
 * the kind is a constant. */
#define IRIS_CCL_TURN 4
#define IRIS_CCL_DEPTH 2
/* In a share of this size the sums are sent after all of them are made: links
 * carry loads and stores faster one after the other than at once. */
#ifndef IRIS_CCL_APART_BYTES
#define IRIS_CCL_APART_BYTES ((size_t)4 << 20)
#endif

/* Whether all buffers are aligned for whole blocks. */
IRIS_DEVICE iris_bool_t iris_d_ccl_is_aligned(const iris_d_ccl_work_t *work)
{
    uintptr_t bits = (uintptr_t)(work->share.begin | work->to);

    for (uint32_t i = 0; i < work->ccl.count; i++) {
        bits |= (uintptr_t)(work->tables.in[i] | work->tables.out[i]);
    }
    return (bits & (IRIS_CCL_BLOCK_BYTES - 1)) == 0;
}

/* Combines IRIS_CCL_DEPTH blocks, the first one at `at`, `apart` bytes from one
 * to the next, for the first `copies` members. All loads of a batch of members
 * are in flight at once. */
IRIS_DEVICE void iris_d_ccl_reduce_deep(const iris_d_ccl_work_t *work,
                                        const struct iris_ccl_reduce_args *args,
                                        size_t at, size_t apart,
                                        uint32_t copies)
{
    const size_t block = IRIS_CCL_BLOCK_BYTES;
    uint32_t count = work->ccl.count;
    iris_d_sums_t sums[IRIS_CCL_DEPTH];

    for (uint32_t first = 0; first < count; first += IRIS_CCL_BATCH) {
        iris_d_block_t blocks[IRIS_CCL_BATCH][IRIS_CCL_DEPTH];

        IRIS_D_UNROLL
        for (uint32_t i = 0; i < IRIS_CCL_BATCH * IRIS_CCL_DEPTH; i++) {
            uint32_t k = i / IRIS_CCL_DEPTH, d = i % IRIS_CCL_DEPTH;

            if (first + k < count) {
                iris_d_load_wide(blocks[k][d].words,
                                 iris_d_ccl_at(work->tables.in, first + k) +
                                     work->share.begin + at + d * apart);
            }
        }
        IRIS_D_UNROLL
        for (uint32_t i = 0; i < IRIS_CCL_BATCH * IRIS_CCL_DEPTH; i++) {
            uint32_t k = i / IRIS_CCL_DEPTH, d = i % IRIS_CCL_DEPTH;

            if (first + k == 0) {
                iris_d_fold_begin(work->kind, &sums[d], &blocks[k][d], block);
            } else if (first + k < count) {
                iris_d_fold(work->kind, work->op, &sums[d], &blocks[k][d],
                            block);
            }
        }
    }
    IRIS_D_UNROLL
    for (uint32_t d = 0; d < IRIS_CCL_DEPTH; d++) {
        iris_d_block_t result;

        iris_d_fold_finish(work->kind, &result, &sums[d], args->scale, block);
        for (uint32_t i = 0; i < copies; i++) {
            iris_d_store_wide(iris_d_ccl_result(work, i, at + d * apart),
                              result.words);
        }
    }
}

/* Sends the sums of a turn of this lane to the other members. */
IRIS_DEVICE void iris_d_ccl_spread(const iris_d_ccl_work_t *work, size_t at,
                                   size_t apart)
{
    iris_d_block_t blocks[IRIS_CCL_TURN];

    IRIS_D_UNROLL
    for (uint32_t d = 0; d < IRIS_CCL_TURN; d++) {
        iris_d_load_wide(blocks[d].words,
                         iris_d_ccl_result(work, 0, at + d * apart));
    }
    for (uint32_t i = 1; i < work->copies; i++) {
        char *to = iris_d_ccl_result(work, i, at);

        IRIS_D_UNROLL
        for (uint32_t d = 0; d < IRIS_CCL_TURN; d++) {
            iris_d_store_wide(to + d * apart, blocks[d].words);
        }
    }
}

/* The workgroup's part of the blocks that lanes combine IRIS_CCL_DEPTH at a
 * time. Returns the bytes of the share that all workgroups combine so. A lane
 * sends its own sums only, so nothing waits between sums and sending. */
IRIS_DEVICE size_t
iris_d_ccl_reduce_many(iris_wg_t wg, const iris_d_ccl_work_t *work,
                       const struct iris_ccl_reduce_args *args)
{
    size_t apart = (size_t)wg.num_lanes * IRIS_CCL_BLOCK_BYTES;
    size_t turn = apart * IRIS_CCL_TURN;
    size_t turns = work->share.bytes / turn;
    size_t own = iris_d_lane() * IRIS_CCL_BLOCK_BYTES;
    iris_bool_t later =
        work->copies > 1 && work->share.bytes >= IRIS_CCL_APART_BYTES;

    if (!iris_d_ccl_is_aligned(work)) {
        return 0;
    }
    for (size_t t = wg.id; t < turns; t += wg.num_wgs) {
        for (uint32_t d = 0; d < IRIS_CCL_TURN; d += IRIS_CCL_DEPTH) {
            iris_d_ccl_reduce_deep(work, args, t * turn + own + d * apart,
                                   apart, later ? 1 : work->copies);
        }
    }
    for (size_t t = wg.id; later && t < turns; t += wg.num_wgs) {
        iris_d_ccl_spread(work, t * turn + own, apart);
    }
    return turns * turn;
}
#endif

#endif /* IRIS_DEVICE_KERNELS_CCL_COMBINE_H */
