/* SPDX-License-Identifier: MIT
 *
 * The channel over stream sockets: one connection to each rank of another node.
 */
#ifndef IRIS_SRC_TRANSPORT_CHANNEL_SOCKET_H
#define IRIS_SRC_TRANSPORT_CHANNEL_SOCKET_H

#include "base/host_wait.h"
#include "control/rendezvous.h"
#include "control/stream_socket.h"
#include "transport/channel.h"

/* Listens for ranks of other nodes, before the rendezvous; this rank's hello
 * announces the address. The caller closes *sock_p. IRIS_ERR_LIMIT,
 * IRIS_ERR_SYSTEM */
iris_status_t iris_i_channel_socket_listen(enum iris_control_kind kind,
                                           struct iris_hello *hello,
                                           int *sock_p);

/* The parameters of the channel. */
struct iris_channel_params {
    const struct iris_log *log;
    const struct iris_rendezvous *rendezvous; /* with all hellos */
    const struct iris_waiter *waiter;         /* for the wait until all have
                                               * connected */
    int listener;                             /* taken over, also on failure */
    int (*is_far)(void *arg, int rank);       /* whether a rank is on another
                                               * node */
    void *arg;
};

/* Connects to all ranks of other nodes. Collective. IRIS_ERR_LIMIT,
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM, IRIS_ERR_TIMEOUT, IRIS_ERR_PEER_LOST */
iris_status_t
iris_i_channel_socket_open(const struct iris_channel_params *params,
                           struct iris_channel **channel_p);

#endif /* IRIS_SRC_TRANSPORT_CHANNEL_SOCKET_H */
