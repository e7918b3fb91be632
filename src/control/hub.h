/* SPDX-License-Identifier: MIT
 *
 * The connections of one rank's control plane over sockets, and the thread that
 * serves them. Rank 0 is connected to all others, each other rank to rank 0.
 * The thread keeps this rank's copy of the others' published states and posts.
 */
#ifndef IRIS_SRC_CONTROL_HUB_H
#define IRIS_SRC_CONTROL_HUB_H

#include <pthread.h>

#include "base/gate.h"
#include "control/control_socket.h"
#include "control/hub_copy.h"
#include "control/link.h"

struct iris_hub {
    const struct iris_log *log;
    int rank;
    int num_ranks;
    int num_links;
    int listener;           /* rank 0's, until all have connected; then -1 */
    struct iris_secret key; /* with which ranks prove themselves there */
    struct iris_gate gate;  /* at the listener */
    int spare; /* rank 0's: a reserved descriptor, to tell a rank that no others are left; -1 */
    int wake;  /* eventfd: there is a message to send, or the thread has
                   * to end */
    int num_here; /* rank 0: number of connected ranks */
    atomic_int closing;
    atomic_int lost; /* other ranks: the connection to rank 0 has ended */
    int64_t close_by_ns;
    int64_t flush_by_ns;       /* latest time for sending the pending
                                * messages */
    atomic_uint dirty;         /* published parts that were not sent yet */
    struct iris_hub_copy copy; /* the others' published states and posts */
    pthread_mutex_t lock;      /* protects the links' sockets and pending
                                * messages */
    pthread_t thread;
    struct pollfd *polled;
    struct iris_link *links; /* rank 0: to all ranks; others: one link */
};

/* Takes over `fds` (rank 0), or `sock`, the connection to rank 0 (other ranks).
 * Starts the thread. IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT; then the caller still
 * owns the descriptors. */
iris_status_t iris_i_hub_open(struct iris_hub *hub,
                              const struct iris_control_fds *fds, int sock);

/* Sends all pending messages and closes. Rank 0 first waits until the others
 * have closed, at most for `stay_ms`. */
void iris_i_hub_close(struct iris_hub *hub, int stay_ms);

/* Sends a message to all other ranks, in order. */
void iris_i_hub_say(struct iris_hub *hub, const struct iris_message_head *head,
                    const struct iris_part parts[2]);

/* Parts of this rank's board in the copy have changed: sends urgent parts now,
 * the others within a short time. */
void iris_i_hub_show(struct iris_hub *hub, unsigned parts);

#endif /* IRIS_SRC_CONTROL_HUB_H */
