/* SPDX-License-Identifier: MIT
 *
 * How a call of a fused operation is done: in how many chunks.
 */
#ifndef IRIS_SRC_OPS_OPS_PLAN_H
#define IRIS_SRC_OPS_OPS_PLAN_H

#include <iris/context.h>

#define IRIS_OPS_CHUNKS_MOST 8

/* All members of a group come to the same. */
struct iris_ops_plan {
    int chunks; /* of rows, from 1 on; 1: the product, then the collective */
};

/* What a plan depends on, the same on all members. */
struct iris_ops_size {
    int64_t m; /* of the whole product */
    int64_t n;
    int64_t k;
    int64_t members;
    int64_t rows; /* that are cut into chunks */
    iris_dtype_t dtype;
};

/* `asked`: the call's own number of chunks, 0: none; from 0 to
 * IRIS_OPS_CHUNKS_MOST. */
struct iris_ops_plan iris_i_ops_plan(const iris_t *iris,
                                     const struct iris_ops_size *size,
                                     int asked);

#endif /* IRIS_SRC_OPS_OPS_PLAN_H */
