/* SPDX-License-Identifier: MIT
 *
 * Options, types, sizes and buffers of a call, checked.
 */
#ifndef IRIS_SRC_CCL_CCL_CHECK_H
#define IRIS_SRC_CCL_CCL_CHECK_H

#include "ccl/ccl_types.h"

/* Takes over the options and finds the group. IRIS_ERR_INVALID */
iris_status_t iris_i_ccl_take_options(iris_t *iris, struct iris_ccl_call *call,
                                      const struct iris_ccl_options *options);

/* Checks the arguments and fills in sizes, kind, on_heap, in_place. */
iris_status_t iris_i_ccl_check(const iris_t *iris, struct iris_ccl_call *call);

#endif /* IRIS_SRC_CCL_CCL_CHECK_H */
