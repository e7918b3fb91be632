/* SPDX-License-Identifier: MIT
 *
 * Puts and gets of tiles on a stream.
 */
#ifndef IRIS_SRC_QUEUE_TILE_TRANSFER_H
#define IRIS_SRC_QUEUE_TILE_TRANSFER_H

#include <iris/device/tile_view.h>

#include "queue/queue.h"

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

#endif /* IRIS_SRC_QUEUE_TILE_TRANSFER_H */
