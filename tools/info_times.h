/* SPDX-License-Identifier: MIT
 *
 * iris-info --explain: times that a fused operation is expected to take.
 */
#ifndef IRIS_TOOLS_INFO_TIMES_H
#define IRIS_TOOLS_INFO_TIMES_H

#include "ops/ops_types.h"

/* Prints the number of chunks of a checked call, the reason for it, and the
 * time of each number. */
void info_print_times(const iris_t *iris, const struct iris_ops_call *call);

#endif /* IRIS_TOOLS_INFO_TIMES_H */
