/* SPDX-License-Identifier: MIT
 *
 * The rendezvous. Every rank sends a hello to rank 0 over a local socket. Rank
 * 0 answers all of them with one verdict, the control segment, and every heap's
 * handle.
 */
#ifndef IRIS_SRC_CONTROL_RENDEZVOUS_H
#define IRIS_SRC_CONTROL_RENDEZVOUS_H

#include "backend/backend.h"
#include "control/arrivals.h"
#include "control/bootstrap.h"
#include "control/endpoint.h"
#include "base/address.h"
#include "base/host_wait.h"

struct iris_segment;

/* A rank's data for the rendezvous. A rank whose own preparation failed comes
 * all the same, so that its peers learn the reason at once instead of waiting
 * for it. */
struct iris_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank;
    int32_t num_ranks;
    int32_t pid;
    int32_t status;         /* of its preparation; if not OK, `message` has the
                     * reason */
    uint64_t pid_namespace; /* set by iris_i_rendezvous_join() */
    uint64_t host; /* set by it, too: iris_i_host_id(); 0: the job has one
                    * host */
    int32_t part;  /* the part of its host that it simulates as a node */
    uint64_t heap_bytes;
    uint64_t heap_id;   /* a word on its heap */
    int32_t check;      /* IRIS_CHECK, as a number */
    int32_t control;    /* enum iris_control_kind: IRIS_CONTROL */
    char transport[16]; /* IRIS_TRANSPORT; set by iris_i_rendezvous_join() */
    char host_name[32]; /* empty if host is 0 */
    struct iris_address control_address; /* rank 0's */
    struct iris_address far_address;     /* for ranks of other nodes; size 0:
                                       * they cannot reach this rank */
    unsigned char control_secret[32];    /* rank 0's random bytes, which
                                       * iris_i_rendezvous_key() takes */
    char backend[16];
    char endpoint[IRIS_ENDPOINT_NAME_BYTES]; /* name of its endpoint; empty:
                                              * none */
    char message[IRIS_MESSAGE_BYTES];        /* if OK: the reason why it uses no
                                       * GPU, or empty */
    struct iris_heap_handle handle; /* its descriptor travels beside it */
};

/* Whether two ranks are on the same host, on the same node (IRIS_NODES
 * simulates several on a host), or threads of the same process. */
static inline int iris_i_hello_same_host(const struct iris_hello *a,
                                         const struct iris_hello *b)
{
    return a->host == b->host;
}

static inline int iris_i_hello_same_node(const struct iris_hello *a,
                                         const struct iris_hello *b)
{
    return a->host == b->host && a->part == b->part;
}

static inline int iris_i_hello_same_process(const struct iris_hello *a,
                                            const struct iris_hello *b)
{
    return a->host == b->host && a->pid == b->pid;
}

/* One rank's view of the rendezvous: the hello of every rank, the control
 * segment, and the sockets. A handle's descriptor is open here. It is -1 if it
 * belongs to a thread of this process, which needs none. */
struct iris_rendezvous {
    const struct iris_bootstrap *bootstrap;
    const struct iris_settings *settings;
    int rank;
    int num_ranks;
    int num_expected; /* rank 0: processes that may come; more than num_ranks
                       * if some assume a larger job */
    struct iris_waiter waiter; /* for all its waits: one deadline, one
                                * warning */
    int64_t begin;
    int64_t deadline;
    int64_t warn_at;
    unsigned num_turned_away; /* rank 0: number of other users' connections */
    int sock;     /* rank 0: the listener; others: the connection to rank 0;
                   * -1: alone */
    int far_sock; /* rank 0: the listener for ranks of other hosts; -1 */
    int is_far;   /* others: rank 0 is on another host */
    int spare; /* rank 0: a reserved descriptor, to tell peers that no others are left */
    struct iris_arrivals arrivals; /* rank 0: connections without a hello */
    int *socks; /* rank 0: connections to the peers, or -1; others: NULL */
    iris_status_t announced; /* rank 0: whether it could tell every peer */
    char announced_message[IRIS_MESSAGE_BYTES];
    struct iris_hello *hellos;    /* magic 0: that rank has not come; NULL:
                                   * not received yet */
    int has_shared_hellos;        /* they belong to rank 0, a thread of this
                                   * process, which keeps them until all have
                                   * sent their final status */
    struct iris_segment *segment; /* one reference, owned by the caller */
};

/* Acquires everything that the rendezvous needs, before anything else: a rank
 * that later runs out of a resource can still tell the others. `bootstrap`,
 * `settings` and `log` outlive the rendezvous. iris_i_rendezvous_join() must follow.
 * IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY, IRIS_ERR_BOOTSTRAP (key taken) */
iris_status_t iris_i_rendezvous_open(const struct iris_bootstrap *bootstrap,
                                     const struct iris_settings *settings,
                                     const struct iris_log *log,
                                     struct iris_rendezvous *rendezvous_p);

/* Joins the rendezvous. `hello` is this rank's; this closes its descriptor.
 * Blocks until all have come, one has failed or the deadline passes, and gives
 * every rank the same answer. On success iris_i_rendezvous_agree() must follow;
 * on failure the rendezvous is closed.
 *
 * IRIS_ERR_TIMEOUT, IRIS_ERR_PEER_LOST, IRIS_ERR_BOOTSTRAP (rank taken or out
 * of range, stranger), IRIS_ERR_MISMATCH (ranks differ), IRIS_ERR_LIMIT, or the
 * status of the rank that failed. */
iris_status_t iris_i_rendezvous_join(struct iris_rendezvous *rendezvous,
                                     struct iris_hello *hello);

/* Tells all whether this rank could use the results (`status`, with this
 * thread's message). Returns IRIS_OK only if all could. Then closes sockets and
 * descriptors and frees the hellos; the control segment stays. */
iris_status_t iris_i_rendezvous_agree(struct iris_rendezvous *rendezvous,
                                      iris_status_t status);

/* Drops the reference to the segment if the control plane has not taken it. */
void iris_i_rendezvous_drop(struct iris_rendezvous *rendezvous);

#endif /* IRIS_SRC_CONTROL_RENDEZVOUS_H */
