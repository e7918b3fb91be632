/* SPDX-License-Identifier: MIT
 *
 * The library's object file with the kernels of tensors, for the CPU and, if
 * iriscc has a GPU compiler, for GPUs.
 */
#include "tensor/kernels.h"

#include <iris/device/kernels/fill.h>

/* For integers only the width matters: they wrap around, or are converted from
 * 64 bits. */
#define ROW_CASES(op)              \
    switch (dtype) {               \
    case IRIS_DTYPE_I8:            \
    case IRIS_DTYPE_U8:            \
        return iris_k_##op##_u8;   \
    case IRIS_DTYPE_I16:           \
    case IRIS_DTYPE_U16:           \
        return iris_k_##op##_u16;  \
    case IRIS_DTYPE_I32:           \
    case IRIS_DTYPE_U32:           \
        return iris_k_##op##_u32;  \
    case IRIS_DTYPE_I64:           \
    case IRIS_DTYPE_U64:           \
        return iris_k_##op##_u64;  \
    case IRIS_DTYPE_F16:           \
        return iris_k_##op##_f16;  \
    case IRIS_DTYPE_BF16:          \
        return iris_k_##op##_bf16; \
    case IRIS_DTYPE_F32:           \
    case IRIS_DTYPE_COMPLEX64:     \
        return iris_k_##op##_f32;  \
    case IRIS_DTYPE_F64:           \
    case IRIS_DTYPE_COMPLEX128:    \
        return iris_k_##op##_f64;  \
    default:                       \
        return NULL;               \
    }

static const struct iris_kernel *arange_of(iris_dtype_t dtype)
{
    ROW_CASES(arange)
}

static const struct iris_kernel *linspace_of(iris_dtype_t dtype)
{
    ROW_CASES(linspace)
}

const struct iris_kernel *iris_i_tensor_kernel(enum iris_tensor_op op,
                                               iris_dtype_t dtype)
{
    switch (op) {
    case IRIS_TENSOR_FILL:
        return iris_k_fill;
    case IRIS_TENSOR_FILL_STRIDED:
        return iris_k_fill_strided;
    case IRIS_TENSOR_COPY_STRIDED:
        return iris_k_copy_strided;
    case IRIS_TENSOR_ARANGE:
        return arange_of(dtype);
    case IRIS_TENSOR_LINSPACE:
        return linspace_of(dtype);
    }
    return NULL;
}
