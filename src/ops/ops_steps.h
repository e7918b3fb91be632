/* SPDX-License-Identifier: MIT
 *
 * The building blocks of operations: views of matrices and of the workspace,
 * products and copies.
 */
#ifndef IRIS_SRC_OPS_OPS_STEPS_H
#define IRIS_SRC_OPS_OPS_STEPS_H

#include <iris/ccl.h>

#include "ops/blas.h"
#include "ops/ops_check.h"

/* A share of the tensor's rows (dim 0) or columns (1). */
iris_tensor_t iris_i_ops_part(const iris_tensor_t *tensor, int dim,
                              struct iris_ops_share share);

/* Rows of the workspace, with this number of columns. */
iris_tensor_t iris_i_ops_kept(const struct iris_ops_call *call, int64_t begin,
                              int64_t rows, int64_t columns);

/* The place for member i's columns, a separate matrix. */
iris_tensor_t iris_i_ops_kept_columns(const struct iris_ops_call *call,
                                      int64_t i);

/* The place behind those, in which they are joined. */
iris_tensor_t iris_i_ops_whole(const struct iris_ops_call *call);

/* A matrix, and the gaps between its rows. */
struct iris_ops_rows {
    iris_tensor_t matrix;
    struct iris_blas_gaps gaps;
};
struct iris_ops_rows iris_i_ops_dense(iris_tensor_t matrix);

/* out = a * b and the bias on the call's stream. */
iris_status_t iris_i_ops_multiply(iris_t *iris,
                                  const struct iris_ops_call *call,
                                  iris_tensor_t a, struct iris_ops_rows out);

/* A part of the product on any stream: the rows from `begin` on of `whole`. */
struct iris_ops_piece {
    iris_tensor_t a;
    iris_tensor_t out;
    int64_t begin;
    int64_t whole;
};
iris_status_t iris_i_ops_multiply_part(iris_t *iris,
                                       const struct iris_ops_call *call,
                                       const struct iris_ops_piece *piece,
                                       struct iris_stream *stream);

/* Enqueues a copy on the stream; nothing for empty tensors. */
iris_status_t iris_i_ops_copy(iris_t *iris, iris_tensor_t to,
                              iris_tensor_t from, struct iris_stream *stream);

/* Ends the call on the other members, which wait for this one in a collective
 * with these options, after a failure here. Returns `status`, with this
 * thread's message. */
iris_status_t iris_i_ops_refuse(iris_t *iris,
                                const struct iris_ccl_options *options,
                                iris_status_t status);

/* An all_reduce of these rows: the place for the products, and the place for
 * the sums. They may be the same, and need not be in `out`. */
struct iris_ops_sums {
    iris_tensor_t products;
    iris_tensor_t sums;
};
struct iris_ops_sums iris_i_ops_sums(const struct iris_ops_call *call,
                                     struct iris_ops_share rows);

#endif /* IRIS_SRC_OPS_OPS_STEPS_H */
