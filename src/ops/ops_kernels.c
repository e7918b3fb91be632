/* SPDX-License-Identifier: MIT
 *
 * The kernels of fused operations (device/kernels/), for the CPU and, where
 * iriscc has a GPU compiler, for GPUs.
 */
#include "ops/kernels.h"

#include <iris/device/kernels/matmul.h>
#include <iris/device/kernels/ops_chunk.h>

const struct iris_kernel *iris_i_matmul_kernel(iris_dtype_t dtype)
{
    switch (dtype) {
    case IRIS_DTYPE_F32:
        return iris_k_matmul_f32;
    case IRIS_DTYPE_F16:
        return iris_k_matmul_f16;
    case IRIS_DTYPE_BF16:
        return iris_k_matmul_bf16;
    default:
        return NULL;
    }
}

const struct iris_kernel *const iris_i_ops_close_kernel = iris_k_ops_close;

const struct iris_kernel *iris_i_ops_sum_kernel(iris_dtype_t dtype)
{
    switch (dtype) {
    case IRIS_DTYPE_F32:
        return iris_k_ops_sum_f32;
    case IRIS_DTYPE_F16:
        return iris_k_ops_sum_f16;
    case IRIS_DTYPE_BF16:
        return iris_k_ops_sum_bf16;
    default:
        return NULL;
    }
}
