/* SPDX-License-Identifier: MIT
 *
 * The kernels of a product and its transport in one, for the CPU and, where
 * iriscc has a GPU compiler, for GPUs.
 */
#define IRIS_MAX_LANES 256 /* for registers */
#include "ops/kernels.h"

#include <iris/device/kernels/ops_fused.h>

const struct iris_kernel *iris_i_ops_fused_kernel(iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F32   ? iris_k_ops_fused_f32
           : dtype == IRIS_DTYPE_F16 ? iris_k_ops_fused_f16
                                     : iris_k_ops_fused_bf16;
}
