/* SPDX-License-Identifier: MIT
 *
 * Streams: the rank's list of them, and the host's waits for their work.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_STREAM_H
#define IRIS_SRC_QUEUE_QUEUE_STREAM_H

#include "queue/queue.h"

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

#endif /* IRIS_SRC_QUEUE_QUEUE_STREAM_H */
