/* SPDX-License-Identifier: MIT
 *
 * Collectives as the files of this folder see them: one call, the memory it
 * uses, how it is to be done.
 */
#ifndef IRIS_SRC_CCL_CCL_H
#define IRIS_SRC_CCL_CCL_H

#include <iris/ccl.h>
#include <iris/device/kernels/ccl_args.h>

#include "context/context_type.h"

enum iris_ccl_op {
    IRIS_CCL_ALL_REDUCE,
    IRIS_CCL_ALL_GATHER,
    IRIS_CCL_REDUCE_SCATTER,
    IRIS_CCL_ALL_TO_ALL,
    IRIS_CCL_BROADCAST,
    IRIS_CCL_NUM_OPS,
};

/* ---- What a context has (space.c) ---- */

/* What is best for an operation on such a device, in groups of at most so many
 * members and for at most so many bytes (of `count` elements). */
struct iris_ccl_rule {
    enum iris_ccl_op op;
    int on_gpu;
    int members;
    size_t bytes;
    iris_ccl_variant_t variant;
    int cus; /* workgroups at most; 0: as many as are worth it */
};

/* The rules of a tuning file, which come before the library's own. */
struct iris_ccl_tuning {
    struct iris_ccl_rule *rules;
    size_t count;
    uint64_t hash; /* the same on all members that have the same rules */
};

struct iris_ccl {
    struct iris_extension extension; /* of the context */
    struct iris_queue *queue;        /* the context's */
    char *memory;
    size_t bytes;
    size_t most_slot_bytes;
    int stages;               /* workspaces have stages (ccl_stage.h) */
    struct iris_alloc *alloc; /* of offsets in it */
    struct iris_ccl_workspace *workspaces;
    struct iris_ccl_tuning tuning;
};

static inline struct iris_ccl *iris_i_ccl_of(const iris_t *iris)
{
    return (struct iris_ccl *)iris->ccl;
}

/* Makes all that, once. Collective over the job. */
iris_status_t iris_i_ccl_prepare(iris_t *iris);

/* Reads the file that IRIS_CCL_TUNING names (tuning.c). IRIS_ERR_CONFIG says
 * which line is wrong. */
iris_status_t iris_i_ccl_read_tuning(const iris_t *iris,
                                     struct iris_ccl_tuning *tuning_p);

/* ---- Workspaces (workspace.c) ---- */

/* A group's memory on one rank. */
struct iris_ccl_workspace {
    struct iris_ccl_workspace *next; /* of the context's */
    struct iris_group *group;
    int is_own; /* the group's, which the program never sees */
    size_t offset;
    struct iris_ccl_space *device;
    size_t slot_bytes;
    size_t stage_bytes; /* 0: input off the heap is not staged */
    int max_cus;        /* workgroups that run at once on every member */
    int best_cus;       /* of them, those that have a processor to themselves */
    struct iris_stream_mark used; /* by whom it was last used */
};

/* The live workspace that the options mean; NULL: the group's own, which is not
 * made yet. IRIS_ERR_INVALID: it is not one of the group's. */
iris_status_t
iris_i_ccl_known_workspace(const iris_t *iris, const char *call,
                           const struct iris_ccl_options *options,
                           const struct iris_group *group,
                           struct iris_ccl_workspace **workspace_p);

/* The workspace that the options mean; the group's own is made if it must be.
 * `call` is the public function. */
iris_status_t iris_i_ccl_workspace(iris_t *iris, const char *call,
                                   const struct iris_ccl_options *options,
                                   struct iris_group *group,
                                   struct iris_ccl_workspace **workspace_p);

/* For tests: every workgroup of this rank's workspace, which nobody uses, has
 * done so many steps. All members say the same. */
iris_status_t iris_i_ccl_set_epoch(iris_t *iris,
                                   struct iris_ccl_workspace *workspace,
                                   uint64_t epoch);

/* ---- One call ---- */

struct iris_ccl_call {
    const char *name; /* the public function */
    enum iris_ccl_op op;
    const void *in;
    void *out;
    size_t count;
    iris_dtype_t dtype;
    iris_reduce_op_t reduce; /* of what reduces */
    int root;                /* of a broadcast */
    struct iris_ccl_options options;

    /* What follows from that. */
    struct iris_group *group;
    struct iris_ccl_workspace *workspace; /* NULL: of one member */
    size_t bytes;                         /* of `count` elements */
    size_t in_bytes; /* from the first of a buffer to the last */
    size_t out_bytes;
    size_t in_pitch; /* bytes from row to row */
    size_t out_pitch;
    size_t work_bytes; /* `bytes` of all rows */
    int kind;          /* enum iris_d_kind, of what reduces */
    int on_heap;       /* peers can reach in and out, or will */
    int in_on_heap;    /* of a broadcast's root it need not be, for that */
    int stages;        /* input off the heap may go through workspaces */
    int in_place;      /* they overlap, in the way that is allowed */
    iris_ccl_variant_t variant;
    int cus;    /* workgroups at most; 0: as many as are worth it */
    int staged; /* peers read this rank's input in its workspace (ccl_stage.h)
                 */
};

/* ---- Checks (check.c) ---- */

/* Takes over the options and finds the group. IRIS_ERR_INVALID */
iris_status_t iris_i_ccl_take_options(iris_t *iris, struct iris_ccl_call *call,
                                      const struct iris_ccl_options *options);

/* Checks the arguments and fills in sizes, kind, on_heap, in_place. */
iris_status_t iris_i_ccl_check(const iris_t *iris, struct iris_ccl_call *call);

/* ---- How (choose.c) ---- */

/* The collective of that name, such as "all_reduce"; -1: there is none. */
int iris_i_ccl_find_op(const char *name);

/* The collective's variant of that name that auto may take; IRIS_CCL_AUTO: it
 * has no such one. */
iris_ccl_variant_t iris_i_ccl_find_variant(enum iris_ccl_op op,
                                           const char *name);

/* Fills in the variant and cus. IRIS_ERR_INVALID: the one asked for cannot be.
 */
iris_status_t iris_i_ccl_choose(const iris_t *iris, struct iris_ccl_call *call);

/* Workgroups for so many bytes of work of each rank. */
unsigned iris_i_ccl_grid(const iris_t *iris, const struct iris_ccl_call *call,
                         size_t bytes, size_t bytes_per_wg);

/* ---- Launches (launch.c) ---- */

/* Enqueues the call, of more than one member and more than no element. */
iris_status_t iris_i_ccl_launch(iris_t *iris, const struct iris_ccl_call *call);

/* Enqueues a reduction of one member, of row i of its buffers. */
iris_status_t iris_i_ccl_launch_alone(iris_t *iris,
                                      const struct iris_ccl_call *call,
                                      size_t i);

#endif /* IRIS_SRC_CCL_CCL_H */
