/* SPDX-License-Identifier: MIT
 *
 * Groups: ordered subsets of the job's ranks, any subset in any order.
 *
 *     int members[2] = {rank & ~1, rank | 1};  // pairs of neighbours
 *     iris_group_t *pair;
 *     status = iris_group_create(iris, members, 2, &pair);  // all ranks
 *     status = iris_barrier(iris, NULL, pair);
 *     status = iris_group_destroy(iris, pair);
 *
 * @use local; never blocks; apart
 * @param index  index of a member, from 0
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
 *  its group, in group order, or a count of 0 to be in no group. Ranks that name
 *  each other must pass the same list, so one call can split the job into
 *  several groups. The caller owns *group_p until iris_group_destroy(); it is
 *  NULL for a rank in no group. Waits for the default stream, and returns the
 *  error of work on it.
 *
 *  IRIS_ERR_INVALID      a member is out of range or named twice, the caller is
 *                        not in its own list, or group_p is NULL
 *  IRIS_ERR_MISMATCH     the lists disagree
 *  IRIS_ERR_LIMIT        63 groups are live
 *  IRIS_ERR_DEVICE       the GPU or its runtime failed
 *  IRIS_ERR_NO_MEMORY, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *  @use job; blocks; refused
 *  @param ranks  the members, in group order
 *  @param count  number of members; 0: none
 *  @param group_p  receives the group, or NULL */
IRIS_API iris_status_t iris_group_create(iris_t *iris, const int *ranks,
                                         int count, iris_group_t **group_p);

/** Frees a group. Collective over its members; blocks. No member's stream may
 *  still use the group. Afterwards the group is gone, even if the call fails,
 *  except with IRIS_ERR_INVALID and IRIS_ERR_STATE. NULL does nothing.
 *
 *  IRIS_ERR_INVALID      not a live group of this context
 *  IRIS_ERR_MISMATCH, IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_STATE
 *  @use group; blocks; apart */
IRIS_API iris_status_t iris_group_destroy(iris_t *iris, iris_group_t *group);

/** Number of members. Local, as all below; -1 on a bad context or group. */
IRIS_API int iris_group_size(const iris_t *iris, const iris_group_t *group);

/** This rank's index in the group, from 0; -1 on a bad context or group. */
IRIS_API int iris_group_index(const iris_t *iris, const iris_group_t *group);

/** Rank in the job of member `index`; -1 if out of range, or on a bad context
 *  or group. */
IRIS_API int iris_group_member(const iris_t *iris, const iris_group_t *group,
                               int index);

/** Translates an index: returns the index in the group `to` of the rank that is
 *  member `index` of `from`. -1 if that rank is not in `to`, if the index is out
 *  of range, or on a bad context or group. NULL stands for all ranks, where a
 *  rank is its own index.
 *  @param from, to  groups; NULL: all ranks */
IRIS_API int iris_group_translate(const iris_t *iris, const iris_group_t *from,
                                  int index, const iris_group_t *to);

/** The group's struct in device memory, which kernels pass to
 *  iris_dev_barrier(). Owned by the group. NULL on a bad context or group. */
IRIS_API struct iris_dev_group *iris_group_device(const iris_t *iris,
                                                  const iris_group_t *group);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_GROUP_H */
