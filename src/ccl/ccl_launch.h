/* SPDX-License-Identifier: MIT
 *
 * Calls as launches of kernels.
 */
#ifndef IRIS_SRC_CCL_CCL_LAUNCH_H
#define IRIS_SRC_CCL_CCL_LAUNCH_H

#include "ccl/ccl_types.h"

/* Enqueues the call, of more than one member and more than no element. */
iris_status_t iris_i_ccl_launch(iris_t *iris, const struct iris_ccl_call *call);

/* Enqueues a reduction of one member, of row i of its buffers. */
iris_status_t iris_i_ccl_launch_alone(iris_t *iris,
                                      const struct iris_ccl_call *call,
                                      size_t i);

/* The same of a group with ranks of other nodes. IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_ccl_launch_far(iris_t *iris,
                                    const struct iris_ccl_call *call);

#endif /* IRIS_SRC_CCL_CCL_LAUNCH_H */
