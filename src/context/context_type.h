/* SPDX-License-Identifier: MIT
 *
 * The context's insides.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_TYPE_H
#define IRIS_SRC_CONTEXT_CONTEXT_TYPE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include <iris/random.h>

#include "backend/calls.h"
#include "base/hooks.h"
#include "base/settings.h"
#include "base/host_wait.h"
#include "context/placement.h"
#include "control/peers.h"
#include "heap/heap_parts.h"
#include "queue/queue.h"

struct iris_dev_ring;
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

/* What a layer above keeps with a context or a group. */
struct iris_extension {
    void (*close)(struct iris_extension *self); /* before that ends */
};

/* NULL is fine. */
static inline void iris_i_extension_close(struct iris_extension *extension)
{
    if (extension != NULL) {
        extension->close(extension);
    }
}

/* Which one; the last is closed first. */
enum iris_extension_slot {
    IRIS_EXTENSION_TRACE,
    IRIS_EXTENSION_TUNING, /* the tuning file */
    IRIS_EXTENSION_CCL,
    IRIS_EXTENSION_OPS,
    IRIS_EXTENSION_BLAS, /* the library of products */
    IRIS_EXTENSIONS
};

/* What a layer above does with every context, where settings ask for it: the
 * trace of IRIS_TRACE (trace/automatic.c). None of these fails, and all leave
 * this thread's error alone. */
struct iris_life_ops {
    /* The context is complete. Collective: all ranks call it from iris_init().
     */
    void (*begun)(iris_t *iris);

    /* This rank leaves the job; its heap and its peers are there. Local. With
     * `waits` 0 it waits for no stream. */
    void (*ending)(iris_t *iris, int waits);

    /* The context goes; its peers have agreed to it if `state` is
     * IRIS_RANK_FINALIZED, and do not wait for this. */
    void (*ended)(iris_t *iris, enum iris_rank_state state);
};

struct iris_context {
    atomic_uint life;
    const struct iris_life_ops *life_ops;
    atomic_int interrupted; /* by iris_interrupt() */
    atomic_int heedless;    /* not 0: waits on streams go on without a peer */
    pid_t pid;              /* who made it: a fork must not use it */
    struct iris_log log;
    struct iris_waiter waiter; /* for work on streams */
    struct iris_settings *settings;
    pthread_t owner;        /* the thread that made it */
    iris_t *next_live;      /* of all that this process has */
    iris_t *next_finalized; /* of all that this process had */
    struct iris_placement placement;
    struct iris_backend *backend;
    struct iris_device_info device;
    struct iris_hooks hooks;
    struct iris_bounds *bounds; /* NULL: bounds are not checked */
    struct iris_race *race;     /* NULL: races are not looked for */
    struct iris_weak *weak;     /* NULL: reads see the newest values */
    struct iris_control *control;
    int far_listener; /* where ranks of other nodes connect; -1: not now */
    struct iris_proxy *proxy;   /* NULL: no rank of another node is reached */
    struct iris_dev_ring *ring; /* the proxy's */
    struct iris_observer recorder; /* the flight recorder */
    struct iris_heap heap;
    struct iris_queue queue;
    iris_generator_t generator; /* the one that calls without one use */
    struct iris_group *world;
    struct iris_group *groups; /* live ones but the world */
    pthread_mutex_t groups_lock;
    int64_t *device_context; /* device memory, at the heap's start */
    struct iris_extension *extensions[IRIS_EXTENSIONS];
};

/* ---- For the layers above, which know no field of it. A const context does
 * not promise that its heap, streams and observers stay as they are. ---- */

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
