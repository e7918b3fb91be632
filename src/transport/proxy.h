/* SPDX-License-Identifier: MIT
 *
 * The proxy of one rank: a thread that transfers the requests of this rank's
 * kernels to ranks of other nodes, and executes their requests here.
 */
#ifndef IRIS_SRC_TRANSPORT_PROXY_H
#define IRIS_SRC_TRANSPORT_PROXY_H

#include "backend/far_steps.h"
#include "heap/heap_parts.h"
#include "transport/channel.h"

struct iris_proxy;

/* Takes over `channel` and starts the thread. On failure the channel is closed.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT */
iris_status_t iris_i_proxy_open(struct iris_heap *heap,
                                struct iris_channel *channel,
                                struct iris_proxy **proxy_p);

/* For the threads that run this rank's kernels. */
struct iris_far iris_i_proxy_far(struct iris_proxy *proxy);

/* The first rank that has not answered a request of this rank; -1: every rank
 * has answered, or `proxy` is NULL. Any thread. */
int iris_i_proxy_silent(const struct iris_proxy *proxy);

/* No kernel uses the ring any more, on this rank or on ranks that use this
 * heap. `proxy` may be NULL. */
void iris_i_proxy_close(struct iris_proxy *proxy);

#endif /* IRIS_SRC_TRANSPORT_PROXY_H */
