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
    struct iris_ccl_workspace *next; /* of the context's */
    struct iris_group *group;
    int is_own; /* the group's, which the program never sees */
    int parts;  /* of workgroups' own (device/wg_ccl.h): how many; else 0 */
    size_t offset;
    struct iris_ccl_space *device; /* the first part */
    size_t part_bytes;             /* from a part to the next one */
    size_t slot_bytes;
    size_t stage_bytes; /* 0: input off the heap is not staged */
    int max_cus;        /* workgroups that run at once on every member */
    int best_cus;       /* of them, those that have a processor to themselves */
    struct iris_stream_mark used; /* by whom it was last used */
};

/* Fills in the live workspace that the options mean; NULL: the group's own,
 * which is not made yet. IRIS_ERR_INVALID: it is not one of the group's. */
iris_status_t iris_i_ccl_known_workspace(const iris_t *iris,
                                         struct iris_ccl_call *call);

/* The same; the group's own is made if it must be. */
iris_status_t iris_i_ccl_workspace(iris_t *iris, struct iris_ccl_call *call);

/* Makes a workspace; `wanted` has the group, and what kind of workspace it is:
 * is_own, or parts and slot_bytes, else neither. Collective over the group. */
iris_status_t iris_i_ccl_make(iris_t *iris,
                              const struct iris_ccl_workspace *wanted,
                              struct iris_ccl_workspace **workspace_p);

/* For tests: every workgroup of this rank's workspace, which nobody uses, has
 * done so many steps. All members say the same. */
iris_status_t iris_i_ccl_set_epoch(iris_t *iris,
                                   struct iris_ccl_workspace *workspace,
                                   uint64_t epoch);

#endif /* IRIS_SRC_CCL_CCL_WORKSPACE_H */
