/* SPDX-License-Identifier: MIT
 *
 * The interface of src/queue: streams, launches, graphs, copies; it knows no
 * groups and no context.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_H
#define IRIS_SRC_QUEUE_QUEUE_H

#include <iris/device/wg/tile_view.h>
#include <iris/graph.h>
#include <iris/stream.h>

#include "backend/calls.h"
#include "base/base.h"
#include "heap/heap.h"
#include "queue/kernels.h"

#include <pthread.h>

/* ---- Queue ---- */

/* The streams and graphs of one rank. */

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
    int is_far;                  /* as iris_i_queue_is_far() */
    pthread_mutex_t lock;        /* guards the streams after the first, too */
    struct iris_stream *streams; /* the default stream is first, and stays */
    uint64_t num_streams;        /* number made so far, without the default
                                  * stream */
    struct iris_graph *graphs IRIS_GUARDED_BY(lock);
};

/* ---- queue.c ---- */

/* Makes the default stream. The caller closes the queue even if this fails. */
iris_status_t iris_i_queue_open(struct iris_queue *queue);

/* Destroys all streams and graphs. Afterwards no work of this rank is running.
 * May be called again. */
void iris_i_queue_close(struct iris_queue *queue);

/* Finds the stream of a call: NULL is the default one. IRIS_ERR_INVALID: the
 * stream belongs to another context, or was destroyed. */
iris_status_t iris_i_stream_resolve(struct iris_queue *queue,
                                    iris_stream_t *stream,
                                    struct iris_stream **stream_p);

/* A stream for the program: a new one, or a wrapper of `native`. */
iris_status_t iris_i_stream_create(struct iris_queue *queue,
                                   struct iris_stream **stream_p);
iris_status_t iris_i_stream_create_around(struct iris_queue *queue,
                                          void *native,
                                          struct iris_stream **stream_p);
void iris_i_stream_destroy(struct iris_queue *queue, iris_stream_t *stream);

/* Waits for the stream's work. Peers can see that this rank waits. A long wait
 * logs a line. */
iris_status_t iris_i_stream_synchronize(struct iris_queue *queue,
                                        struct iris_stream *stream);

/* Synchronizes every stream; returns the first error. */
iris_status_t iris_i_stream_synchronize_all(struct iris_queue *queue);

/* ---- transfer.c ---- */

iris_status_t iris_i_copy(struct iris_queue *queue, void *dst, const void *src,
                          size_t bytes, iris_stream_t *stream);
iris_status_t iris_i_fill(struct iris_queue *queue, void *dst, int value,
                          size_t bytes, iris_stream_t *stream);

/* A put or get. */
iris_status_t iris_i_enqueue_transfer(struct iris_queue *queue,
                                      const struct iris_transfer *what,
                                      iris_stream_t *stream);

/* IRIS_HOST_SIGNAL or IRIS_HOST_WAIT; and a check whether a signal would be
 * refused. */
iris_status_t iris_i_enqueue_word(struct iris_queue *queue,
                                  enum iris_host_op op,
                                  const struct iris_transfer *what,
                                  iris_stream_t *stream);
iris_status_t iris_i_enqueue_check_signal(struct iris_queue *queue,
                                          const struct iris_transfer *what,
                                          iris_stream_t *stream);

/* ---- queue.c ---- */

iris_status_t iris_i_capture_begin(struct iris_queue *queue,
                                   struct iris_stream *stream);
iris_status_t iris_i_capture_end(struct iris_queue *queue,
                                 struct iris_stream *stream,
                                 struct iris_graph **graph_p);

iris_status_t iris_i_graph_launch(struct iris_queue *queue, iris_graph_t *graph,
                                  struct iris_stream *stream);
void iris_i_graph_destroy(struct iris_queue *queue, iris_graph_t *graph);

/* No captured graph can be launched any more: the ranks have changed. */
void iris_i_queue_outdate_graphs(struct iris_queue *queue);

/* Takes memory that only one stream at a time may use. The mark records its
 * last user; `stream` is the next. Returns 0 if another stream's work may not
 * be done. A capturing stream does not use the memory; each launch of the graph
 * will. */
int iris_i_stream_mark_take(struct iris_queue *queue,
                            struct iris_stream_mark *mark,
                            struct iris_stream *stream);

/* The memory is freed, and its mark with it: graphs that use it can no longer
 * be launched. */
void iris_i_stream_mark_forget(struct iris_queue *queue,
                               const struct iris_stream_mark *mark);

/* ---- transfer.c ---- */

/* The tiles of one put or get. */
struct iris_tile_transfer {
    const char *call;       /* name of the public function */
    const iris_tile_t *dst; /* `count` tiles */
    const iris_tile_t *src;
    size_t count;
    int rank; /* the rank that owns the far side */
    int gets; /* 1: a get, whose far side is src; 0: a put, with dst */
};

/* If an argument is wrong, this enqueues nothing. */
iris_status_t iris_i_enqueue_tiles(struct iris_queue *queue,
                                   const struct iris_tile_transfer *what,
                                   iris_stream_t *stream);

#endif /* IRIS_SRC_QUEUE_QUEUE_H */
