/* SPDX-License-Identifier: MIT
 *
 * One call of a fused operation, inside this folder.
 */
#ifndef IRIS_SRC_OPS_OPS_TYPES_H
#define IRIS_SRC_OPS_OPS_TYPES_H

#include <iris/ops.h>

#include "context/context_type.h"
#include "ops/ops_plan.h"

enum iris_ops_op {
    IRIS_OPS_MATMUL_ALL_REDUCE,
    IRIS_OPS_ALL_GATHER_MATMUL,
    IRIS_OPS_MATMUL_ALL_GATHER,
    IRIS_OPS_MATMUL_REDUCE_SCATTER,
};

struct iris_ops_call {
    const char *name; /* the public function */
    enum iris_ops_op op;
    const iris_tensor_t *a;
    const iris_tensor_t *b;
    const iris_tensor_t *out;
    struct iris_ops_options options;

    /* Values derived from those above. */
    struct iris_group *group;
    int64_t members;
    int64_t index;
    int64_t m; /* sizes of the whole product */
    int64_t n;
    int64_t k;
    int by_column; /* all_gather_matmul: a is a share of columns */
    int direct;    /* the collective works in `out` */
    int apart;     /* all_reduce: in and out are different memory */
    struct iris_ops_plan plan;
    size_t workspace; /* bytes that it needs; the same on all members */
    char *memory;     /* there */
    int is_first;     /* its products may load kernels (ops_first.h) */

    /* For a call with its own streams, besides options.stream. */
    struct iris_stream *products[2]; /* chunks take turns */
    struct iris_stream *transport;
    struct iris_ops_words *words; /* on each rank, for its chunks */
};

#endif /* IRIS_SRC_OPS_OPS_TYPES_H */
