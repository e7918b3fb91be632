/* SPDX-License-Identifier: MIT
 *
 * Rank 0: accepts connections to the control plane over sockets. The hub's
 * thread calls these functions.
 */
#ifndef IRIS_SRC_CONTROL_HUB_ACCEPT_H
#define IRIS_SRC_CONTROL_HUB_ACCEPT_H

#include "control/hub.h"

/* Accepts one connection, as a stranger's. If there are no descriptors, it is
 * told so. */
void iris_i_hub_accept(struct iris_hub *hub);

/* Whether a hello belongs to this job: 1; else 0 and the reason. */
int iris_i_hub_check_hello(const struct iris_hub *hub,
                           const struct iris_message_head *head,
                           const unsigned char *body,
                           char why[IRIS_MESSAGE_WHY_BYTES]);

/* The stranger is `rank`. */
void iris_i_hub_welcome(struct iris_hub *hub, struct iris_link *stranger,
                        int rank);

/* Tells it the reason, and closes its connection. */
void iris_i_hub_refuse(struct iris_hub *hub, struct iris_link *link,
                       iris_status_t status, const char *why);

/* No more ranks will connect. */
void iris_i_hub_close_listener(struct iris_hub *hub);

#endif /* IRIS_SRC_CONTROL_HUB_ACCEPT_H */
