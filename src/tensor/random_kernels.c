/* SPDX-License-Identifier: MIT
 *
 * The library's object file with the kernels that make random numbers, for the
 * CPU and, if iriscc has a GPU compiler, for GPUs.
 */
#include "tensor/kernels.h"

#include <iris/device/kernels/random.h>

static const struct iris_random_kernel kernels[][IRIS_DTYPE_F8E5M2 + 1] = {
    [IRIS_RANDOM_UNIFORM] = {[IRIS_DTYPE_F16] = {iris_k_uniform_f16, 4},
                             [IRIS_DTYPE_BF16] = {iris_k_uniform_bf16, 4},
                             [IRIS_DTYPE_F32] = {iris_k_uniform_f32, 4},
                             [IRIS_DTYPE_F64] = {iris_k_uniform_f64, 2},
                             [IRIS_DTYPE_COMPLEX64] = {iris_k_uniform_f32, 4},
                             [IRIS_DTYPE_COMPLEX128] = {iris_k_uniform_f64, 2}},
    [IRIS_RANDOM_NORMAL] = {[IRIS_DTYPE_F16] = {iris_k_normals_f16, 4},
                            [IRIS_DTYPE_BF16] = {iris_k_normals_bf16, 4},
                            [IRIS_DTYPE_F32] = {iris_k_normals_f32, 4},
                            [IRIS_DTYPE_F64] = {iris_k_normals_f64, 2},
                            [IRIS_DTYPE_COMPLEX64] = {iris_k_normals_f32, 4},
                            [IRIS_DTYPE_COMPLEX128] = {iris_k_normals_f64, 2}},
    [IRIS_RANDOM_INTEGER] = {[IRIS_DTYPE_BOOL] = {iris_k_integer_u8, 4},
                             [IRIS_DTYPE_I8] = {iris_k_integer_u8, 4},
                             [IRIS_DTYPE_U8] = {iris_k_integer_u8, 4},
                             [IRIS_DTYPE_I16] = {iris_k_integer_u16, 4},
                             [IRIS_DTYPE_U16] = {iris_k_integer_u16, 4},
                             [IRIS_DTYPE_I32] = {iris_k_integer_u32, 4},
                             [IRIS_DTYPE_U32] = {iris_k_integer_u32, 4},
                             [IRIS_DTYPE_I64] = {iris_k_integer_u64, 4},
                             [IRIS_DTYPE_U64] = {iris_k_integer_u64, 4},
                             [IRIS_DTYPE_F16] = {iris_k_integer_f16, 4},
                             [IRIS_DTYPE_BF16] = {iris_k_integer_bf16, 4},
                             [IRIS_DTYPE_F32] = {iris_k_integer_f32, 4},
                             [IRIS_DTYPE_F64] = {iris_k_integer_f64, 4}},
    [IRIS_RANDOM_WIDE_INTEGER] = {[IRIS_DTYPE_I64] = {iris_k_wide_u64, 2},
                                  [IRIS_DTYPE_U64] = {iris_k_wide_u64, 2},
                                  [IRIS_DTYPE_F64] = {iris_k_wide_f64, 2}},
};

struct iris_random_kernel iris_i_random_kernel(enum iris_random_kind kind,
                                               iris_dtype_t dtype)
{
    return kernels[kind][dtype];
}
