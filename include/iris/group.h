/* SPDX-License-Identifier: MIT
 *
 * Groups: ordered subsets of the job's ranks, any subset in any order.
 */
#ifndef IRIS_GROUP_H
#define IRIS_GROUP_H

#include <iris/context.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An ordered subset of ranks. Opaque. Where a call takes a group, NULL means
 *  all ranks. */
typedef struct iris_group iris_group_t;

struct iris_dev_group; /* <iris/device/layout.h> */

/** Makes groups. Collective over the whole job: each rank passes the members of
 *  the group it will be in, in group order, or count 0 to be in none. Ranks
 *  that name each other must pass the same list, so one call can split the job
 *  into several groups. *group_p is the caller's until
 *  iris_group_destroy(); NULL for a rank in no group. Waits for the default
 *  stream, and fails with the error of work on it.
 *
 *  IRIS_ERR_INVALID      a member out of range or named twice, the caller not
 *                        in its own list, or group_p is NULL
 *  IRIS_ERR_MISMATCH     the lists disagree
 *  IRIS_ERR_LIMIT        63 groups are live
 *  IRIS_ERR_DEVICE       the GPU or its runtime failed
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_group_create(iris_t *iris, const int *ranks,
                                         int count, iris_group_t **group_p);

/** Frees a group. Collective over its members, whose streams no longer use it;
 *  blocks. The group is gone whatever the status is, but for IRIS_ERR_INVALID
 *  and IRIS_ERR_STATE. NULL is fine.
 *
 *  IRIS_ERR_INVALID      not a live group of this context
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE */
IRIS_API iris_status_t iris_group_destroy(iris_t *iris, iris_group_t *group);

/** Number of members. Local, as all below; -1 on a bad context or group. */
IRIS_API int iris_group_size(const iris_t *iris, const iris_group_t *group);

/** This rank's index in the group, from 0; -1 on a bad context or group. */
IRIS_API int iris_group_index(const iris_t *iris, const iris_group_t *group);

/** Rank in the job of member `index`; -1 if out of range, or on a bad context
 *  or group. */
IRIS_API int iris_group_member(const iris_t *iris, const iris_group_t *group,
                               int index);

/** Index in the group `to` of the rank that is member `index` of `from`; -1 if
 *  that rank is not in `to`, the index is out of range, or on a bad context or
 *  group. Of all ranks (NULL) the index is the rank: with `from` NULL it is
 *  that of a rank of the job. */
IRIS_API int iris_group_translate(const iris_t *iris, const iris_group_t *from,
                                  int index, const iris_group_t *to);

/** The group as kernels take it (iris_dev_barrier()): a struct in device
 *  memory, owned by the group. NULL on a bad context or group. */
IRIS_API struct iris_dev_group *iris_group_device(const iris_t *iris,
                                                  const iris_group_t *group);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_GROUP_H */
