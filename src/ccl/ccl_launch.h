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

/* The same of a call of messages; `far`: it has ranks of other nodes. */
iris_status_t iris_i_ccl_launch_pairs(iris_t *iris,
                                      const struct iris_ccl_call *call,
                                      int far);

#endif /* IRIS_SRC_CCL_CCL_LAUNCH_H */
