/* SPDX-License-Identifier: MIT
 *
 * Options, tensors and sizes of a call, checked, and members' shares.
 */
#ifndef IRIS_SRC_OPS_OPS_CHECK_H
#define IRIS_SRC_OPS_OPS_CHECK_H

#include "ops/ops_types.h"

/* Takes over the options, checks the tensors, fills in what follows but the
 * memory. */
iris_status_t iris_i_ops_check(iris_t *iris, struct iris_ops_call *call,
                               const struct iris_ops_options *options);

/* Which rows of `rows` a member has. */
struct iris_ops_share {
    int64_t begin;
    int64_t rows;
};
struct iris_ops_share iris_i_ops_share(const struct iris_ops_call *call,
                                       int64_t rows, int64_t member);

/* The most rows that a member has. */
int64_t iris_i_ops_most(const struct iris_ops_call *call, int64_t rows);

/* What the plan of a call that has been checked depends on. */
struct iris_ops_size iris_i_ops_size(const struct iris_ops_call *call);

#endif /* IRIS_SRC_OPS_OPS_CHECK_H */
