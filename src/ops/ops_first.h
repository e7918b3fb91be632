/* SPDX-License-Identifier: MIT
 *
 * The first products of their sizes, by a GPU's library for rank threads.
 */
#ifndef IRIS_SRC_OPS_OPS_FIRST_H
#define IRIS_SRC_OPS_OPS_FIRST_H

#include "ops/ops_types.h"

/* Sets call->is_first: the group has not made this call with these sizes yet,
 * and it uses a GPU's library that loads kernels by and by. The same on all
 * members. */
iris_status_t iris_i_ops_first(iris_t *iris, struct iris_ops_call *call);

/* In a first call, waits until every member has come to this place, and gives
 * all of them the status of the one that failed. Otherwise returns `status`. */
iris_status_t iris_i_ops_meet(const struct iris_ops_call *call,
                              iris_status_t status);

#endif /* IRIS_SRC_OPS_OPS_FIRST_H */
