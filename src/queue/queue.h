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

/* A point in a stream's work: the number of commands it had then. {0, 0}
 * belongs to no stream. */
struct iris_stream_mark {
    uint64_t stream; /* the stream's number plus 1 */
    uint64_t waits;
};

struct iris_graph {
    struct iris_graph *next;
    void *native;                   /* owned by the backend */
    struct iris_stream_mark **uses; /* memory that only one stream at a time
                                     * may use */
    size_t num_uses;
    int is_stale; /* some of that memory was freed */
};

struct iris_queue {
    const struct iris_log *log;
    struct iris_backend *backend;
    struct iris_heap *heap;
    const int64_t *context; /* the device context, in device memory */
    struct iris_hooks *hooks;
    pthread_mutex_t lock;        /* guards the lists */
    struct iris_stream *streams; /* the default stream is first, and stays */
    uint64_t num_streams;        /* number made so far, without the default
                                  * stream */
    struct iris_graph *graphs;
};

#endif /* IRIS_SRC_QUEUE_QUEUE_H */
