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
#include "control/link.h"
#include "control/segment.h"

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
    atomic_uint dirty; /* parts that are shown and not sent yet */
    struct iris_segment *copy;
    atomic_uchar *ended;  /* by rank: its connection is over */
    pthread_mutex_t lock; /* links' sockets and what they have to send */
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

/* Parts that this rank's board in the copy shows are to be sent: now, or within
 * a while. */
void iris_i_hub_show(struct iris_hub *hub, unsigned parts, int now);

struct iris_board *iris_i_hub_board(struct iris_hub *hub, int rank);
struct iris_place *iris_i_hub_place(struct iris_hub *hub, int place);

/* For the hub's own files: its thread; waking it; no more ranks come. */
void *iris_i_hub_run(void *arg);
void iris_i_hub_wake(struct iris_hub *hub);
void iris_i_hub_close_listener(struct iris_hub *hub);

/* What a message says, for this rank's copy. 0: it is nonsense. (hub_apply.c)
 */
int iris_i_hub_apply(struct iris_hub *hub, const struct iris_message_head *head,
                     const unsigned char *body);

/* The connection of `rank` is over, for this rank's copy. (hub_apply.c) */
void iris_i_hub_end(struct iris_hub *hub, int rank);

/* Whether a hello is one of this job: 1; 0 and why. (hub_apply.c) */
int iris_i_hub_check_hello(const struct iris_hub *hub,
                           const struct iris_message_head *head,
                           const unsigned char *body,
                           char why[IRIS_MESSAGE_WHY_BYTES]);

#endif /* IRIS_SRC_CONTROL_HUB_H */
