/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap of one rank: its memory, the allocations in it and in the
 * window behind it, and the collective operations. Other folders pass a part to
 * the functions of its header and do not access its fields.
 */
#ifndef IRIS_SRC_HEAP_HEAP_PARTS_H
#define IRIS_SRC_HEAP_HEAP_PARTS_H

#include "base/hooks.h"
#include "control/agree.h"
#include "heap/heap_memory.h"
#include "heap/heap_names.h"
#include "heap/heap_window.h"

/* The names of this rank's released allocations, in the order of their release;
 * used by heap_free.c. Any thread appends; the thread that makes collective
 * calls does the rest. compared <= done <= fenced <= count. */
struct iris_deferred {
    pthread_mutex_t lock; /* protects the list and its count */
    int closed;
    size_t *names;
    size_t capacity;
    atomic_size_t count;
    size_t fenced;   /* number released before the latest fence */
    size_t done;     /* number before the latest fence that the streams have
                      * passed */
    size_t compared; /* number compared with all other ranks' */
};

/* Asks the queue whether work on this rank's streams is done. */
struct iris_heap_fence {
    /* 1 if all work enqueued before the fence is done. With `anew`, sets the
     * fence now. Never waits. */
    int (*query)(void *arg, int anew);
    void *arg;
};

struct iris_heap {
    const struct iris_log *log;
    struct iris_heap_memory memory;
    struct iris_heap_names names;
    struct iris_heap_window window;

    struct iris_hooks *hooks;   /* NULL: no observers */
    struct iris_members *world; /* all ranks; NULL: not connected yet */
    int has_proxy; /* a proxy lets kernels reach ranks of other nodes */
    struct iris_observer guard; /* used while some rank cannot be reached:
                                 * ends CPU kernels that access its heap */
    struct iris_offer *offers;  /* one for each run of pieces */
    struct iris_deferred deferred;
    struct iris_heap_fence fence;
};

/* One collective allocation, with the sizes that the caller asked for. */
struct iris_heap_request {
    const struct iris_call_type *type; /* the call, which members compare */
    size_t bytes;
    size_t alignment;
    int zero;    /* fill it */
    int is_lazy; /* iris_i_heap_clear() commits memory to its parts later */
    iris_status_t checked; /* status of the caller's own checks */
    /* NULL, or enqueues a fill of the memory before the ranks agree: when the
     * call returns on any rank, all ranks have done so. If the ranks do not
     * agree, end_fill() waits for that work before the memory is freed. */
    iris_status_t (*fill)(void *arg, void *ptr);
    void (*end_fill)(void *arg);
    void *arg;
};

#endif /* IRIS_SRC_HEAP_HEAP_PARTS_H */
