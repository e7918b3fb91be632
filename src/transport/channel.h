/* SPDX-License-Identifier: MIT
 *
 * How a proxy passes messages to proxies of other nodes: an interface, with one
 * implementation for each transport.
 */
#ifndef IRIS_SRC_TRANSPORT_CHANNEL_H
#define IRIS_SRC_TRANSPORT_CHANNEL_H

#include "transport/far_message.h"

struct iris_channel;

/* All slots are filled. One thread at a time calls them. */
struct iris_channel_ops {
    /* Sends a message and its data to a rank, after all earlier messages to it.
     * Never waits: copies data that cannot leave at once, or that turn() should
     * send together with other data. If the message can never arrive, passes
     * the rank to `lost`. May pass the answer to `taken` at once. */
    void (*send)(struct iris_channel *channel, int rank,
                 const struct iris_far_message *message, const void *data);

    /* 1: the rank has too much unread data, so requests to it should wait. */
    int (*is_full)(struct iris_channel *channel, int rank);

    /* Sends pending data and passes received messages to `taken`, in each
     * sender's order; returns their number. Never waits. */
    int (*turn)(struct iris_channel *channel);

    /* Waits until turn() may have work, or for the bell, at most `timeout_ms`.
     * The proxy's thread calls it, perhaps while another thread is in one of
     * the others. */
    void (*wait)(struct iris_channel *channel, int timeout_ms);

    /* Called after the thread has ended. */
    void (*close)(struct iris_channel *channel);
};

/* The base of all implementations, and their first member. */
struct iris_channel {
    const struct iris_channel_ops *ops;
    int bell;       /* an eventfd that ends wait() */
    int any_thread; /* 1: any thread may call turn(), one at a time */
    void (*taken)(void *arg, int rank, const struct iris_far_message *message,
                  const void *data);

    /* A message to or from the rank is lost, or would be. Called before send()
     * or turn() returns. */
    void (*lost)(void *arg, int rank, const char *why);
    void *arg;
};

#endif /* IRIS_SRC_TRANSPORT_CHANNEL_H */
