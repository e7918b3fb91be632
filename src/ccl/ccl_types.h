/* SPDX-License-Identifier: MIT
 *
 * One call of a collective, and what tells the collectives apart.
 */
#ifndef IRIS_SRC_CCL_CCL_TYPES_H
#define IRIS_SRC_CCL_CCL_TYPES_H

#include <iris/ccl.h>

#include "context/context_type.h"

enum iris_ccl_op {
    IRIS_CCL_ALL_REDUCE,
    IRIS_CCL_ALL_GATHER,
    IRIS_CCL_REDUCE_SCATTER,
    IRIS_CCL_ALL_TO_ALL,
    IRIS_CCL_BROADCAST,
    IRIS_CCL_REDUCE,
    /* Messages between pairs of members (ccl_pairs.h). */
    IRIS_CCL_GATHER_TO,
    IRIS_CCL_SCATTER_FROM,
    IRIS_CCL_ALL_GATHERV,
    IRIS_CCL_ALL_TO_ALLV,
    IRIS_CCL_SEND,
    IRIS_CCL_RECV,
    IRIS_CCL_SEND_RECV,
    IRIS_CCL_NUM_OPS,
};

/* What a variant needs of buffers, and that the operation is SUM. Those that do
 * not keep the order of addition are only taken by name. STAGES: without rows
 * and where workspaces have stages, the variant takes any buffers. */
enum {
    IRIS_CCL_ON_HEAP = 1,
    IRIS_CCL_APART = 2,
    IRIS_CCL_ONLY_SUM = 4,
    IRIS_CCL_BY_NAME = 8,
    IRIS_CCL_ROWS = 16,
    IRIS_CCL_STAGES = 32,
};

struct iris_ccl_kind {
    const char *name;      /* the public function */
    const char *rule_name; /* in tuning files */
    int reduces;
    int in_parts;  /* without rows `in` has a part for each member */
    int out_parts; /* and so has `out` */
    int has_root;
    int pairs;    /* 1: by messages between pairs, and has no variants */
    int exchange; /* enum iris_ccl_exchange, of packets in one shot */
    struct {
        iris_ccl_variant_t variant; /* IRIS_CCL_AUTO ends them */
        int needs;
    } variants[8];
};
extern const struct iris_ccl_kind iris_i_ccl_kinds[IRIS_CCL_NUM_OPS];

struct iris_ccl_call {
    const char *name; /* the public function */
    enum iris_ccl_op op;
    const void *in;
    void *out;
    size_t count;
    iris_dtype_t dtype;
    iris_reduce_op_t reduce; /* of what reduces */
    int root;                /* of what has one */
    /* Of messages: elements for and from each member, and where they begin, or
     * NULL: one behind the other. Of send and receive: to and from whom, or -1. */
    const size_t *in_counts;
    const size_t *in_displs;
    const size_t *out_counts;
    const size_t *out_displs;
    size_t out_count;
    int to;
    int from;
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

#endif /* IRIS_SRC_CCL_CCL_TYPES_H */
