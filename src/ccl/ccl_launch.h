/* SPDX-License-Identifier: MIT
 *
 * Launches the kernels of calls.
 */
#ifndef IRIS_SRC_CCL_CCL_LAUNCH_H
#define IRIS_SRC_CCL_CCL_LAUNCH_H

#include "ccl/ccl_types.h"

/* Enqueues the call, for more than one member and at least one element. */
iris_status_t iris_i_ccl_launch(iris_t *iris, const struct iris_ccl_call *call);

/* Enqueues a reduction with one member, for row i of its buffers. */
iris_status_t iris_i_ccl_launch_alone(iris_t *iris,
                                      const struct iris_ccl_call *call,
                                      size_t i);

/* iris_i_ccl_launch() for a group with ranks of other nodes.
 * IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_ccl_launch_far(iris_t *iris,
                                    const struct iris_ccl_call *call);

/* iris_i_ccl_launch() for a call of messages. `far`: the group has ranks of
 * other nodes. */
iris_status_t iris_i_ccl_launch_pairs(iris_t *iris,
                                      const struct iris_ccl_call *call,
                                      int far);

/* Enqueues a collective without elements. The members only compare the calls
 * that they make. */
iris_status_t iris_i_ccl_launch_meeting(iris_t *iris,
                                        const struct iris_ccl_call *call,
                                        int far);

#endif /* IRIS_SRC_CCL_CCL_LAUNCH_H */
