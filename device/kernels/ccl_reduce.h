/* SPDX-License-Identifier: MIT
 *
 * Reductions that read the members' buffers in place: all_reduce in one shot
 * and in two shots, and reduce_scatter.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_REDUCE_H
#define IRIS_DEVICE_KERNELS_CCL_REDUCE_H

#include <iris/device/kernels/ccl_combine.h>
#include <iris/device/kernels/ccl_stage.h>

/* Fills in the share that this rank combines, and its receivers. work->ccl is
 * set. */
IRIS_DEVICE void iris_d_ccl_work_of(iris_d_ccl_work_t *work,
                                    const struct iris_ccl_reduce_args *args)
{
    uint32_t count = work->ccl.count, index = work->ccl.index;

    work->share.begin = 0;
    work->share.bytes = args->bytes;
    work->copies = 1;
    work->turn = 0;
    work->to = 0;
    if (args->shape == IRIS_CCL_TO_ALL) {
        work->share = iris_d_ccl_share(index, count, args->bytes);
        work->copies = count;
        work->to = work->share.begin;
    } else if (args->shape == IRIS_CCL_SCATTER) {
        work->share.begin = index * args->bytes;
    } else if (args->root >= 0 && (uint32_t)args->root != index) {
        work->share.bytes = 0;
    }
    if (args->root >= 0) { /* only the root's buffer is written */
        work->copies = 1;
        work->turn = (uint32_t)args->root +
                     ((uint32_t)args->root < index ? count : 0) - index;
    }
}

/* All loads of a piece come before its stores, and only this rank reads and
 * writes those places of the members' buffers. Therefore in and out may be the
 * same. */
IRIS_DEVICE void
iris_d_ccl_reduction(iris_wg_t wg, const struct iris_ccl_reduce_args *args,
                     enum iris_d_kind kind, iris_reduce_op_t op,
                     const struct iris_ccl_near *near, iris_d_u64_t *table)
{
    const void *in = args->in;
    iris_d_ccl_work_t work;
    size_t done = 0;

    work.kind = kind;
    work.op = op;
    work.ccl = near != NULL ? iris_d_ccl_begin_near(wg, &args->start, near)
                            : iris_d_ccl_begin(wg, &args->start);
    work.ccl.epoch++;
    iris_d_ccl_work_of(&work, args);
#if IRIS_ON_CPU
    if (IRIS_UNLIKELY(args->staging.staged)) {
        in = iris_d_ccl_reduce_first(wg, work.ccl, args);
    }
    (void)table;
    work.tables = iris_d_ccl_meet(wg, &work.ccl, in, args->out);
    if (iris_d_ccl_num_staged(&work.ccl, work.tables.in) != 0) {
        iris_d_ccl_reduce_staged(wg, work.ccl, args, work.tables);
        return;
    }
#else
    work.tables = iris_d_ccl_meet_by(wg, &work.ccl, near, in, args->out, table);
    if (near != NULL) {
        done = iris_d_ccl_reduce_many(wg, &work, args);
    }
#endif
    IRIS_LANES (wg, b,
                (work.share.bytes - done + IRIS_CCL_PIECE - 1) /
                    IRIS_CCL_PIECE) {
        size_t at = done + b * IRIS_CCL_PIECE;
        size_t left = work.share.bytes - at;

        iris_d_ccl_reduce(&work, args, at,
                          left < IRIS_CCL_PIECE ? left : IRIS_CCL_PIECE);
    }
    if (work.copies != 1 || args->root >= 0 || !args->async) {
        iris_d_ccl_bye_at(wg, &work.ccl, near);
    }
    if (near != NULL) {
        iris_d_ccl_end_near(wg, &work.ccl, near);
    } else {
        iris_d_ccl_end(wg, &work.ccl);
    }
}

IRIS_KERNEL(iris_k_ccl_reduce, struct iris_ccl_reduce_args)
{
    iris_d_ccl_reduction(wg, args, (enum iris_d_kind)args->kind,
                         (iris_reduce_op_t)args->op, NULL, NULL);
}

/* The frequent reductions (ccl_fold.h): iris_k_ccl_reduce_f32_sum and so on. */
#define IRIS_D_ROW(name, kind, op)                                     \
    IRIS_KERNEL(iris_k_ccl_reduce_##name, struct iris_ccl_reduce_args) \
    {                                                                  \
        IRIS_WG_LOCAL(iris_d_u64_t, table, IRIS_CCL_NEAR_WORDS);       \
        iris_d_ccl_reduction(wg, args, kind, op, &args->near, table);  \
    }
IRIS_CCL_FREQUENT_ROWS(IRIS_D_ROW)
#undef IRIS_D_ROW

#endif /* IRIS_DEVICE_KERNELS_CCL_REDUCE_H */
