/* SPDX-License-Identifier: MIT
 *
 * Reductions that read the members' buffers where they are: all_reduce in one
 * shot and in two, and reduce_scatter.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_REDUCE_H
#define IRIS_DEVICE_KERNELS_CCL_REDUCE_H

#include <iris/device/kernels/ccl_fold.h>
#include <iris/device/kernels/ccl_meet.h>
#include <iris/device/kernels/ccl_share.h>

/* How many members' loads a lane has under way. A CPU starts loads ahead by
 * itself. */
#if IRIS_ON_CPU
#define IRIS_CCL_BATCH 1
#else
#define IRIS_CCL_BATCH 4
#endif

#if IRIS_ON_CPU
IRIS_DEVICE void iris_d_ccl_load(iris_d_block_t *to, const char *from,
                                 size_t bytes)
{
    if (bytes == sizeof *to) {
        iris_d_copy_bytes(to, from, sizeof *to);
    } else {
        iris_d_copy_bytes(to, from, bytes);
    }
}

IRIS_DEVICE void iris_d_ccl_store(char *to, const iris_d_block_t *from,
                                  size_t bytes)
{
    iris_d_copy_bytes(to, from, bytes);
}
#else
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
#endif

/* Combines the members' blocks at `at`, in the group's order. */
IRIS_DEVICE void iris_d_ccl_combine(const iris_d_ccl_t *ccl,
                                    const struct iris_ccl_reduce_args *args,
                                    const iris_d_u64_t *in, size_t at,
                                    size_t bytes, iris_d_block_t *result)
{
    enum iris_d_kind kind = (enum iris_d_kind)args->kind;
    iris_reduce_op_t op = (iris_reduce_op_t)args->op;
    iris_d_block_t blocks[IRIS_CCL_BATCH];
    iris_d_sums_t sums;

    for (uint32_t first = 0; first < ccl->count; first += IRIS_CCL_BATCH) {
        IRIS_D_UNROLL
        for (uint32_t k = 0; k < IRIS_CCL_BATCH; k++) {
            if (first + k < ccl->count) {
                iris_d_ccl_load(&blocks[k], iris_d_ccl_at(in, first + k) + at,
                                bytes);
            }
        }
        /* The next block moves down: registers cannot be indexed, and with the
         * loop unrolled all of the arithmetic would be there as often. */
        for (uint32_t k = 0; k < IRIS_CCL_BATCH && first + k < ccl->count;
             k++) {
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
    iris_d_fold_finish(kind, result, &sums, sizeof *result);
}

/* All loads of a block are before its stores, and only this rank reads and
 * writes those places of the members' buffers: in and out may be the same. */
IRIS_KERNEL(iris_k_ccl_reduce, struct iris_ccl_reduce_args)
{
    iris_d_ccl_t ccl = iris_d_ccl_begin(wg, &args->start);
    iris_d_ccl_share_t share = {0, args->bytes};
    uint32_t copies = args->shape == IRIS_CCL_TO_ALL ? ccl.count : 1;
    iris_d_ccl_tables_t tables;
    size_t to = 0;

    ccl.epoch++;
    if (args->shape == IRIS_CCL_TO_ALL) {
        share = iris_d_ccl_share(ccl.index, ccl.count, args->bytes);
        to = share.begin;
    } else if (args->shape == IRIS_CCL_SCATTER) {
        share.begin = ccl.index * args->bytes;
    }
    tables = iris_d_ccl_meet(wg, &ccl, args->in, args->out);
    IRIS_LANES (wg, b, (share.bytes + IRIS_CCL_BLOCK - 1) / IRIS_CCL_BLOCK) {
        size_t at = b * IRIS_CCL_BLOCK;
        size_t bytes = share.bytes - at < IRIS_CCL_BLOCK ? share.bytes - at
                                                         : IRIS_CCL_BLOCK;
        iris_d_block_t result;

        iris_d_ccl_combine(&ccl, args, tables.in, share.begin + at, bytes,
                           &result);
        for (uint32_t i = 0; i < copies; i++) {
            iris_d_ccl_store(
                iris_d_ccl_at(tables.out, iris_d_ccl_after(&ccl, i)) + to + at,
                &result, bytes);
        }
    }
    if (copies != 1 || !args->async) {
        iris_d_ccl_bye(wg, &ccl);
    }
    iris_d_ccl_end(wg, &ccl);
}

#endif /* IRIS_DEVICE_KERNELS_CCL_REDUCE_H */
