/* SPDX-License-Identifier: MIT
 *
 * The streams and graphs of one rank, and the work that is enqueued on them.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_H
#define IRIS_SRC_QUEUE_QUEUE_H

#include <pthread.h>

#include <iris/graph.h>
#include <iris/stream.h>

#include "backend/calls.h"
#include "base/hooks.h"
#include "heap/heap.h"

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

/* Makes the default stream. The caller closes the queue, also if this fails. */
iris_status_t iris_i_queue_open(struct iris_queue *queue);

/* Destroys all streams and graphs; after it nothing of this rank's runs. May be
 * called again. */
void iris_i_queue_close(struct iris_queue *queue);

/* ---- Streams (stream.c) ---- */

/* The stream a call means: NULL is the default one. IRIS_ERR_INVALID: a stream
 * of another context, or destroyed. */
iris_status_t iris_i_stream_resolve(struct iris_queue *queue,
                                    iris_stream_t *stream,
                                    struct iris_stream **stream_p);

/* A stream of the program's, made here or around `native`. */
iris_status_t iris_i_stream_create(struct iris_queue *queue,
                                   struct iris_stream **stream_p);
iris_status_t iris_i_stream_create_around(struct iris_queue *queue,
                                          void *native,
                                          struct iris_stream **stream_p);
void iris_i_stream_destroy(struct iris_queue *queue, iris_stream_t *stream);

/* Waits for the stream's work; peers can see that this rank does. A wait that
 * takes long logs a line. */
iris_status_t iris_i_stream_synchronize(struct iris_queue *queue,
                                        struct iris_stream *stream);

/* Synchronises every stream; the first error. */
iris_status_t iris_i_stream_synchronize_all(struct iris_queue *queue);

/* A place in a stream's work: what it had been given then. {0, 0} is in no
 * stream. */
struct iris_stream_mark {
    uint64_t stream; /* its number and 1 */
    uint64_t waits;
};
struct iris_stream_mark iris_i_stream_mark(struct iris_stream *stream);

/* Whether the mark is one of this stream's. */
int iris_i_stream_mark_is_of(const struct iris_stream_mark *mark,
                             const struct iris_stream *stream);

/* Whether the host knows that the stream has got there: it has waited for it
 * since, or destroyed it. */
int iris_i_stream_mark_is_done(struct iris_queue *queue,
                               const struct iris_stream_mark *mark);

/* Memory that one stream at a time may use, of which the mark says by whom it
 * was last used: `stream` is the next. 0: the work of another may not be done.
 * A stream that is being captured uses nothing; each launch of the graph will
 * (graph.c). */
int iris_i_stream_mark_take(struct iris_queue *queue,
                            struct iris_stream_mark *mark,
                            struct iris_stream *stream);

/* That memory goes, and with it the mark: graphs that use it are not launched
 * any more. */
void iris_i_stream_mark_forget(struct iris_queue *queue,
                               const struct iris_stream_mark *mark);

/* ---- Work (transfer.c, launch.c) ---- */

iris_status_t iris_i_copy(struct iris_queue *queue, void *dst, const void *src,
                          size_t bytes, iris_stream_t *stream);
iris_status_t iris_i_fill(struct iris_queue *queue, void *dst, int value,
                          size_t bytes, iris_stream_t *stream);

/* A put, get, signal or wait. */
struct iris_transfer {
    const char *call; /* the public function */
    const char *name; /* of its symmetric argument */
    void *symmetric;  /* on this rank's heap */
    void *other;      /* the near side of a put or get */
    size_t bytes;
    int rank;       /* whose memory the far side is */
    uint64_t value; /* of a signal or a wait */
    iris_cmp_t cmp; /* of a wait */
};
iris_status_t iris_i_enqueue_put(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t *stream);
iris_status_t iris_i_enqueue_get(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t *stream);
iris_status_t iris_i_enqueue_check_signal(struct iris_queue *queue,
                                          const struct iris_transfer *what,
                                          iris_stream_t *stream);
iris_status_t iris_i_enqueue_signal(struct iris_queue *queue,
                                    const struct iris_transfer *what,
                                    iris_stream_t *stream);
iris_status_t iris_i_enqueue_signal_add(struct iris_queue *queue,
                                        const struct iris_transfer *what,
                                        iris_stream_t *stream);
iris_status_t iris_i_enqueue_wait(struct iris_queue *queue,
                                  const struct iris_transfer *what,
                                  iris_stream_t *stream);

/* ---- Graphs (graph.c) ---- */

iris_status_t iris_i_capture_begin(struct iris_queue *queue,
                                   iris_stream_t *stream);
iris_status_t iris_i_capture_end(struct iris_queue *queue,
                                 iris_stream_t *stream,
                                 struct iris_graph **graph_p);

/* What the stream captures, if anything, is nobody's any more. */
void iris_i_capture_drop(struct iris_stream *stream);
iris_status_t iris_i_graph_launch(struct iris_queue *queue, iris_graph_t *graph,
                                  iris_stream_t *stream);
void iris_i_graph_destroy(struct iris_queue *queue, iris_graph_t *graph);

#endif /* IRIS_SRC_QUEUE_QUEUE_H */
