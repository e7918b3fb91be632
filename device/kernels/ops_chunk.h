/* SPDX-License-Identifier: MIT
 *
 * The kernels of fused operations in chunks, besides products: they sum chunks
 * that have arrived, and clear the words of a call at its end.
 */
#ifndef IRIS_DEVICE_KERNELS_OPS_CHUNK_H
#define IRIS_DEVICE_KERNELS_OPS_CHUNK_H

#include <iris/device/wg/kernel.h>
#include <iris/device/kernels/ccl_combine.h>
#include <iris/device/kernels/ccl_space.h>
#include <iris/device/kernels/ops_args.h>
#include <iris/device/core/signal.h>

/* Reports that the call failed on that rank; or (0) that the words were those of
 * a call that did not end. */
IRIS_DEVICE_APART void iris_d_ops_refuse(iris_dev_t dev, uint64_t what,
                                         int rank, uint64_t failed)
{
    struct iris_dev_mismatch mismatch;

    mismatch.rank = (int32_t)dev.rank;
    mismatch.other = failed == 0 ? -1 : (int32_t)rank;
    mismatch.count = 0;
    mismatch.own.what = what;
    mismatch.own.sizes[0] = mismatch.own.sizes[1] = mismatch.own.sizes[2] = 0;
    mismatch.theirs = mismatch.own;
    mismatch.theirs.what = IRIS_OPS_CALL_FAILED;
    mismatch.theirs.sizes[0] = failed;
    iris_d_mismatch_tell(dev, &mismatch);
}

/* The end of a call, which has waited for all of its words: clears them, and
 * reports a rank whose call failed. One workgroup. */
IRIS_KERNEL(iris_k_ops_close, struct iris_ops_close_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES (wg, i, args->ranks) {
        struct iris_ops_words *words = &args->words[i];
        uint64_t most = IRIS_OPS_ARRIVED, old = 0;

        for (int w = 0; w < IRIS_OPS_WORDS_MOST; w++) {
            uint64_t seen = words->arrived[w];

            most = seen > most ? seen : most;
            old |= words[args->ranks].arrived[w];
            words->arrived[w] = 0;
        }
        if (IRIS_UNLIKELY(most > IRIS_OPS_ARRIVED || old != 0)) {
            iris_d_ops_refuse(dev, args->what, (int)i, most - IRIS_OPS_ARRIVED);
        }
    }
}

/* ---- Sums in the group's order, with the bits of reduce_scatter ---- */

/* clang-format off */
#if !IRIS_D_BLOCK_SUMS
#define IRIS_D_OPS_SUMS(name, TYPE, SUM)
#define IRIS_D_OPS_SUM_BLOCKS(name) 0
#else
/* Blocks of 16 bytes, if all buffers are aligned and have no gaps. */
#define IRIS_D_OPS_SUMS(name, TYPE, SUM)                                       \
    IRIS_DEVICE size_t iris_d_ops_sum_blocks_##name(                           \
        iris_wg_t wg, const struct iris_ops_sum_args *args)                    \
    {                                                                          \
        enum { N = IRIS_CCL_BLOCK_BYTES / sizeof(TYPE) };                      \
        size_t blocks = args->columns / N;                                     \
                                                                               \
        if (args->rows != 1 ||                                                 \
            (((uintptr_t)args->in | (uintptr_t)args->out | args->pitch) & 15) != 0) { \
            return 0;                                                          \
        }                                                                      \
        IRIS_LANES (wg, b, blocks) {                                           \
            const char *in = (const char *)args->in + b * 16;                  \
            const struct iris_ccl_scale one = {1, 1, 0};                       \
iris_d_block_t blocks[IRIS_CCL_BATCH];                             \
            iris_d_sums_t sums;                                                \
                                                                               \
            for (uint64_t i = 0; i < args->members; i += IRIS_CCL_BATCH) {     \
                IRIS_D_UNROLL                                                  \
                for (unsigned j = 0; j < IRIS_CCL_BATCH; j++) {                \
                    if (i + j < args->members) {                               \
                        iris_d_load_wide(blocks[j].words,                      \
                                         in + (i + j) * args->pitch);          \
                    }                                                          \
                }                                                              \
                if (i == 0) {                                                  \
                    iris_d_fold_begin(IRIS_D_KIND_##name, &sums, &blocks[0],   \
                                      sizeof blocks[0]);                       \
                }                                                              \
                IRIS_D_UNROLL                                                  \
                for (unsigned j = 0; j < IRIS_CCL_BATCH; j++) {                \
                    if (i + j > 0 && i + j < args->members) {                  \
                        iris_d_fold(IRIS_D_KIND_##name, IRIS_REDUCE_SUM, &sums,\
                                    &blocks[j], sizeof blocks[j]);             \
                    }                                                          \
                }                                                              \
            }                                                                  \
            iris_d_fold_finish(IRIS_D_KIND_##name, &blocks[0], &sums, one,     \
                               sizeof blocks[0]);                                  \
            iris_d_store_wide((char *)args->out + b * 16, blocks[0].words);    \
        }                                                                      \
        return blocks * N;                                                     \
    }
#define IRIS_D_OPS_SUM_BLOCKS(name) iris_d_ops_sum_blocks_##name(wg, args)
#endif

#define IRIS_D_OPS_SUM(name, TYPE, SUM)                                        \
    IRIS_D_OPS_SUMS(name, TYPE, SUM)                                           \
    IRIS_KERNEL(iris_k_ops_sum_##name, struct iris_ops_sum_args)               \
    {                                                                          \
        size_t first = IRIS_D_OPS_SUM_BLOCKS(name);                            \
                                                                               \
        IRIS_LANES (wg, e, args->rows * args->columns - first) {               \
            size_t at = first + e, row = at / args->columns;                   \
            const char *in = (const char *)args->in + at * sizeof(TYPE);       \
            const struct iris_ccl_scale one = {1, 1, 0};                       \
            SUM sum;                                                           \
                                                                               \
            iris_d_begin_##name(&sum, (const TYPE *)in, 1);                    \
            for (uint64_t i = 1; i < args->members; i++) {                     \
                iris_d_merge_all_##name(IRIS_REDUCE_SUM, &sum,                 \
                                        (const TYPE *)(in + i * args->pitch),  \
                                        1);                                    \
            }                                                                  \
            iris_d_finish_##name((TYPE *)args->out +                           \
                                     (int64_t)row * args->out_row +            \
                                     (int64_t)(at - row * args->columns),      \
                                 &sum, one, 1);                                \
        }                                                                      \
    }
IRIS_D_OPS_SUM(f32, float, float)
IRIS_D_OPS_SUM(f16, iris_f16_t, float)
IRIS_D_OPS_SUM(bf16, iris_bf16_t, float)
/* clang-format on */

#endif /* IRIS_DEVICE_KERNELS_OPS_CHUNK_H */
