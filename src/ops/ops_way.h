/* SPDX-License-Identifier: MIT
 *
 * The building blocks of operations in chunks: their streams, and the transfer
 * of chunks between members.
 */
#ifndef IRIS_SRC_OPS_OPS_WAY_H
#define IRIS_SRC_OPS_OPS_WAY_H

#include <iris/ccl.h>

#include "ops/ops_types.h"

/* The call and its state. Each of its streams first follows the call's own
 * stream, which follows all of them at the end.
 *
 * Products alternate between two streams, so that one fills the processors that
 * the other's last workgroups leave. The transport stream copies to the other
 * members and signals each copy (ops_chunk.h). No member copies to another one
 * before that has begun the call, and so has finished with its workspace's old
 * contents. A single stream could execute the operations in the order of their
 * enqueueing: a member enqueues everything that it sends, for one chunk or for
 * all, before its waits for the others' data. */
struct iris_ops_way {
    iris_t *iris;
    const struct iris_ops_call *call;
    unsigned products;   /* so far */
    int met;             /* the members' meeting is enqueued */
    unsigned char *sent; /* whether chunk c has been sent to member m: element
                          * c * members + m */
};

/* The stream of the next product. */
struct iris_stream *iris_i_way_products(struct iris_ops_way *way);

/* Around the work of a call. */
iris_status_t iris_i_way_fork(const struct iris_ops_call *call);
iris_status_t iris_i_way_join(const struct iris_ops_call *call);

/* The j-th member after this one, or with a negative j before it. */
int64_t iris_i_way_neighbour(const struct iris_ops_way *way, int64_t j);

/* Whether copy engines may read or write rows in place. */
int iris_i_way_is_direct(const struct iris_ops_way *way,
                         const iris_tensor_t *rows);

/* Options of a collective on the transport stream. */
struct iris_ccl_options iris_i_way_options(const struct iris_ops_call *call);

/* Holds the transport stream until all members have begun the call. Detects a
 * member that makes another call. */
iris_status_t iris_i_way_meet(struct iris_ops_way *way);

/* After a failure, ends the call on the other members, which wait for chunks of
 * this one or for the meeting. Returns `status`, with this thread's message. */
iris_status_t iris_i_way_fail(const struct iris_ops_way *way,
                              iris_status_t status);

/* Copies contiguous rows to the place of `kept` on the member, or on each of
 * the others, and signals that. */
iris_status_t iris_i_way_send(const struct iris_ops_way *way,
                              const iris_tensor_t *kept, const void *from,
                              int64_t member, int chunk);
iris_status_t iris_i_way_send_to_all(const struct iris_ops_way *way,
                                     const iris_tensor_t *kept,
                                     const void *from, int chunk);

/* Holds the stream until the chunk of that member, or of all others, has
 * arrived. Members without columns send none. */
iris_status_t iris_i_way_await(const struct iris_ops_way *way, int64_t member,
                               int chunk, struct iris_stream *stream);
iris_status_t iris_i_way_await_all(const struct iris_ops_way *way, int chunk,
                                   struct iris_stream *stream);

#endif /* IRIS_SRC_OPS_OPS_WAY_H */
