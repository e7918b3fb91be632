/* SPDX-License-Identifier: MIT
 *
 * Rank 0: who is let in to the control plane over sockets. The hub's thread
 * calls all of this.
 */
#ifndef IRIS_SRC_CONTROL_HUB_ACCEPT_H
#define IRIS_SRC_CONTROL_HUB_ACCEPT_H

#include "control/hub.h"

/* Accepts one connection, as a stranger's; for want of descriptors it hears
 * so. */
void iris_i_hub_accept(struct iris_hub *hub);

/* Whether a hello is one of this job: 1; 0 and why. */
int iris_i_hub_check_hello(const struct iris_hub *hub,
                           const struct iris_message_head *head,
                           const unsigned char *body,
                           char why[IRIS_MESSAGE_WHY_BYTES]);

/* The stranger is `rank`. */
void iris_i_hub_welcome(struct iris_hub *hub, struct iris_link *stranger,
                        int rank);

/* Tells it why not, and closes its connection. */
void iris_i_hub_refuse(struct iris_hub *hub, struct iris_link *link,
                       iris_status_t status, const char *why);

/* No more ranks come. */
void iris_i_hub_close_listener(struct iris_hub *hub);

#endif /* IRIS_SRC_CONTROL_HUB_ACCEPT_H */
