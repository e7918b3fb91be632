/* SPDX-License-Identifier: MIT
 *
 * Checks of a call's options, types, sizes and buffers.
 */
#ifndef IRIS_SRC_CCL_CCL_CHECK_H
#define IRIS_SRC_CCL_CCL_CHECK_H

#include "ccl/ccl_types.h"

/* Copies the options and finds the group. IRIS_ERR_INVALID */
iris_status_t iris_i_ccl_take_options(iris_t *iris, struct iris_ccl_call *call,
                                      const struct iris_ccl_options *options);

/* Checks the arguments and sets sizes, kind, on_heap, in_place. */
iris_status_t iris_i_ccl_check(const iris_t *iris, struct iris_ccl_call *call);

#endif /* IRIS_SRC_CCL_CCL_CHECK_H */
