/* SPDX-License-Identifier: MIT
 *
 * The parts that each pair of members sends and receives in a call of messages.
 */
#ifndef IRIS_SRC_CCL_CCL_ROUTE_H
#define IRIS_SRC_CCL_CCL_ROUTE_H

#include <iris/device/kernels/ccl_args.h>

#include "ccl/ccl_types.h"

/* Sets in_at and in_bytes: the data for a member, which may be this rank. */
void iris_i_ccl_route_to(const struct iris_ccl_call *call, uint32_t member,
                         struct iris_ccl_route *route_p);

/* Sets out_at and out_bytes: the data from a member. */
void iris_i_ccl_route_from(const struct iris_ccl_call *call, uint32_t member,
                           struct iris_ccl_route *route_p);

/* A hash of the counts of an all_gatherv, which are the same on all members. */
uint32_t iris_i_ccl_route_hash(const struct iris_ccl_call *call);

/* Checks counts and members, and sets the call's sizes. IRIS_ERR_INVALID */
iris_status_t iris_i_ccl_route_sizes(const iris_t *iris,
                                     struct iris_ccl_call *call);

#endif /* IRIS_SRC_CCL_CCL_ROUTE_H */
