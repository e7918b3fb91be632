/* SPDX-License-Identifier: MIT
 *
 * Checks a call's options, tensors and sizes, and computes members' shares.
 */
#ifndef IRIS_SRC_OPS_OPS_CHECK_H
#define IRIS_SRC_OPS_OPS_CHECK_H

#include "ops/ops_types.h"

/* Copies the options, checks the tensors, and sets all derived values except
 * the memory. */
iris_status_t iris_i_ops_check(iris_t *iris, struct iris_ops_call *call,
                               const struct iris_ops_options *options);

/* A member's share of `rows` rows. */
struct iris_ops_share {
    int64_t begin;
    int64_t rows;
};
struct iris_ops_share iris_i_ops_share(const struct iris_ops_call *call,
                                       int64_t rows, int64_t member);

/* The largest number of rows of a member. */
int64_t iris_i_ops_most(const struct iris_ops_call *call, int64_t rows);

#endif /* IRIS_SRC_OPS_OPS_CHECK_H */
