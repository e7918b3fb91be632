/* SPDX-License-Identifier: MIT
 *
 * Graphs: captures and launches, and the memory that launches may use on one
 * stream at a time only.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_GRAPH_H
#define IRIS_SRC_QUEUE_QUEUE_GRAPH_H

#include "queue/queue.h"

iris_status_t iris_i_capture_begin(struct iris_queue *queue,
                                   struct iris_stream *stream);
iris_status_t iris_i_capture_end(struct iris_queue *queue,
                                 struct iris_stream *stream,
                                 struct iris_graph **graph_p);

/* What the stream captures, if anything, is nobody's any more. */
void iris_i_capture_drop(struct iris_stream *stream);

iris_status_t iris_i_graph_launch(struct iris_queue *queue, iris_graph_t *graph,
                                  struct iris_stream *stream);
void iris_i_graph_destroy(struct iris_queue *queue, iris_graph_t *graph);

/* Memory that one stream at a time may use, of which the mark says by whom it
 * was last used: `stream` is the next. 0: the work of another may not be done.
 * A stream that is being captured uses nothing; each launch of the graph
 * will. */
int iris_i_stream_mark_take(struct iris_queue *queue,
                            struct iris_stream_mark *mark,
                            struct iris_stream *stream);

/* That memory goes, and with it the mark: graphs that use it are not launched
 * any more. */
void iris_i_stream_mark_forget(struct iris_queue *queue,
                               const struct iris_stream_mark *mark);

#endif /* IRIS_SRC_QUEUE_QUEUE_GRAPH_H */
