/* SPDX-License-Identifier: MIT
 *
 * Queries for flight records: this rank's answers, and rank 0's passing on of
 * other ranks' answers.
 */
#ifndef IRIS_SRC_CONTROL_HUB_QUERY_H
#define IRIS_SRC_CONTROL_HUB_QUERY_H

#include "control/hub.h"

/* Answers a rank of another host; ignores one of this host. The caller
 * flushes. */
void iris_i_hub_answer(struct iris_hub *hub,
                       const struct iris_message_head *query);

/* Rank 0: whether a message goes to one rank only, and passing it on. The
 * caller holds the lock. */
int iris_i_hub_is_answer(const struct iris_message_head *head);
void iris_i_hub_pass_on(struct iris_hub *hub,
                        const struct iris_message_head *head,
                        const struct iris_part parts[2]);

#endif /* IRIS_SRC_CONTROL_HUB_QUERY_H */
