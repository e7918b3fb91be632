/* SPDX-License-Identifier: MIT
 *
 * Broadcast of numbers and of tensors. Bytes of the host's are
 * iris_broadcast()'s (<iris/sync.h>).
 */
#ifndef IRIS_BROADCAST_H
#define IRIS_BROADCAST_H

#include <iris/group.h>
#include <iris/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Gives every member of the group the value of member index `root`, with its
 *  kind: what *value_p of the others was does not matter. Collective over the
 *  group; blocks.
 *
 *  IRIS_ERR_INVALID      root is no index of the group, value_p is NULL, or
 *                        root's value is of no kind
 *  IRIS_ERR_MISMATCH     members differ in root
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_broadcast_value(iris_t *iris, iris_value_t *value_p,
                                            int root, iris_group_t *group);

/** Copies the elements of member index `root`'s tensor, which is on its heap,
 * to those of every other member's, each with strides of its own; the shape and
 *  the dtype are the same on all. Collective over the group; blocks until all
 *  have them: `stream` is synchronised, which orders the broadcast behind what
 *  wrote the tensor, and the members' devices copy from the root's heap on it.
 *  If it fails, a receiver's tensor may hold a part.
 *
 *  IRIS_ERR_INVALID      root is no index of the group; tensor is NULL or, on
 *                        the root, not on the heap; a shape differs from the
 *                        root's; no live stream or group of this context
 *  IRIS_ERR_MISMATCH     members differ in root, dtype, number of dimensions or
 *                        of elements
 *  IRIS_ERR_UNREACHABLE  a member's device does not reach the root's heap
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *  or the error of work on `stream`, of any member */
IRIS_API iris_status_t iris_tensor_broadcast(iris_t *iris,
                                             const iris_tensor_t *tensor,
                                             int root, iris_group_t *group,
                                             iris_stream_t *stream);

/** Gives every rank a new tensor with shape, dtype and elements of rank
 * `root`'s `tensor`; the others need not know them, and pass NULL. The new ones
 * are contiguous, at the same offset of all heaps, the root's own among them,
 * and each rank's until iris_tensor_free(). The root's tensor may be any memory
 *  that iris_tensor_copy() copies from. Collective over the job, as it takes
 *  memory of the heap; uses the default stream and waits for it.
 *
 *  IRIS_ERR_INVALID      root is no rank, the root's tensor is NULL or none,
 *                        tensor_p is NULL
 *  and those of iris_empty() and iris_tensor_broadcast() */
IRIS_API iris_status_t iris_tensor_broadcast_new(iris_t *iris,
                                                 const iris_tensor_t *tensor,
                                                 int root,
                                                 iris_tensor_t *tensor_p);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_BROADCAST_H */
