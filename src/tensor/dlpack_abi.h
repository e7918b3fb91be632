/* SPDX-License-Identifier: MIT
 *
 * DLPack's structs with the ABI of version 1.0, so that a build needs no header
 * (https://dmlc.github.io/dlpack/latest/c_api.html). tests/tensor/test_dlpack.c compares them with the header.
 */
#ifndef IRIS_SRC_TENSOR_DLPACK_ABI_H
#define IRIS_SRC_TENSOR_DLPACK_ABI_H

#include <stdint.h>

#define DLPACK_ABI_MAJOR 1
#define DLPACK_ABI_MINOR 0

/* Kinds of memory. No heap is in the kinds that are not listed. */
enum dlpack_device_type {
    DLPACK_CPU = 1,
    DLPACK_CUDA = 2,
    DLPACK_CUDA_HOST = 3, /* pinned host memory */
    DLPACK_ROCM = 10,
    DLPACK_ROCM_HOST = 11,
    DLPACK_CUDA_MANAGED = 13,
};

enum dlpack_type_code {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6,
    DLPACK_F8E4M3 = 10, /* kDLFloat8_e4m3fn, since 1.1 */
    DLPACK_F8E5M2 = 12, /* kDLFloat8_e5m2 */
};

struct dlpack_dtype {
    uint8_t code;
    uint8_t bits; /* of a lane */
    uint16_t lanes;
};

struct dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    struct dlpack_dtype dtype;
    int64_t *shape;
    int64_t *strides; /* in elements; NULL: contiguous */
    uint64_t byte_offset;
};

struct DLManagedTensorVersioned {
    uint32_t major;
    uint32_t minor;
    void *context;
    /* NULL: not needed */
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags; /* bit 0: read-only, bit 1: a copy */
    struct dlpack_tensor tensor;
};

#endif /* IRIS_SRC_TENSOR_DLPACK_ABI_H */
