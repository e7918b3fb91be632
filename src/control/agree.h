/* SPDX-License-Identifier: MIT
 *
 * Agreement, the primitive under every collective host call: a rank posts its
 * call, waits until all members have posted, and compares.
 */
#ifndef IRIS_SRC_CONTROL_AGREE_H
#define IRIS_SRC_CONTROL_AGREE_H

#include "control/posts.h"

/* Blocks until every member has posted its call, and gives all members the same
 * verdict:
 * - IRIS_OK;
 * - the failing member's status (on that member with its own message, on the
 *   others with one that names it);
 * - IRIS_ERR_MISMATCH, with each member's call in the message. Earlier writes
 *   of all members are visible afterwards. IRIS_ERR_PEER_LOST,
 *   IRIS_ERR_TIMEOUT, IRIS_ERR_INTERRUPTED and a status of keep_waiting() end
 *   the group: later agreements fail the same way. A long wait logs one line
 *   that names the missing ranks. */
iris_status_t iris_i_agree(struct iris_members *members,
                           const struct iris_call *call);

/* Shows peers that this rank is in a collective call, before it does its own
 * part of it. Peers whose wait is long read this. iris_i_agree() ends it. */
void iris_i_agree_begin(struct iris_control *control,
                        const struct iris_call_type *type);

/* Resets the count of calls that peers see, which includes those of init. */
void iris_i_agree_reset(struct iris_control *control);

#endif /* IRIS_SRC_CONTROL_AGREE_H */
