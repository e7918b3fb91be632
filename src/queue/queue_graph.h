/* SPDX-License-Identifier: MIT
 *
 * Graphs: captures and launches, and memory that launches may use on only one
 * stream at a time.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_GRAPH_H
#define IRIS_SRC_QUEUE_QUEUE_GRAPH_H

#include "queue/queue.h"

iris_status_t iris_i_capture_begin(struct iris_queue *queue,
                                   struct iris_stream *stream);
iris_status_t iris_i_capture_end(struct iris_queue *queue,
                                 struct iris_stream *stream,
                                 struct iris_graph **graph_p);

/* Drops the graph that the stream is capturing, if any. */
void iris_i_capture_drop(struct iris_stream *stream);

iris_status_t iris_i_graph_launch(struct iris_queue *queue, iris_graph_t *graph,
                                  struct iris_stream *stream);
void iris_i_graph_destroy(struct iris_queue *queue, iris_graph_t *graph);

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

#endif /* IRIS_SRC_QUEUE_QUEUE_GRAPH_H */
