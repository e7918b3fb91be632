/* SPDX-License-Identifier: MIT
 *
 * The kernels of fused operations. Their arguments are in
 * <iris/device/kernels/matmul_args.h> and <iris/device/kernels/ops_args.h>. C
 * and C++: ops_kernels.c is compiled for GPUs, too.
 */
#ifndef IRIS_SRC_OPS_OPS_KERNELS_H
#define IRIS_SRC_OPS_OPS_KERNELS_H

#include <iris/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The product of matrices of this type; NULL: there is none. */
const struct iris_kernel *iris_i_matmul_kernel(iris_dtype_t dtype);

/* For chunks: the signal of an arrival, the wait for it, and sums of matrices
 * of that type (NULL: not supported). */
extern const struct iris_kernel *const iris_i_ops_signal_kernel;
extern const struct iris_kernel *const iris_i_ops_wait_kernel;
const struct iris_kernel *iris_i_ops_sum_kernel(iris_dtype_t dtype);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_SRC_OPS_OPS_KERNELS_H */
