/* SPDX-License-Identifier: MIT
 *
 * Fills of tensors with any strides, and launches of kernels that work on one
 * tensor.
 */
#ifndef IRIS_SRC_TENSOR_TENSOR_FILL_H
#define IRIS_SRC_TENSOR_TENSOR_FILL_H

#include <iris/tensor.h>

#include "context/context_type.h"

/* Enqueues the fill of a tensor with one element; any strides. */
iris_status_t iris_i_tensor_fill(iris_t *iris, const iris_tensor_t *tensor,
                                 const void *element, iris_stream_t *stream);

/* Launches a kernel that works on a tensor, with a grid for its bytes. */
iris_status_t iris_i_tensor_launch(iris_t *iris,
                                   const struct iris_kernel *kernel,
                                   const iris_tensor_t *tensor,
                                   const void *args, iris_stream_t *stream);

#endif /* IRIS_SRC_TENSOR_TENSOR_FILL_H */
