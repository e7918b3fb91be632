/* SPDX-License-Identifier: MIT
 *
 * Groups inside the library.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_GROUP_H
#define IRIS_SRC_CONTEXT_CONTEXT_GROUP_H

#include <stdint.h>

#include <iris/group.h>

#include "context/context_type.h"
#include "control/agree.h"
#include "control/flight_record.h"

struct iris_dev_group;

struct iris_group {
    struct iris_group *next;     /* next in the context's list */
    struct iris_members members; /* .ranks is the array below */
    int index;                   /* this rank's index in the group */
    int unreachable;             /* a member whose heap is not mapped here */
    struct iris_dev_group *device;
    struct iris_extension *ccl; /* data of collectives; NULL: not used yet */
    struct iris_extension *ops; /* data of fused operations */
    uintptr_t workspace;        /* the workspace of the latest collective;
                                 * under the lock */
    size_t workspace_bytes;
    int ranks[]; /* ranks of the job, in group order */
};

/* A group of these ranks; NULL: all ranks in order. Returns NULL, with this
 * thread's message, if there is no memory. */
struct iris_group *iris_i_group_make(iris_t *iris, const int *ranks, int count);

/* Writes the device half, after the heaps are mapped: epochs 0, no arrivals.
 * IRIS_ERR_NO_MEMORY, or the status of the device copy. */
iris_status_t iris_i_group_write_device(iris_t *iris, struct iris_group *group);

/* A number, not 0, that is equal for groups of the same ranks in the same
 * order. */
uint64_t iris_i_group_key(const void *group);

/* The number of members. */
int iris_i_group_count(const void *group);

/* Frees the world and every group the program has not destroyed. Local. */
void iris_i_group_close_all(iris_t *iris);

/* Finds the group of a call: NULL is the world. IRIS_ERR_INVALID: the group
 * belongs to another context. */
iris_status_t iris_i_group_resolve(const iris_t *iris,
                                   const iris_group_t *group,
                                   struct iris_group **group_p);

/* iris_i_enter(), then iris_i_group_resolve(). */
iris_status_t iris_i_group_enter(const iris_t *iris, const char *call,
                                 const iris_group_t *group,
                                 struct iris_group **group_p);

/* Whether it has ranks of other nodes, which only a proxy reaches. */
int iris_i_group_is_far(const iris_t *iris, const struct iris_group *group);

/* IRIS_ERR_UNREACHABLE if barriers in kernels cannot reach every member. */
iris_status_t iris_i_group_check_reachable(const iris_t *iris,
                                           const struct iris_group *group,
                                           const char *call);

/* IRIS_ERR_INVALID if `root` is no index of the group. */
iris_status_t iris_i_group_check_root(const iris_t *iris,
                                      const struct iris_group *group,
                                      const char *call, int root);

/* The work of iris_broadcast(), for a call whose type has these fields. */
#define IRIS_BROADCAST_FIELDS                \
    {                                        \
        {.name = "bytes"}, {.name = "root"}, \
        {                                    \
            .name = "position"               \
        }                                    \
    }
iris_status_t iris_i_group_broadcast(struct iris_group *group,
                                     struct iris_call *call, void *ptr,
                                     size_t bytes, int root);

/* core_ops.describe_late. */
void iris_i_group_describe_late(void *core, const void *word, char *text,
                                size_t bytes);

/* Notes the group that waits for this word of this rank's heap: in a barrier,
 * with the late member, or in its workspace for collectives. */
void iris_i_group_note(iris_t *iris, const void *word,
                       struct iris_record_wait *wait);

/* Sets the address of this rank's words for the group's collectives. */
void iris_i_group_set_workspace(iris_t *iris, struct iris_group *group,
                                const void *memory, size_t bytes);

#endif /* IRIS_SRC_CONTEXT_CONTEXT_GROUP_H */
