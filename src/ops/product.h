/* SPDX-License-Identifier: MIT
 *
 * The product of two matrices on a stream.
 */
#ifndef IRIS_SRC_OPS_PRODUCT_H
#define IRIS_SRC_OPS_PRODUCT_H

#include <iris/tensor.h>

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

#endif /* IRIS_SRC_OPS_PRODUCT_H */
