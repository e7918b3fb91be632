/* SPDX-License-Identifier: MIT
 *
 * The streams and graphs of one rank.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_H
#define IRIS_SRC_QUEUE_QUEUE_H

#include <pthread.h>

#include <iris/graph.h>
#include <iris/stream.h>

#include "backend/calls.h"
#include "base/hooks.h"
#include "heap/heap_parts.h"

/* A place in a stream's work: what it had been given then. {0, 0} is in no
 * stream. */
struct iris_stream_mark {
    uint64_t stream; /* its number and 1 */
    uint64_t waits;
};

struct iris_graph {
    struct iris_graph *next;
    void *native;                   /* the backend's */
    struct iris_stream_mark **uses; /* of memory that one stream may use */
    size_t num_uses;
    int is_stale; /* some of that memory is gone */
};

struct iris_queue {
    const struct iris_log *log;
    struct iris_backend *backend;
    struct iris_heap *heap;
    const int64_t *context; /* what kernels start from, in device memory */
    struct iris_hooks *hooks;
    pthread_mutex_t lock;        /* guards the lists */
    struct iris_stream *streams; /* the default one is first, and stays */
    uint64_t num_streams;        /* made so far, but the default one */
    struct iris_graph *graphs;
};

#endif /* IRIS_SRC_QUEUE_QUEUE_H */
