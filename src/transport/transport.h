/* SPDX-License-Identifier: MIT
 *
 * The interface of src/transport: proxies, by which kernels reach ranks of
 * other nodes.
 */
#ifndef IRIS_SRC_TRANSPORT_TRANSPORT_H
#define IRIS_SRC_TRANSPORT_TRANSPORT_H

#include "backend/backend.h"
#include "base/base.h"
#include "control/control.h"
#include "heap/heap.h"

#include <stdint.h>

/* ---- Far message ---- */

/* The messages between proxies of different nodes. */

/* A request, or the answer to one. They have the same members unless a comment
 * says otherwise. A put's data follows its request, a get's data its answer. */
struct iris_far_message {
    uint8_t op;        /* enum iris_op */
    uint8_t kind;      /* enum iris_d_kind */
    uint8_t answers;   /* 1: this is an answer */
    uint8_t refused;   /* in an answer: the target has refused it; in a
                        * fence's answer: it has refused an earlier put */
    uint16_t bytes;    /* bytes moved or updated */
    uint16_t data;     /* bytes that follow */
    uint64_t ticket;   /* ticket of the request, in its rank's ring */
    uint64_t offset;   /* on the target's heap */
    uint64_t value;    /* in an answer: the value that an atomic read */
    uint64_t expected; /* comparand of a compare-and-swap */
};

/* ---- Channel ---- */

/* How a proxy passes messages to proxies of other nodes: an interface, with one
 * implementation for each transport. */

struct iris_channel;

/* All slots are filled. One thread at a time calls them. */
struct iris_channel_ops {
    /* Sends a message and its data to a rank, after all earlier messages to it.
     * Never waits: copies data that cannot leave at once, or that turn() should
     * send together with other data. If the message can never arrive, passes
     * the rank to `lost`. May pass the answer to `taken` at once. `stays`: the
     * data does not change until the channel passes it to `returned`. Returns 1
     * if it will; 0: the data is not needed any more. */
    int (*send)(struct iris_channel *channel, int rank,
                const struct iris_far_message *message, const void *data,
                int stays);

    /* Copies the oldest data to a rank that send() left in place, if there is
     * any, and passes it to `returned`. */
    void (*recall)(struct iris_channel *channel, int rank);

    /* 1: the rank has too much unread data, so requests to it should wait. */
    int (*is_full)(struct iris_channel *channel, int rank);

    /* Sends pending data and passes received messages to `taken`, in each
     * sender's order; returns their number. Never waits. */
    int (*turn)(struct iris_channel *channel);

    /* Waits until turn() may have work, or for the bell, at most `timeout_ms`.
     * The proxy's thread calls it, perhaps while another thread is in one of
     * the others. */
    void (*wait)(struct iris_channel *channel, int timeout_ms);

    /* Called after the thread has ended. */
    void (*close)(struct iris_channel *channel);
};

/* The base of all implementations, and their first member. */
struct iris_channel {
    const struct iris_channel_ops *ops;
    int bell;       /* an eventfd that ends wait() */
    int any_thread; /* 1: any thread may call turn(), one at a time */
    void (*taken)(void *arg, int rank, const struct iris_far_message *message,
                  const void *data);

    /* A message to or from the rank is lost, or would be. Called before send()
     * or turn() returns. */
    void (*lost)(void *arg, int rank, const char *why);

    /* The data of an earlier send() may change now. */
    void (*returned)(void *arg, const void *data);
    void *arg;
};

/* ---- proxy.c ---- */

struct iris_proxy;

/* Takes over `channel` and starts the thread. On failure the channel is closed.
 * `update`: for a heap that only its device accesses, the kernel of struct
 * iris_update_args; NULL: the CPU accesses it. No kernel runs yet.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_DEVICE */
iris_status_t iris_i_proxy_open(struct iris_heap *heap,
                                struct iris_channel *channel,
                                const struct iris_kernel *update,
                                struct iris_proxy **proxy_p);

/* With `update`: the address at which the device has struct iris_dev_requests,
 * for a struct iris_dev_ring in its memory. Else 0. */
uint64_t iris_i_proxy_requests(const struct iris_proxy *proxy);

/* For the threads that run this rank's kernels. */
struct iris_far iris_i_proxy_far(struct iris_proxy *proxy);

/* The first rank that has not answered a request of this rank; -1: every rank
 * has answered, or `proxy` is NULL. Any thread. */
int iris_i_proxy_silent(const struct iris_proxy *proxy);

/* Whether all requests that kernels have posted have reached their targets, once
 * in a proxy's life. Call it until it says so. `proxy` may be NULL. */
int iris_i_proxy_flush(struct iris_proxy *proxy);

/* No kernel uses the ring any more, on this rank or on ranks that use this
 * heap. `proxy` may be NULL. */
void iris_i_proxy_close(struct iris_proxy *proxy);

/* ---- channel_socket.c ---- */

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

/* ---- engine_mpi.c ---- */

struct iris_channel_mpi_params {
    struct iris_heap *heap;
    const struct iris_waiter *waiter; /* for the wait until all ranks have
                                       * opened theirs */
    int puts; /* 1: blocks go by MPI_Put, if a test shows that it works */
};

/* Opens the channel, and logs at info level how blocks are sent. Collective:
 * ranks are those of MPI_COMM_WORLD.
 * - IRIS_ERR_UNSUPPORTED: built without MPI, MPI is not initialised or has
 *   fewer ranks, or its thread level does not let the proxy's thread call it.
 * - IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM, IRIS_ERR_TIMEOUT,
 *   IRIS_ERR_PEER_LOST */
iris_status_t
iris_i_channel_mpi_open(const struct iris_channel_mpi_params *params,
                        struct iris_channel **channel_p);

/* ---- engine_ucx.c ---- */

struct iris_ucx;

/* Loads UCX and makes this rank's worker, before the rendezvous; this rank's hello
 * announces its address. IRIS_ERR_UNSUPPORTED: there is no UCX, or the library was
 * built without its headers. IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_ucx_prepare(struct iris_hello *hello,
                                 struct iris_ucx **ucx_p);

/* For a worker that was given to no channel. `ucx` may be NULL. */
void iris_i_ucx_drop(struct iris_ucx *ucx);

/* Takes over the worker. Endpoints are made at the first message to a rank.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM */
iris_status_t iris_i_channel_ucx_open(const struct iris_log *log,
                                      const struct iris_rendezvous *rendezvous,
                                      struct iris_ucx *ucx,
                                      struct iris_channel **channel_p);

#endif /* IRIS_SRC_TRANSPORT_TRANSPORT_H */
