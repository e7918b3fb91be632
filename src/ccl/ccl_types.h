/* SPDX-License-Identifier: MIT
 *
 * One call of a collective, as the files of this folder see it.
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
    IRIS_CCL_NUM_OPS,
};

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

#endif /* IRIS_SRC_CCL_CCL_TYPES_H */
