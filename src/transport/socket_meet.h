/* SPDX-License-Identifier: MIT
 *
 * Connections to ranks of other nodes: the first ones, and new ones for
 * connections that have ended. The protocol is described in socket_meet.c.
 */
#ifndef IRIS_SRC_TRANSPORT_SOCKET_MEET_H
#define IRIS_SRC_TRANSPORT_SOCKET_MEET_H

#include "transport/channel_socket.h"

struct iris_meet;

/* The sessions' owner. The functions are called by iris_i_meet_turn() only. */
struct iris_meet_owner {
    /* Ends the rank's connection if there is one. Returns the number of bytes
     * that the session has received. */
    uint64_t (*received)(void *arg, int rank);

    /* Takes over a new connection. The rank has received `theirs` bytes. */
    void (*joined)(void *arg, int rank, int sock, uint64_t theirs);

    /* The rank cannot be reached. */
    void (*failed)(void *arg, int rank, const char *why);
    void *arg;
};

/* Keeps params->listener open, and closes it in any case. The epoll `watch`
 * gets the sockets, with `mark` as their data. IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_SYSTEM */
iris_status_t iris_i_meet_open(const struct iris_channel_params *params,
                               const struct iris_meet_owner *owner, int watch,
                               void *mark, struct iris_meet **meet_p);
void iris_i_meet_close(struct iris_meet *meet);

/* The rank needs a connection. The rank with the higher number makes it. */
void iris_i_meet_seek(struct iris_meet *meet, int rank);
void iris_i_meet_forget(struct iris_meet *meet, int rank);

/* Accepts, connects and proves as far as possible without waiting. Returns 1 if
 * it should be called again soon. */
int iris_i_meet_turn(struct iris_meet *meet);

#endif /* IRIS_SRC_TRANSPORT_SOCKET_MEET_H */
