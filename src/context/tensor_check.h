/* SPDX-License-Identifier: MIT
 *
 * The check of a tensor at the start of every public call that takes one.
 * `tensor` and `ops` share it, so it is in a lower layer.
 */
#ifndef IRIS_SRC_CONTEXT_TENSOR_CHECK_H
#define IRIS_SRC_CONTEXT_TENSOR_CHECK_H

#include <iris/tensor.h>

#include "heap/heap_parts.h"

/* An argument and its name for messages. `log` is NULL if the call has no
 * context. */
struct iris_named_argument {
    const struct iris_log *log;
    const char *call;
    const char *name;
};

/* IRIS_ERR_INVALID: too many dimensions, a negative size, an unknown dtype, or
 * more elements than memory can hold. */
iris_status_t iris_i_shape_check(const struct iris_named_argument *argument,
                                 const iris_shape_t *shape, iris_dtype_t dtype);

/* IRIS_ERR_INVALID: one of these holds:
 * - the tensor is NULL;
 * - its shape or dtype fails iris_i_shape_check();
 * - its elements span more than the address space;
 * - it has elements, and its data is NULL or misaligned. After a successful
 *   check, products of the tensor's sizes, strides and byte offsets cannot
 *   overflow. */
iris_status_t iris_i_tensor_check(const struct iris_named_argument *argument,
                                  const iris_tensor_t *tensor);

/* iris_i_tensor_check(), and iris_i_heap_check_range(): the device may access
 * all memory between the first element and the last. `access` is 1 if it writes,
 * plus IRIS_BY_KERNEL if a kernel does it, and not a copy engine. */
#define IRIS_BY_KERNEL 2
iris_status_t
iris_i_tensor_check_access(const struct iris_heap *heap,
                           const struct iris_named_argument *argument,
                           const iris_tensor_t *tensor, int access);

/* Whether a kernel may load and store elements at this address. */
int iris_i_tensor_is_aligned(const void *data, iris_dtype_t dtype);

/* The bytes between a checked tensor's first and last element, in memory order;
 * 0 bytes without elements. */
struct iris_tensor_extent {
    char *start;
    size_t bytes;
};
struct iris_tensor_extent iris_i_tensor_extent(const iris_tensor_t *tensor);

#endif /* IRIS_SRC_CONTEXT_TENSOR_CHECK_H */
