/* SPDX-License-Identifier: MIT
 *
 * Each group's memory for collectives on each member.
 */
#ifndef IRIS_SRC_CCL_CCL_WORKSPACE_H
#define IRIS_SRC_CCL_CCL_WORKSPACE_H

#include <iris/device/kernels/ccl_args.h>

#include "ccl/ccl_types.h"

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
    int max_cus;        /* workgroups that run at once on every member */
    int best_cus;       /* the number of them that have a processor each */
    int pair_wgs;       /* the most of them that share a message */
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

#endif /* IRIS_SRC_CCL_CCL_WORKSPACE_H */
