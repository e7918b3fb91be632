/* SPDX-License-Identifier: MIT
 *
 * The product of two matrices on a stream.
 */
#ifndef IRIS_SRC_OPS_PRODUCT_H
#define IRIS_SRC_OPS_PRODUCT_H

#include <iris/tensor.h>

#include "ops/blas.h"

/* out = a * b + bias. Rows of `out` may have gaps between them. If `whole` is
 * not 0, the rows are those from `begin` on of a product of `whole` rows, and
 * have its bits; not with a CPU's library. */
struct iris_ops_product {
    iris_tensor_t a;
    iris_tensor_t b;
    iris_tensor_t out;
    const iris_tensor_t *bias; /* NULL: none */
    int bias_by_row;
    struct iris_blas_gaps gaps;
    int64_t begin;
    int64_t whole;
};

/* Enqueues it. The bits do not depend on the gaps. */
iris_status_t iris_i_ops_product(iris_t *iris,
                                 const struct iris_ops_product *product,
                                 iris_stream_t *stream);

#endif /* IRIS_SRC_OPS_PRODUCT_H */
