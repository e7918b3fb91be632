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
 *  to every other member's tensor. The shape and the dtype are the same on all
 *  members; strides may differ. Collective over the group; blocks until all
 *  members have the elements. The call synchronises `stream`, so that the
 *  broadcast comes after the work that wrote the tensor; the members' devices
 *  then copy from the root's heap on `stream`. If the call fails, a receiver's
 *  tensor may hold a part.
 *
 *  IRIS_ERR_INVALID      root is no index of the group; tensor is NULL or, on
 *                        the root, not on the heap; a shape differs from the
 *                        root's; no live stream or group of this context
 *  IRIS_ERR_MISMATCH     members differ in root, dtype, number of dimensions or
 *                        of elements
 *  IRIS_ERR_UNREACHABLE  a member's device does not reach the root's heap
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *
 *  Also returns the error of work on any member's `stream`. */
IRIS_API iris_status_t iris_tensor_broadcast(iris_t *iris,
                                             const iris_tensor_t *tensor,
                                             int root, iris_group_t *group,
                                             iris_stream_t *stream);

/** Gives every rank, the root included, a new tensor with the shape, dtype and
 *  elements of rank `root`'s `tensor`. The other ranks need not know them, and
 *  pass NULL. The new tensors are contiguous, at the same offset of all heaps;
 *  each rank owns its own until iris_tensor_free(). The root's tensor may be in
 *  any memory that iris_tensor_copy() copies from. Collective over the job,
 *  since it allocates on the heap; uses the default stream and waits for it.
 *
 *  IRIS_ERR_INVALID      root is not a rank, the root's tensor is NULL or not a
 *                        valid tensor, tensor_p is NULL
 *
 *  Also returns the statuses of iris_empty() and iris_tensor_broadcast(). */
IRIS_API iris_status_t iris_tensor_broadcast_new(iris_t *iris,
                                                 const iris_tensor_t *tensor,
                                                 int root,
                                                 iris_tensor_t *tensor_p);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_BROADCAST_H */
