/* SPDX-License-Identifier: MIT
 *
 * The variant of a call and its workgroups.
 */
#ifndef IRIS_SRC_CCL_CHOOSE_H
#define IRIS_SRC_CCL_CHOOSE_H

#include "ccl/ccl_types.h"

/* The collective of that name, such as "all_reduce"; -1: not found. */
int iris_i_ccl_find_op(const char *name);

/* The collective's variant of that name, if auto may choose it; IRIS_CCL_AUTO:
 * not found. */
iris_ccl_variant_t iris_i_ccl_find_variant(enum iris_ccl_op op,
                                           const char *name);

/* The table's variant for a call of `bytes` (of `count` elements) in a group of
 * `members` ranks, on GPUs or on CPUs: the choice of auto without a tuning
 * file, for buffers on the heap and with workspaces that hold all packets. */
iris_ccl_variant_t iris_i_ccl_table_variant(enum iris_ccl_op op, int gpu,
                                            int members, size_t bytes);

/* Bytes of a part in one step of a variant with packets. */
size_t iris_i_ccl_step_bytes(const struct iris_ccl_call *call,
                             iris_ccl_variant_t variant);

/* Sets the variant and cus. IRIS_ERR_INVALID: the requested variant is not
 * possible. */
iris_status_t iris_i_ccl_choose(const iris_t *iris, struct iris_ccl_call *call);

/* Number of workgroups for this number of bytes of work on each rank. */
unsigned iris_i_ccl_grid(const iris_t *iris, const struct iris_ccl_call *call,
                         size_t bytes, size_t bytes_per_wg);

#endif /* IRIS_SRC_CCL_CHOOSE_H */
