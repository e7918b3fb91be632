/* SPDX-License-Identifier: MIT
 *
 * How a proxy passes messages to those of other nodes: an interface, with one
 * implementation for each way there is.
 */
#ifndef IRIS_SRC_TRANSPORT_CHANNEL_H
#define IRIS_SRC_TRANSPORT_CHANNEL_H

#include "transport/far_message.h"

struct iris_channel;

/* All slots are filled. The proxy's thread calls them. */
struct iris_channel_ops {
    /* Sends a message and its data to a rank, behind all that was sent to it
     * before. Never waits: takes a copy of what cannot leave at once, or is
     * better sent with others by turn(). Drops it if the rank is gone. May give
     * the answer to `taken` at once. */
    void (*send)(struct iris_channel *channel, int rank,
                 const struct iris_far_message *message, const void *data);

    /* 1: the rank has not taken so much yet that requests to it should wait. */
    int (*is_full)(struct iris_channel *channel, int rank);

    /* 0: nothing can come from the rank any more. */
    int (*is_open)(struct iris_channel *channel, int rank);

    /* Sends what is left and gives what has come to `taken`, in each sender's
     * order; returns how many messages that was. If there is nothing to do,
     * waits for that, or for the bell, `timeout_ms` at most. */
    int (*turn)(struct iris_channel *channel, int timeout_ms);

    /* The thread has ended. */
    void (*close)(struct iris_channel *channel);
};

/* Implementations embed it first. */
struct iris_channel {
    const struct iris_channel_ops *ops;
    int bell; /* an eventfd that ends turn()'s wait */
    void (*taken)(void *arg, int rank, const struct iris_far_message *message,
                  const void *data);
    void *arg;
};

#endif /* IRIS_SRC_TRANSPORT_CHANNEL_H */
