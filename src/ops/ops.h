/* SPDX-License-Identifier: MIT
 *
 * Fused operations as the files of this folder see them: one call, and the
 * steps that it takes.
 */
#ifndef IRIS_SRC_OPS_OPS_H
#define IRIS_SRC_OPS_OPS_H

#include <iris/ops.h>

#include "context/context_type.h"

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

    /* What follows from that. */
    struct iris_group *group;
    int64_t members;
    int64_t index;
    int64_t m; /* of the whole product */
    int64_t n;
    int64_t k;
    int by_column;    /* all_gather_matmul: a is a share of columns */
    int direct;       /* the collective works in `out` */
    size_t workspace; /* bytes that it needs; the same on all members */
    char *memory;     /* there */
};

/* Which rows of `rows` a member has. */
struct iris_ops_share {
    int64_t begin;
    int64_t rows;
};
struct iris_ops_share iris_i_ops_share(const struct iris_ops_call *call,
                                       int64_t rows, int64_t member);

/* The most rows that a member has. */
int64_t iris_i_ops_most(const struct iris_ops_call *call, int64_t rows);

/* ---- Checks (check.c) ---- */

/* Takes over the options, checks the tensors, fills in what follows but the
 * memory. */
iris_status_t iris_i_ops_check(iris_t *iris, struct iris_ops_call *call,
                               const struct iris_ops_options *options);

/* ---- Memory (workspace.c) ---- */

/* Finds the memory for a call that has been checked. */
iris_status_t iris_i_ops_workspace(iris_t *iris, struct iris_ops_call *call);

/* Makes a workspace for a call. `checked`: what is wrong with that already. */
iris_status_t iris_i_ops_make_workspace(iris_t *iris,
                                        const struct iris_ops_call *call,
                                        iris_status_t checked,
                                        iris_ops_workspace_t **workspace_p);

/* ---- The product (product.c, blas.c) ---- */

/* The library that multiplies for this context, and its state; NULL: the core's
 * own kernels do. The first call loads it. */
struct iris_blas;
iris_status_t iris_i_ops_blas(iris_t *iris, const struct iris_blas **blas_p,
                              void **state_p);

/* Rows of a result: where they are, and which of the bias they get. */
struct iris_ops_product {
    iris_tensor_t a;
    iris_tensor_t b;
    iris_tensor_t out;
    const iris_tensor_t *bias; /* NULL: none */
    int bias_by_row;
    int64_t begin; /* in the product that this is a part of, of whose bits it */
    int64_t whole; /* is to be, which has so many rows, and a bias for all */
};

/* Enqueues out = a * b + bias. */
iris_status_t iris_i_ops_product(iris_t *iris,
                                 const struct iris_ops_product *product,
                                 iris_stream_t *stream);

#endif /* IRIS_SRC_OPS_OPS_H */
