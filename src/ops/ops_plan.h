/* SPDX-License-Identifier: MIT
 *
 * How a call of a fused operation is done: in how many chunks.
 */
#ifndef IRIS_SRC_OPS_OPS_PLAN_H
#define IRIS_SRC_OPS_OPS_PLAN_H

#include <iris/context.h>
#include <iris/device/kernels/ops_args.h>

/* All members of a group come to the same. */
struct iris_ops_plan {
    int chunks; /* of rows, from 1 on */
    int copies; /* the stream copies what members get from each other, chunk by
                 * chunk; 0: one product and one collective */
    int workgroups; /* that a chunk's collective may have */
};

/* Whether a call has streams of its own. */
static inline int iris_i_ops_in_chunks(const struct iris_ops_plan *plan)
{
    return plan->chunks > 1 || plan->copies;
}

/* What a plan depends on, the same on all members. */
struct iris_ops_size {
    int64_t m; /* of the whole product */
    int64_t n;
    int64_t k;
    int64_t members;
    int64_t rows;  /* that are cut into chunks */
    int op;        /* enum iris_ops_op */
    int by_column; /* of an all_gather_matmul */
    iris_dtype_t dtype;
};

/* `asked`: the call's own number of chunks, 0: none; from 0 to
 * IRIS_OPS_CHUNKS_MOST. May load the library of products, and fails if that
 * does. */
iris_status_t iris_i_ops_plan(iris_t *iris, const struct iris_ops_size *size,
                              int asked, struct iris_ops_plan *plan_p);

#endif /* IRIS_SRC_OPS_OPS_PLAN_H */
