/* SPDX-License-Identifier: MIT
 *
 * The connections of one rank's control plane over sockets, and the thread that
 * serves them: on rank 0 to all others, elsewhere to rank 0. It keeps this
 * rank's copy of what the others show and post.
 */
#ifndef IRIS_SRC_CONTROL_HUB_H
#define IRIS_SRC_CONTROL_HUB_H

#include <pthread.h>

#include "control/control_socket.h"
#include "control/hub_copy.h"
#include "control/link.h"

/* Connections that have not said yet whose they are, at most. */
#define IRIS_HUB_STRANGERS 16

struct iris_hub {
    const struct iris_log *log;
    int rank;
    int num_ranks;
    int num_links;
    int listener; /* rank 0's, until all have connected; -1 */
    int spare;    /* rank 0's: a descriptor kept back to tell a rank that there
                   * are none left; -1 */
    int wake;     /* eventfd: there is something to send, or to end */
    int num_here; /* rank 0: how many have connected */
    int num_refused;
    atomic_int closing;
    atomic_int lost; /* not rank 0: the connection is over */
    int64_t close_by_ns;
    int64_t flush_by_ns;       /* when what was put goes out at the latest */
    atomic_uint dirty;         /* parts that are shown and not sent yet */
    struct iris_hub_copy copy; /* of what the others show and post */
    pthread_mutex_t lock;      /* links' sockets and what they have to send */
    pthread_t thread;
    struct iris_message_hello
        hello; /* what each has to say; or this rank says */
    struct pollfd *polled;
    struct iris_link *links; /* rank 0: of ranks, then strangers; else one */
};

/* Takes over `fds`, rank 0's, or `sock`, another's connection to rank 0. Starts
 * the thread. IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT; then they are the caller's
 * still. */
iris_status_t iris_i_hub_open(struct iris_hub *hub,
                              const struct iris_control_fds *fds, int sock);

/* Sends all that is to be sent, stays on rank 0 until the others have closed,
 * and closes; `stay_ms` at most. */
void iris_i_hub_close(struct iris_hub *hub, int stay_ms);

/* Says it to all other ranks, in order. */
void iris_i_hub_say(struct iris_hub *hub, const struct iris_message_head *head,
                    const struct iris_part parts[2]);

/* Parts that this rank's board in the copy shows are to be sent: those that are
 * urgent now, the others within a while. */
void iris_i_hub_show(struct iris_hub *hub, unsigned parts);

#endif /* IRIS_SRC_CONTROL_HUB_H */
