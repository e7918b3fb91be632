/* SPDX-License-Identifier: MIT
 *
 * Rank 0: accepts connections to the control plane over sockets. The hub's
 * thread calls these functions.
 */
#ifndef IRIS_SRC_CONTROL_HUB_ACCEPT_H
#define IRIS_SRC_CONTROL_HUB_ACCEPT_H

#include "control/hub.h"

/* Opens the gate at hub->listener. IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_hub_open_gate(struct iris_hub *hub);

/* Serves the connections of strangers and of ranks that have not proven
 * themselves, and welcomes those that have. If there are no descriptors, a rank
 * is told so. */
void iris_i_hub_accept(struct iris_hub *hub);

/* No more ranks will connect. */
void iris_i_hub_close_listener(struct iris_hub *hub);

#endif /* IRIS_SRC_CONTROL_HUB_ACCEPT_H */
