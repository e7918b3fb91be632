/* SPDX-License-Identifier: MIT
 *
 * Memory of fused operations besides their tensors.
 */
#ifndef IRIS_SRC_OPS_OPS_WORKSPACE_H
#define IRIS_SRC_OPS_OPS_WORKSPACE_H

#include "ops/ops_types.h"

/* Finds the memory for a checked call. */
iris_status_t iris_i_ops_workspace(iris_t *iris, struct iris_ops_call *call);

/* Makes a workspace for a call. `checked`: the status of the caller's own
 * checks. */
iris_status_t iris_i_ops_make_workspace(iris_t *iris,
                                        const struct iris_ops_call *call,
                                        iris_status_t checked,
                                        iris_ops_workspace_t **workspace_p);

#endif /* IRIS_SRC_OPS_OPS_WORKSPACE_H */
