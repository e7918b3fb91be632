/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/ops: kernels and their launches, in C and in C++
 * for GPUs.
 */
#ifndef IRIS_SRC_OPS_KERNELS_H
#define IRIS_SRC_OPS_KERNELS_H

#include <iris/types.h>

/* ---- ops_kernels.c ---- */

#ifdef __cplusplus
extern "C" {
#endif

/* The product of matrices of this type; NULL: there is none. */
const struct iris_kernel *iris_i_matmul_kernel(iris_dtype_t dtype);

/* For chunks: the end of a call, and sums of matrices of that type (NULL: not
 * supported). */
extern const struct iris_kernel *const iris_i_ops_close_kernel;
const struct iris_kernel *iris_i_ops_sum_kernel(iris_dtype_t dtype);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_SRC_OPS_KERNELS_H */
