/* SPDX-License-Identifier: MIT
 *
 * The rendezvous: every rank says hello to rank 0 over a local socket, rank 0
 * answers all with one verdict, the control segment and every heap's handle.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_H

#include "backend/backend.h"
#include "control/bootstrap.h"
#include "control/endpoint.h"
#include "base/address.h"
#include "base/host_wait.h"

struct iris_segment;

/* What a rank brings. A rank whose own preparation failed comes all the same,
 * so that its peers learn why at once instead of waiting for it. */
struct iris_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank;
    int32_t num_ranks;
    int32_t pid;
    int32_t status; /* of its preparation; `message` says why, if not OK */
    uint64_t pid_namespace; /* iris_i_rendezvous_join() fills it in */
    uint64_t host; /* and this: its iris_i_host_id(); 0: the job has one */
    int32_t part;  /* of its host that it pretends to be a node */
    uint64_t heap_bytes;
    uint64_t heap_id;   /* a word on it */
    int32_t check;      /* IRIS_CHECK, as a number */
    int32_t control;    /* enum iris_control_kind: IRIS_CONTROL */
    char host_name[32]; /* empty as long as host is 0 */
    struct iris_address control_address; /* rank 0's */
    struct iris_address far_address;  /* for ranks of other nodes; of 0 bytes:
                                      * they cannot reach this one */
    unsigned char control_secret[32]; /* rank 0's: what the others have to say
                                       * there */
    char backend[16];
    char endpoint[IRIS_ENDPOINT_NAME_BYTES]; /* its socket; empty: none */
    char message[IRIS_MESSAGE_BYTES]; /* if OK: why it uses no GPU, or empty */
    struct iris_heap_handle handle;   /* its fd travels beside it */
};

/* Whether two ranks are on the same host, on the same node (IRIS_NODES pretends
 * several on a host), and threads of the same process. */
int iris_i_hello_same_host(const struct iris_hello *a,
                           const struct iris_hello *b);
int iris_i_hello_same_node(const struct iris_hello *a,
                           const struct iris_hello *b);
int iris_i_hello_same_process(const struct iris_hello *a,
                              const struct iris_hello *b);

/* The meeting as one rank has it: the hello of every rank, the control segment,
 * and the sockets. A handle's descriptor is open here, or -1 if it belongs to a
 * thread of this process, which needs none. */
struct iris_rendezvous {
    const struct iris_bootstrap *bootstrap;
    int rank;
    int num_ranks;
    int num_expected; /* rank 0: processes that may come; more than num_ranks
                       * if some believe in a larger job */
    struct iris_waiter waiter; /* of all its waits: one deadline, one warning */
    int64_t begin;
    int64_t deadline;
    int64_t warn_at;
    unsigned num_turned_away; /* rank 0: connections of other users */
    int sock;     /* rank 0: the listener; others: to rank 0; -1: alone */
    int far_sock; /* rank 0: the listener for ranks of other hosts; -1 */
    int is_far;   /* others: rank 0 is on another host */
    int spare;    /* rank 0: a descriptor kept back to tell peers that there are
                 * none left */
    int *socks;   /* rank 0: to each peer, or -1; others: NULL */
    iris_status_t announced; /* rank 0: could it tell every peer? */
    char announced_message[IRIS_MESSAGE_BYTES];
    struct iris_hello *hellos;    /* of magic 0: has not come; NULL: not yet */
    int has_shared_hellos;        /* they are rank 0's, a thread's of this
                                   * process, which keeps them until all have
                                   * said how they fared */
    struct iris_segment *segment; /* one reference, the caller's */
};

/* Takes what the rendezvous needs, first thing: a rank that then runs out of
 * something can still say so to the others. `bootstrap` and `log` outlive the
 * rendezvous. iris_i_rendezvous_join() must follow. IRIS_ERR_LIMIT,
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_BOOTSTRAP (key taken) */
iris_status_t iris_i_rendezvous_open(const struct iris_bootstrap *bootstrap,
                                     const struct iris_settings *settings,
                                     const struct iris_log *log,
                                     struct iris_rendezvous *rendezvous_p);

/* Joins. `hello` is this rank's, whose descriptor this closes; blocks until all
 * have come, one has failed or the deadline passes, and gives every rank the
 * same answer. On success iris_i_rendezvous_agree() must follow; on failure the
 * meeting is closed.
 *
 * IRIS_ERR_TIMEOUT, IRIS_ERR_PEER_LOST, IRIS_ERR_BOOTSTRAP (rank taken or out
 * of range, stranger), IRIS_ERR_MISMATCH (ranks differ), IRIS_ERR_LIMIT, or the
 * status of the rank that failed. */
iris_status_t iris_i_rendezvous_join(struct iris_rendezvous *rendezvous,
                                     struct iris_hello *hello);

/* Tells all how this rank fared with what it took home (`status`, with this
 * thread's message) and returns IRIS_OK only if all fared well. Then closes
 * sockets and descriptors and frees the hellos; the control segment stays. */
iris_status_t iris_i_rendezvous_agree(struct iris_rendezvous *rendezvous,
                                      iris_status_t status);

/* Drops the reference to the segment if nobody has taken it. */
void iris_i_rendezvous_drop(struct iris_rendezvous *rendezvous);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_H */
