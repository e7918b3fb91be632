/* SPDX-License-Identifier: MIT
 *
 * Connections to a meeting, until each of them has sent its first message. They
 * come from a local listener, and by a gate from other hosts.
 */
#ifndef IRIS_SRC_CONTROL_ARRIVALS_H
#define IRIS_SRC_CONTROL_ARRIVALS_H

#include <sys/types.h>

#include "base/gate.h"
#include "base/socket.h"

/* A rank's claims on a connection between hosts. */
struct iris_rank_claims {
    int32_t rank;
    int32_t num_ranks;
    uint64_t host; /* iris_i_host_id() */
};

/* One connection. */
struct iris_arrival {
    struct iris_arrival *next; /* the one that came before it */
    int sock;
    int is_far;
    pid_t pid;                      /* from the system; 0: on another host */
    struct iris_rank_claims claims; /* proven; of another host */
    struct iris_socket_message message;
    unsigned char data[]; /* of the message */
};

struct iris_arrivals {
    /* Readable when there is something to take. Without a free descriptor it is
     * the listener, so that ranks can still be told the reason. */
    int poll;
    int listener; /* -1: not open */
    int has_gate;
    size_t bytes; /* size of each first message */
    int most;     /* connections at once; the oldest is dropped */
    int count;
    unsigned num_failed; /* the gate's number that was reported last */
    struct iris_arrival *last;
    struct iris_gate gate;
};

/* Opens it for a local listener and, if far_listener is not -1, for a gate with
 * this key. The caller keeps the listeners. IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_arrivals_open(struct iris_arrivals *arrivals, int listener,
                                   int far_listener,
                                   const struct iris_secret *key, size_t bytes,
                                   int most);

/* Closes it, and all connections that were not taken. Does nothing if it is not
 * open. */
void iris_i_arrivals_close(struct iris_arrivals *arrivals);

/* Takes a connection whose first message has come; never waits. The caller owns
 * its socket and its descriptor, and frees *arrival_p, which is NULL if no
 * connection has sent its message.
 * - IRIS_OK
 * - IRIS_ERR_LIMIT with a connection: its message came without its descriptor
 * - IRIS_ERR_BOOTSTRAP with a connection: its message has another size
 * - IRIS_ERR_LIMIT without one: no descriptor to accept; the connection waits
 * - IRIS_ERR_BOOTSTRAP without one: a connection was turned away; the message has the
 *   reason
 * - IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_arrivals_take(struct iris_arrivals *arrivals,
                                   struct iris_arrival **arrival_p);

#endif /* IRIS_SRC_CONTROL_ARRIVALS_H */
