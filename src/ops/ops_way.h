/* SPDX-License-Identifier: MIT
 *
 * What operations in chunks are made of: their streams, and how chunks go from
 * member to member.
 */
#ifndef IRIS_SRC_OPS_OPS_WAY_H
#define IRIS_SRC_OPS_OPS_WAY_H

#include <iris/ccl.h>

#include "ops/ops_types.h"

/* The call, and where it is. Each of its streams follows the call's own first,
 * and that follows all of them at the end.
 *
 * Products take turns on two streams, so that one fills the processors that the
 * other's last workgroups leave. The transport copies to the other members and
 * signals each copy (ops_chunk.h); nobody copies to a member before it has begun
 * the call, and so has done with what its workspace held. The order of enqueueing
 * is one that a single stream could work in, too: all that a member sends comes
 * ahead of the waits for what the others send, of that chunk or of all. */
struct iris_ops_way {
    iris_t *iris;
    const struct iris_ops_call *call;
    unsigned products; /* so far */
};

/* The stream of the next product. */
struct iris_stream *iris_i_way_products(struct iris_ops_way *way);

/* Around the work of a call. */
iris_status_t iris_i_way_fork(const struct iris_ops_call *call);
iris_status_t iris_i_way_join(const struct iris_ops_call *call);

/* The j-th member behind this one, or with a negative j ahead of it. */
int64_t iris_i_way_neighbour(const struct iris_ops_way *way, int64_t j);

/* Whether copy engines may read or write rows where they are. */
int iris_i_way_is_direct(const struct iris_ops_way *way,
                         const iris_tensor_t *rows);

/* Options of a collective on the transport. */
struct iris_ccl_options iris_i_way_options(const struct iris_ops_call *call);

/* Holds the transport until all members have begun the call; one that makes
 * another call is found. */
iris_status_t iris_i_way_meet(const struct iris_ops_way *way);

/* Copies dense rows to where the member, or each of the others, keeps `kept`, and
 * signals that. */
iris_status_t iris_i_way_send(const struct iris_ops_way *way,
                              const iris_tensor_t *kept, const void *from,
                              int64_t member, int chunk);
iris_status_t iris_i_way_send_to_all(const struct iris_ops_way *way,
                                     const iris_tensor_t *kept,
                                     const void *from, int chunk);

/* Holds the stream until the chunk of that member, or of all others, has come:
 * of members that have no columns none comes. */
iris_status_t iris_i_way_await(const struct iris_ops_way *way, int64_t member,
                               int chunk, struct iris_stream *stream);
iris_status_t iris_i_way_await_all(const struct iris_ops_way *way, int chunk,
                                   struct iris_stream *stream);

#endif /* IRIS_SRC_OPS_OPS_WAY_H */
