/* SPDX-License-Identifier: MIT
 *
 * Agreement, the one primitive under every collective host call: post what I am
 * calling, wait until all members have posted, compare.
 */
#ifndef IRIS_SRC_CONTROL_AGREE_H
#define IRIS_SRC_CONTROL_AGREE_H

#include "control/posts.h"

/* Blocks until every member has posted its call, and gives all the same
 * verdict: IRIS_OK; the failing member's status (with its own message here, or
 * one that names it); or IRIS_ERR_MISMATCH, saying what each called. What
 * members wrote before is visible after. IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT,
 * IRIS_ERR_INTERRUPTED and what keep_waiting() returns end the group: later
 * agreements fail the same way. A wait that takes long logs one line saying for
 * whom. */
iris_status_t iris_i_agree(struct iris_members *members,
                           const struct iris_call *call);

/* Shows that this rank is in a collective call, before it does its own part of
 * it, to peers that wonder why it is late. iris_i_agree() ends it. */
void iris_i_agree_begin(struct iris_control *control,
                        const struct iris_call_type *type);

/* Forgets, for what others are shown, the calls so far: those of init. */
void iris_i_agree_reset(struct iris_control *control);

#endif /* IRIS_SRC_CONTROL_AGREE_H */
