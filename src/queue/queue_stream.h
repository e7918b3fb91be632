/* SPDX-License-Identifier: MIT
 *
 * Streams: the rank's list of them, and the host's wait for their work.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_STREAM_H
#define IRIS_SRC_QUEUE_QUEUE_STREAM_H

#include "queue/queue.h"

/* Makes the default stream. The caller closes the queue, also if this fails. */
iris_status_t iris_i_queue_open(struct iris_queue *queue);

/* Destroys all streams and graphs; after it nothing of this rank's runs. May be
 * called again. */
void iris_i_queue_close(struct iris_queue *queue);

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

#endif /* IRIS_SRC_QUEUE_QUEUE_STREAM_H */
