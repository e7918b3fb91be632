/* SPDX-License-Identifier: MIT
 *
 * The context's private struct.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_TYPE_H
#define IRIS_SRC_CONTEXT_CONTEXT_TYPE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <iris/random.h>

#include "backend/calls.h"
#include "backend/far_steps.h"
#include "base/hooks.h"
#include "base/settings.h"
#include "base/host_wait.h"
#include "context/placement.h"
#include "control/peers.h"
#include "heap/heap_parts.h"
#include "queue/queue.h"

struct iris_group;
struct iris_proxy;

/* A context's life.
 *   LIVE       between iris_init() and iris_finalize()
 *   LEAVING    after iris_finalize_later(): a thread of the library finalizes
 *              it, and calls are refused as in FINALIZED
 *   FINALIZED  every later call returns IRIS_ERR_STATE; the struct is never
 *              freed, so that such calls are caught */
enum iris_life {
    IRIS_LIFE_LIVE = 0x49726973,
    IRIS_LIFE_LEAVING = 0x4c656176,
    IRIS_LIFE_FINALIZED = 0x64656164,
};

/* Data that a higher layer attaches to a context or a group. */
struct iris_extension {
    void (*close)(struct iris_extension *self); /* called before the owner
                                                 * ends */
};

/* `extension` may be NULL. */
static inline void iris_i_extension_close(struct iris_extension *extension)
{
    if (extension != NULL) {
        extension->close(extension);
    }
}

/* Slots of extensions. The last slot is closed first. */
enum iris_extension_slot {
    IRIS_EXTENSION_TRACE,
    IRIS_EXTENSION_TUNING, /* the tuning file */
    IRIS_EXTENSION_CCL,
    IRIS_EXTENSION_OPS,
    IRIS_EXTENSION_BLAS, /* the BLAS library */
    IRIS_EXTENSIONS
};

/* Callbacks of a higher layer for every context, if settings ask for it: the
 * trace of IRIS_TRACE (trace/automatic.c). None of them fails, and none changes
 * this thread's error. */
struct iris_life_ops {
    /* The context is complete. Collective: all ranks call it from iris_init().
     */
    void (*begun)(iris_t *iris);

    /* This rank leaves the job. Its heap and its peers still exist. Local. With
     * `waits` 0 it waits for no stream. */
    void (*ending)(iris_t *iris, int waits);

    /* The context is freed. If `state` is IRIS_RANK_FINALIZED, its peers have
     * agreed, and do not wait for this. */
    void (*ended)(iris_t *iris, enum iris_rank_state state);
};

struct iris_context {
    atomic_uint life;
    const struct iris_life_ops *life_ops;
    atomic_int interrupted; /* set by iris_interrupt() */
    atomic_int heedless;    /* not 0: waits on streams go on after the loss
                             * of a peer */
    pid_t pid;              /* the process that made it: a forked child must
                             * not use it */
    struct iris_log log;
    struct iris_waiter waiter; /* for waits for streams */
    struct iris_settings *settings;
    pthread_t owner;        /* the thread that made it */
    iris_t *next_live;      /* list of this process's live contexts */
    iris_t *next_finalized; /* list of this process's finalized contexts */
    struct iris_placement placement;
    struct iris_backend *backend;
    struct iris_device_info device;
    struct iris_hooks hooks;
    struct iris_bounds *bounds; /* NULL: no check of bounds */
    struct iris_race *race;     /* NULL: no check for races */
    struct iris_weak *weak;     /* NULL: reads see the newest values */
    struct iris_control *control;
    int far_listener; /* listener for ranks of other nodes; -1: closed */
    struct iris_proxy *proxy;      /* NULL: ranks of other nodes cannot be
                                 * reached */
    struct iris_far far;           /* the proxy's */
    struct iris_observer recorder; /* the flight recorder */
    struct iris_heap heap;
    struct iris_queue queue;
    iris_generator_t generator; /* used by calls without a generator */
    struct iris_group *world;
    struct iris_group *groups; /* live groups except the world */
    pthread_mutex_t groups_lock;
    int64_t *device_context; /* device memory, at the heap's start */
    struct iris_extension *extensions[IRIS_EXTENSIONS];
};

/* ---- For higher layers, which do not access its fields. A const context does
 * not promise that its heap, streams and observers stay unchanged. ---- */

static inline int iris_i_is_live(const iris_t *iris)
{
    return atomic_load_explicit(&iris->life, memory_order_acquire) ==
           IRIS_LIFE_LIVE;
}

/* NULL: not used yet. */
static inline struct iris_extension *
iris_i_extension(const iris_t *iris, enum iris_extension_slot slot)
{
    return iris->extensions[slot];
}

static inline void iris_i_extend(iris_t *iris, enum iris_extension_slot slot,
                                 struct iris_extension *extension)
{
    iris->extensions[slot] = extension;
}

static inline const struct iris_log *iris_i_log(const iris_t *iris)
{
    return &iris->log;
}

static inline int iris_i_rank(const iris_t *iris)
{
    return iris->log.rank;
}

static inline int iris_i_num_ranks(const iris_t *iris)
{
    return iris->log.num_ranks;
}

static inline const struct iris_settings *iris_i_settings(const iris_t *iris)
{
    return iris->settings;
}

static inline const struct iris_device_info *iris_i_device(const iris_t *iris)
{
    return &iris->device;
}

static inline int iris_i_is_gpu(const iris_t *iris)
{
    return iris->placement.type->is_gpu;
}

static inline struct iris_backend *iris_i_backend(const iris_t *iris)
{
    return iris->backend;
}

static inline struct iris_hooks *iris_i_hooks(const iris_t *iris)
{
    return &((iris_t *)(uintptr_t)iris)->hooks;
}

static inline struct iris_heap *iris_i_heap(const iris_t *iris)
{
    return &((iris_t *)(uintptr_t)iris)->heap;
}

static inline struct iris_queue *iris_i_queue(const iris_t *iris)
{
    return &((iris_t *)(uintptr_t)iris)->queue;
}

static inline struct iris_stream *iris_i_default_stream(const iris_t *iris)
{
    return iris->queue.streams;
}

static inline struct iris_group *iris_i_world(const iris_t *iris)
{
    return iris->world;
}

#endif /* IRIS_SRC_CONTEXT_CONTEXT_TYPE_H */
