/* SPDX-License-Identifier: MIT
 *
 * Synchronization of ranks from the host: a barrier of hosts, a barrier of
 * devices on streams, and a broadcast of host memory.
 *
 *     status = iris_launch(iris, kernel, 4, 64, &args, sizeof args, NULL);
 *     status = iris_barrier(iris, NULL, NULL);  // default stream, all ranks
 *     // now every rank's kernel has completed, and its writes are visible
 *
 * @use group
 */
#ifndef IRIS_SYNC_H
#define IRIS_SYNC_H

#include <iris/group.h>
#include <iris/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Synchronizes `stream`, then waits on the host until every member of the
 *  group has called. Afterwards all members see the writes of each other's
 *  kernels on those streams. Collective over the group; blocks the host.
 *
 *  IRIS_ERR_MISMATCH     members made different calls; the message names them
 *  IRIS_ERR_PEER_LOST    a member died
 *  IRIS_ERR_TIMEOUT      a member did not call in time; the message says what
 *                        it is doing
 *  IRIS_ERR_INVALID      not a live stream or group of this context
 *  IRIS_ERR_STATE
 *
 *  Also returns the error of work on any member's `stream`.
 *  @use blocks; refused */
IRIS_API iris_status_t iris_barrier(iris_t *iris, iris_stream_t *stream,
                                    iris_group_t *group);

/** Enqueues a barrier of the group's devices on `stream`. Later work on the
 *  stream starts once every member's stream has reached its barrier. Blocks the
 *  host only if the stream is full. The barrier takes one round, in which every
 *  member signals every other.
 *
 *  A rank's device barriers of one group must not overlap, whether they are on
 *  streams or made by iris_dev_barrier() in kernels. If a member does not reach
 *  the barrier, iris_stream_synchronize() returns the error. A barrier that a
 *  deadline or a dead peer ends does not complete. Do not use its group for
 *  device barriers again: if all ranks are alive, make a new group with
 *  iris_group_create(), even if it has the same members.
 *
 *  Returns the statuses of iris_launch(), and IRIS_ERR_INVALID if `group` is
 *  not a live group of this context.
 *  @use blocks if full; captured; CPU nodes */
IRIS_API iris_status_t iris_device_barrier(iris_t *iris, iris_stream_t *stream,
                                           iris_group_t *group);

/** Copies `bytes` bytes of host memory at `data` from the member with index
 *  `root` of the group to every member. Collective over the group; blocks. With
 *  0 bytes, `data` may be anything. If the call fails, a receiver's `data` may
 *  have been written in part.
 *
 *  IRIS_ERR_INVALID      root is not an index of the group, or data is NULL
 *  IRIS_ERR_MISMATCH     members differ in root or size
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *  @use blocks; apart
 *  @param data  host memory, the same size on all members */
IRIS_API iris_status_t iris_broadcast(iris_t *iris, void *data, size_t bytes,
                                      int root, iris_group_t *group);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_SYNC_H */
