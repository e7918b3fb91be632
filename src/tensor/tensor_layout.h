/* SPDX-License-Identifier: MIT
 *
 * Shapes and strides, sizes, and the check of a tensor without a context.
 */
#ifndef IRIS_SRC_TENSOR_TENSOR_LAYOUT_H
#define IRIS_SRC_TENSOR_TENSOR_LAYOUT_H

#include <iris/tensor.h>

int64_t iris_i_shape_numel(const iris_shape_t *shape);
iris_shape_t iris_i_tensor_shape(const iris_tensor_t *tensor);

/* A tensor with this shape and these strides at `data`. It does not own the
 * memory. */
iris_tensor_t iris_i_tensor_make(void *data, iris_dtype_t dtype,
                                 const iris_shape_t *shape,
                                 const int64_t *strides);

/* Strides of a new tensor in a format. `like` may be NULL. */
void iris_i_layout_strides(const iris_shape_t *shape,
                           iris_memory_format_t format,
                           const iris_tensor_t *like, int64_t *strides_p);

/* Strides for the same elements in the same order with another shape; 0: that
 * needs a copy. */
int iris_i_layout_reshape(const iris_tensor_t *tensor,
                          const iris_shape_t *shape, int64_t *strides_p);

/* iris_i_tensor_check() of the argument `tensor` of a call without a context.
 */
iris_status_t iris_i_view_check(const char *call, const iris_tensor_t *tensor);

#endif /* IRIS_SRC_TENSOR_TENSOR_LAYOUT_H */
