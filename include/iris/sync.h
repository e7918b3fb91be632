/* SPDX-License-Identifier: MIT
 *
 * Synchronisation between ranks from the host.
 */
#ifndef IRIS_SYNC_H
#define IRIS_SYNC_H

#include <iris/group.h>
#include <iris/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Synchronises `stream`, then waits on the host until every member of the
 *  group is here. What members' kernels on those streams wrote is visible to
 *  all afterwards. Collective over the group; blocks the host.
 *
 *  IRIS_ERR_MISMATCH     members made different calls: told what each called
 *  IRIS_ERR_PEER_LOST    a member died
 *  IRIS_ERR_TIMEOUT      a member did not come; says what it is doing
 *  IRIS_ERR_INVALID      no live stream or group of this context
 *  IRIS_ERR_STATE
 *
 *  Also returns the error of work on any member's `stream`. */
IRIS_API iris_status_t iris_barrier(iris_t *iris, iris_stream_t *stream,
                                    iris_group_t *group);

/** Enqueues a barrier of the group's devices on `stream`: later work on the
 *  stream starts when every member's stream has got to its barrier. Does not
 *  block the host, but for a full stream. One round: every member tells every
 *  other.
 *
 *  A rank's device barriers of one group, on streams and by iris_dev_barrier()
 *  in kernels, must not overlap. A member that does not come is an error of
 *  iris_stream_synchronize(). A barrier that a deadline or a dead peer ends
 *  does not complete, and its group is not to be used for device barriers
 *  again: if all ranks live, make a new one with iris_group_create(), of all
 *  ranks, too, if it was that.
 *
 *  Statuses as iris_launch(), and IRIS_ERR_INVALID for what is not a live group
 *  of this context. */
IRIS_API iris_status_t iris_device_barrier(iris_t *iris, iris_stream_t *stream,
                                           iris_group_t *group);

/** Copies `bytes` of host memory at `data` from member index `root` of the
 *  group to every member. Collective over the group; blocks. 0 bytes are legal
 *  with any `data`. If it fails, `data` of a receiver may hold a part.
 *
 *  IRIS_ERR_INVALID      root is no index of the group, or data is NULL
 *  IRIS_ERR_MISMATCH     members differ in root or size
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_broadcast(iris_t *iris, void *data, size_t bytes,
                                      int root, iris_group_t *group);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_SYNC_H */
