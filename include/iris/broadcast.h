/* SPDX-License-Identifier: MIT
 *
 * Broadcast of numbers and of tensors. iris_broadcast() in <iris/sync.h>
 * broadcasts bytes of host memory.
 *
 *     iris_value_t rate = iris_value_float(0.1);  // only rank 0's value counts
 *     status = iris_broadcast_value(iris, &rate, 0, NULL);
 */
#ifndef IRIS_BROADCAST_H
#define IRIS_BROADCAST_H

#include <iris/group.h>
#include <iris/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Gives every member of the group the value and the kind of the member with
 *  index `root`. The other members' values are overwritten. Collective over the
 *  group; blocks.
 *
 *  IRIS_ERR_INVALID      root is not an index of the group, value_p is NULL, or
 *                        the kind of root's value does not exist
 *  IRIS_ERR_MISMATCH     members differ in root
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_broadcast_value(iris_t *iris, iris_value_t *value_p,
                                            int root, iris_group_t *group);

/** Copies the elements of the tensor of the member with index `root`, which is
 *  on that member's heap, to every other member's tensor. The shape and the
 *  dtype are the same on all members; strides may differ. Collective over the
 *  group; blocks until all members have the elements. The call synchronizes
 *  `stream`, so that the broadcast comes after the work that wrote the tensor.
 *  The members' devices then copy from the root's heap on `stream`. If the call
 *  fails, a receiver's tensor may have been written in part.
 *
 *  IRIS_ERR_INVALID      root is not an index of the group; tensor is NULL or,
 *                        on the root, not on the heap; a shape differs from the
 *                        root's; or not a live stream or group of this context
 *  IRIS_ERR_MISMATCH     members differ in root, dtype, number of dimensions or
 *                        number of elements
 *  IRIS_ERR_UNREACHABLE  a member's device does not reach the root's heap
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *
 *  Also returns the error of work on any member's `stream`. */
IRIS_API iris_status_t iris_tensor_broadcast(iris_t *iris,
                                             const iris_tensor_t *tensor,
                                             int root, iris_group_t *group,
                                             iris_stream_t *stream);

/** Gives every rank, the root included, a new tensor with the shape, dtype and
 *  elements of rank `root`'s `tensor`. The other ranks need not know these, and
 *  pass NULL. The new tensors are contiguous, at the same offset in all heaps;
 *  each rank owns its tensor until iris_tensor_free(). The root's tensor may be
 *  in any memory that iris_tensor_copy() copies from. Collective over the job,
 *  because it allocates on the heap. Uses the default stream and waits for it.
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
