/* SPDX-License-Identifier: MIT
 *
 * Plans a call of a fused operation: the number of chunks.
 */
#ifndef IRIS_SRC_OPS_OPS_PLAN_H
#define IRIS_SRC_OPS_OPS_PLAN_H

#include <iris/context.h>
#include <iris/device/kernels/ops_args.h>

/* All members of a group get the same plan. */
struct iris_ops_plan {
    int chunks;     /* number of chunks of rows, from 1 on */
    int workgroups; /* most workgroups for a chunk's collective */
};

/* Whether a call uses its own streams. */
static inline int iris_i_ops_in_chunks(const struct iris_ops_plan *plan)
{
    return plan->chunks > 1;
}

/* The inputs of a plan, the same on all members. */
struct iris_ops_size {
    int64_t m; /* rows of the whole product */
    int64_t n;
    int64_t k;
    int64_t members;
    int64_t rows;  /* rows that are cut into chunks */
    int op;        /* enum iris_ops_op */
    int by_column; /* for an all_gather_matmul */
    iris_dtype_t dtype;
};

/* `asked` is the call's own number of chunks, from 1 to IRIS_OPS_CHUNKS_MOST;
 * 0: not set. May load the BLAS library, and fails if that fails. */
iris_status_t iris_i_ops_plan(iris_t *iris, const struct iris_ops_size *size,
                              int asked, struct iris_ops_plan *plan_p);

#endif /* IRIS_SRC_OPS_OPS_PLAN_H */
