/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap of one rank: its memory, what is allocated in it and in
 * the window behind it, and what ranks do together. Other folders hand a part
 * to the functions of its header and leave its fields alone.
 */
#ifndef IRIS_SRC_HEAP_HEAP_PARTS_H
#define IRIS_SRC_HEAP_HEAP_PARTS_H

#include "base/hooks.h"
#include "control/agree.h"
#include "heap/heap_memory.h"
#include "heap/heap_names.h"
#include "heap/heap_window.h"

/* What this rank has released of its heap, by name, in that order; heap_free.c
 * has it. Any thread appends; the rest is of the thread that makes collective
 * calls. compared <= done <= fenced <= count. */
struct iris_deferred {
    pthread_mutex_t lock; /* of the list and its end */
    int closed;
    size_t *names;
    size_t capacity;
    atomic_size_t count;
    size_t fenced;   /* so many were released before the latest fence */
    size_t done;     /* streams are past a fence behind so many */
    size_t compared; /* so many have been compared with all other ranks' */
};

/* How the heap learns that work on this rank's streams is done, which the queue
 * knows. */
struct iris_heap_fence {
    /* 1 if all is done that was enqueued before the fence; with `anew` the
     * fence is now. Never waits. */
    int (*query)(void *arg, int anew);
    void *arg;
};

struct iris_heap {
    const struct iris_log *log;
    struct iris_heap_memory memory;
    struct iris_heap_names names;
    struct iris_heap_window window;

    struct iris_hooks *hooks;   /* NULL: nobody watches */
    struct iris_members *world; /* all ranks; NULL: not connected yet */
    int has_proxy; /* kernels reach ranks of other nodes all the same */
    struct iris_observer guard; /* while there is a rank that cannot be
                                   * reached: ends CPU kernels that touch it */
    struct iris_offer *offers;  /* one for every run of pieces */
    struct iris_deferred deferred;
    struct iris_heap_fence fence;
};

/* Sizes of one collective allocation, as the caller asked for it. */
struct iris_heap_request {
    const struct iris_call_type *type; /* the call members compare */
    size_t bytes;
    size_t alignment;
    int zero;    /* fill it */
    int is_lazy; /* iris_i_heap_clear() puts memory behind its parts */
    iris_status_t checked; /* what the caller found wrong with it already */
    /* NULL, or enqueues what fills the memory, before the ranks agree: when the
     * call returns on any rank, all have. If they do not agree, end_fill()
     * waits for that work before the memory goes. */
    iris_status_t (*fill)(void *arg, void *ptr);
    void (*end_fill)(void *arg);
    void *arg;
};

#endif /* IRIS_SRC_HEAP_HEAP_PARTS_H */
