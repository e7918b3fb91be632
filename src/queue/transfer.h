/* SPDX-License-Identifier: MIT
 *
 * Copies, fills and signals on a stream, of this rank's memory and its peers'.
 */
#ifndef IRIS_SRC_QUEUE_TRANSFER_H
#define IRIS_SRC_QUEUE_TRANSFER_H

#include "queue/queue.h"

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
    int adds;       /* of a signal: its value to the word's */
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
iris_status_t iris_i_enqueue_wait(struct iris_queue *queue,
                                  const struct iris_transfer *what,
                                  iris_stream_t *stream);

#endif /* IRIS_SRC_QUEUE_TRANSFER_H */
