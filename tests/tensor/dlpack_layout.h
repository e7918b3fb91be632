/* SPDX-License-Identifier: MIT
 *
 * Sizes and offsets of DLPack's structs.
 */
#ifndef IRIS_TESTS_TENSOR_DLPACK_LAYOUT_H
#define IRIS_TESTS_TENSOR_DLPACK_LAYOUT_H

#include <stddef.h>

struct dlpack_layout {
    size_t tensor[9];
    size_t versioned[7];
    int values[14];
};

/* By the header; all 0 without it, and `versioned` with one before 1.0. */
extern const struct dlpack_layout dlpack_layout;

#define DLPACK_TENSOR_LAYOUT(type, device_type, device_id)                     \
    sizeof(type), offsetof(type, data), offsetof(type, device_type),           \
        offsetof(type, device_id), offsetof(type, ndim),                       \
        offsetof(type, dtype), offsetof(type, shape), offsetof(type, strides), \
        offsetof(type, byte_offset)
#define DLPACK_VERSIONED_LAYOUT(major, minor, context, tensor) \
    sizeof(struct DLManagedTensorVersioned),                   \
        offsetof(struct DLManagedTensorVersioned, major),      \
        offsetof(struct DLManagedTensorVersioned, minor),      \
        offsetof(struct DLManagedTensorVersioned, context),    \
        offsetof(struct DLManagedTensorVersioned, deleter),    \
        offsetof(struct DLManagedTensorVersioned, flags),      \
        offsetof(struct DLManagedTensorVersioned, tensor)

#endif /* IRIS_TESTS_TENSOR_DLPACK_LAYOUT_H */
