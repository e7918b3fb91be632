/* SPDX-License-Identifier: MIT
 *
 * Copies, fills and signals on a stream, in this rank's memory and its peers'.
 */
#ifndef IRIS_SRC_QUEUE_TRANSFER_H
#define IRIS_SRC_QUEUE_TRANSFER_H

#include "queue/queue.h"
#include "queue/queue_kernels.h"

iris_status_t iris_i_copy(struct iris_queue *queue, void *dst, const void *src,
                          size_t bytes, iris_stream_t *stream);
iris_status_t iris_i_fill(struct iris_queue *queue, void *dst, int value,
                          size_t bytes, iris_stream_t *stream);

/* Finds the far side, which must be entirely in the program's part of this
 * rank's heap. Resolves the stream first. NULL: only kernels reach the rank. */
iris_status_t iris_i_transfer_find_remote(struct iris_queue *queue,
                                          const struct iris_transfer *what,
                                          iris_stream_t **stream_p,
                                          void **remote_p);

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

#endif /* IRIS_SRC_QUEUE_TRANSFER_H */
