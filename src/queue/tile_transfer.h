/* SPDX-License-Identifier: MIT
 *
 * Tiles that are put and got on a stream.
 */
#ifndef IRIS_SRC_QUEUE_TILE_TRANSFER_H
#define IRIS_SRC_QUEUE_TILE_TRANSFER_H

#include <iris/device/tile_view.h>

#include "queue/queue.h"

/* Tiles of one put or get. */
struct iris_tile_transfer {
    const char *call;       /* the public function */
    const iris_tile_t *dst; /* `count` of each */
    const iris_tile_t *src;
    size_t count;
    int rank; /* whose the far side is */
    int gets; /* a get: that is src, else dst */
};

/* Where an argument is wrong nothing is enqueued. */
iris_status_t iris_i_enqueue_tiles(struct iris_queue *queue,
                                   const struct iris_tile_transfer *what,
                                   iris_stream_t *stream);

#endif /* IRIS_SRC_QUEUE_TILE_TRANSFER_H */
