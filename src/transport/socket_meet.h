/* SPDX-License-Identifier: MIT
 *
 * Connections to all ranks of other nodes.
 */
#ifndef IRIS_SRC_TRANSPORT_SOCKET_MEET_H
#define IRIS_SRC_TRANSPORT_SOCKET_MEET_H

#include "transport/channel_socket.h"

/* Fills socks[rank] for each rank: a connection, or -1 for ranks of this node.
 * The caller closes them, also on failure. Collective; returns the errors of
 * iris_i_channel_socket_open(). */
iris_status_t iris_i_socket_meet(const struct iris_channel_params *params,
                                 int *socks);

#endif /* IRIS_SRC_TRANSPORT_SOCKET_MEET_H */
