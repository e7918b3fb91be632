/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/ccl: collectives on streams.
 */
#ifndef IRIS_SRC_CCL_INTERNAL_H
#define IRIS_SRC_CCL_INTERNAL_H

#include <iris/device/kernels/ccl_args.h>

#include "ccl/ccl.h"

/* ---- workspace.c ---- */

/* The members' nodes (device/kernels/ccl_levels.h). */
struct iris_ccl_nodes {
    uint32_t nodes;
    uint32_t node;  /* this rank's */
    uint32_t place; /* this rank's among the members of its node */
    uint32_t rails; /* the most members of a node */
    int in_order;   /* the members of each node follow each other */
    int is_even;    /* sums can go from node to node */
};

/* A group's memory on one rank. */
struct iris_ccl_workspace {
    struct iris_ccl_workspace *next; /* next in the context's list */
    struct iris_group *group;
    int is_own; /* the group's own, which the program never sees */
    int parts;  /* number of parts for workgroups' collectives
                 * (device/wg_ccl.h); else 0 */
    size_t offset;
    struct iris_ccl_space *device; /* the first part */
    size_t part_bytes;             /* bytes from one part to the next */
    size_t slot_bytes;
    size_t stage_bytes; /* 0: input off the heap is not staged */
    size_t rail_bytes;  /* the most bytes of a piece by levels */
    struct iris_ccl_nodes levels;
    int max_cus;  /* workgroups that run at once on every member */
    int best_cus; /* the number of them that have a processor each */
    int pair_wgs; /* the most of them that share a message */
    struct iris_ccl_near near;    /* unused in larger groups */
    struct iris_stream_mark used; /* its last use */
};

/* Finds the live workspace that the options name; NULL: the group's own, which
 * does not exist yet. IRIS_ERR_INVALID: it does not belong to the group. */
iris_status_t iris_i_ccl_known_workspace(const iris_t *iris,
                                         struct iris_ccl_call *call);

/* Like iris_i_ccl_known_workspace(); makes the group's own if necessary. */
iris_status_t iris_i_ccl_workspace(iris_t *iris, struct iris_ccl_call *call);

/* Makes a workspace. `wanted` has the group and the kind of workspace: is_own,
 * or parts and slot_bytes, or neither. Collective over the group. */
iris_status_t iris_i_ccl_make(iris_t *iris,
                              const struct iris_ccl_workspace *wanted,
                              struct iris_ccl_workspace **workspace_p);

/* For tests: sets the number of steps of every workgroup of this rank's
 * workspace, which is not in use. All members use the same number. */
iris_status_t iris_i_ccl_set_epoch(iris_t *iris,
                                   struct iris_ccl_workspace *workspace,
                                   uint64_t epoch);

struct iris_ccl {
    struct iris_extension extension; /* attached to the context */
    struct iris_queue *queue;        /* the context's queue */
    char *memory;
    size_t bytes;
    size_t most_slot_bytes;
    int stages;               /* workspaces have stages (ccl_stage.h) */
    struct iris_alloc *alloc; /* allocator of offsets in it */
    struct iris_ccl_workspace *workspaces;
    const struct iris_ccl_tuning *tuning; /* the context's rules */
};

static inline struct iris_ccl *iris_i_ccl_of(const iris_t *iris)
{
    return (struct iris_ccl *)iris_i_extension(iris, IRIS_EXTENSION_CCL);
}

/* ---- check.c ---- */

/* Copies the options and finds the group. IRIS_ERR_INVALID */
iris_status_t iris_i_ccl_take_options(iris_t *iris, struct iris_ccl_call *call,
                                      const struct iris_ccl_options *options);

/* Checks the arguments and sets sizes, kind, on_heap, in_place. */
iris_status_t iris_i_ccl_check(const iris_t *iris, struct iris_ccl_call *call);

/* ---- launch.c ---- */

/* Sets in_at and in_bytes: the data for a member, which may be this rank. */
void iris_i_ccl_route_to(const struct iris_ccl_call *call, uint32_t member,
                         struct iris_ccl_route *route_p);

/* Sets out_at and out_bytes: the data from a member. */
void iris_i_ccl_route_from(const struct iris_ccl_call *call, uint32_t member,
                           struct iris_ccl_route *route_p);

/* Checks counts and members, and sets the call's sizes. IRIS_ERR_INVALID */
iris_status_t iris_i_ccl_route_sizes(const iris_t *iris,
                                     struct iris_ccl_call *call);

/* Enqueues the call, for more than one member and at least one element. */
iris_status_t iris_i_ccl_launch(iris_t *iris, const struct iris_ccl_call *call);

/* Enqueues a reduction with one member, for row i of its buffers. */
iris_status_t iris_i_ccl_launch_alone(iris_t *iris,
                                      const struct iris_ccl_call *call,
                                      size_t i);

/* iris_i_ccl_launch() for a group with ranks of other nodes.
 * IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_ccl_launch_far(iris_t *iris,
                                    const struct iris_ccl_call *call);

/* iris_i_ccl_launch() for a call of messages. `far`: the group has ranks of
 * other nodes. */
iris_status_t iris_i_ccl_launch_pairs(iris_t *iris,
                                      const struct iris_ccl_call *call,
                                      int far);

/* Enqueues a collective without elements. The members only compare the calls
 * that they make. */
iris_status_t iris_i_ccl_launch_meeting(iris_t *iris,
                                        const struct iris_ccl_call *call,
                                        int far);

#endif /* IRIS_SRC_CCL_INTERNAL_H */
