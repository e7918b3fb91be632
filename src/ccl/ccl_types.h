/* SPDX-License-Identifier: MIT
 *
 * One call of a collective, and the properties of each collective.
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

/* Requirements of a variant on buffers, and whether the operation has to be
 * SUM. Variants that do not keep the order of addition must be asked for by
 * name. STAGES: if there are no rows and workspaces have stages, the variant
 * accepts any buffers. */
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
    const char *rule_name; /* name in tuning files */
    int reduces;
    int in_parts;  /* without rows, `in` has a part for each member */
    int out_parts; /* without rows, `out` has a part for each member */
    int has_root;
    int pairs;    /* 1: goes by messages between pairs, without variants */
    int exchange; /* enum iris_ccl_exchange for packets in one shot */
    struct {
        iris_ccl_variant_t variant; /* the list ends with IRIS_CCL_AUTO */
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
    iris_reduce_op_t reduce; /* operation of a reduction */
    int root;                /* root, if the collective has one */
    /* For messages: the numbers of elements for and from each member, and their
     * offsets, or NULL if they are contiguous. For send and receive: the ranks
     * of receiver and sender, or -1. */
    const size_t *in_counts;
    const size_t *in_displs;
    const size_t *out_counts;
    const size_t *out_displs;
    size_t out_count;
    int to;
    int from;
    struct iris_ccl_options options;

    /* Values derived from those above. */
    struct iris_group *group;
    struct iris_ccl_workspace *workspace; /* NULL for one member */
    size_t bytes;                         /* bytes of `count` elements */
    size_t in_bytes; /* bytes from a buffer's first element to its last */
    size_t out_bytes;
    size_t in_pitch; /* bytes from one row to the next */
    size_t out_pitch;
    size_t work_bytes; /* total of `bytes` over all rows */
    int kind;          /* enum iris_d_kind of a reduction */
    double scale;      /* factor of a sum's result; 1: none */
    int on_heap;       /* peers can reach in and out, or will be able to */
    int in_on_heap;    /* the same without a broadcast's root, whose input
                        * may be off the heap */
    int stages;        /* input off the heap may go through workspaces */
    int by_packets;    /* 1: on this device only variants with packets reduce
                        * the type */
    int in_place;      /* in and out overlap, in an allowed way */
    iris_ccl_variant_t variant;
    int cus;    /* most workgroups; 0: as many as are useful */
    int staged; /* peers read this rank's input in its workspace (ccl_stage.h)
                 */
};

#endif /* IRIS_SRC_CCL_CCL_TYPES_H */
