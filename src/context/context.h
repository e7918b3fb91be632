/* SPDX-License-Identifier: MIT
 *
 * The context's insides, and the checks every public call starts with.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_H
#define IRIS_SRC_CONTEXT_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "heap/alloc.h"
#include "backend/calls.h"
#include "context/placement.h"
#include "control/bootstrap.h"
#include "control/segment.h"
#include "base/settings.h"
#include "context/group.h"
#include "control/peers.h"

/* A context's life.
 *   LIVE       between iris_init() and iris_finalize()
 *   FINALIZED  every call but iris_finalize's own return gives IRIS_ERR_STATE;
 *              the struct is never freed, so that such calls are caught */
enum iris_life {
    IRIS_LIFE_LIVE = 0x49726973,
    IRIS_LIFE_FINALIZED = 0x64656164,
};

struct iris {
    atomic_uint life;
    pid_t pid; /* who made it: a fork must not use it */
    int rank;
    int num_ranks;
    struct iris_log log;
    int64_t timeout_ms;
    struct iris_settings *settings;
    iris_t *next_finalized; /* of all that this process had */

    struct iris_control *control;
    struct iris_peers *peers;
    struct iris_group *world;

    struct iris_placement placement;
    struct iris_backend *backend;
    struct iris_cpu_observer observer;
    struct iris_device_info device;
    struct iris_stream *stream; /* the default one, first in the list */
    pthread_mutex_t streams_lock;
    struct iris_graph *graphs; /* under the streams' lock */
    struct iris_group *groups; /* live ones but the world */
    pthread_mutex_t groups_lock;

    struct iris_heap_region heap;
    int64_t *heap_bases; /* host copy of the table */
    struct iris_alloc *alloc;
    size_t reserved_bytes;    /* the library's own, at offset 0 */
    size_t piece_bytes;       /* memory is put behind the heap in these */
    uint64_t *backed;         /* one bit for each of them */
    atomic_size_t num_backed; /* bits set */
    uint64_t *fresh;          /* those that peers have not mapped yet, while an
                               * allocation is under way */
    size_t num_fresh;         /* bits set */
    struct iris_exchange *exchange; /* NULL: nothing ever has to be */
    struct iris_offer *offers;      /* room for every run of pieces */
    struct iris_alloc *window;      /* addresses behind the heap */
    struct iris_adopted *adopted;   /* what is there */
    pthread_mutex_t adopted_lock;
    int64_t *device_context; /* device memory, at offset 0 of the heap */
};

/* iris_init() for ranks this process made: `bootstrap` says who they are. */
iris_status_t iris_i_init(const struct iris_config *config,
                          const struct iris_bootstrap *bootstrap,
                          iris_t **iris_p);

/* Ends a context without its peers: they get IRIS_ERR_PEER_LOST. */
void iris_i_abandon(iris_t *iris);

/* Can this context be used by this process? IRIS_ERR_INVALID (NULL),
 * IRIS_ERR_STATE (finalized, forked); `call` is the public name, for the
 * message. */
iris_status_t iris_i_enter(const iris_t *iris, const char *call);

/* backend_params.keep_waiting: fails when a peer is lost. */
iris_status_t iris_i_keep_waiting(void *core);

/* Lets an observer see every device operation of kernels launched from now on;
 * NULL: nobody. The default stream is idle. */
void iris_i_observe(iris_t *iris, iris_cpu_observe_t observe, void *self);

#endif /* IRIS_SRC_CONTEXT_CONTEXT_H */
