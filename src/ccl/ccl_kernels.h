/* SPDX-License-Identifier: MIT
 *
 * The kernels of collectives. Their arguments are in
 * <iris/device/kernels/ccl_args.h>. C and C++: ccl_kernels.c is compiled for
 * GPUs, too.
 */
#ifndef IRIS_SRC_CCL_CCL_KERNELS_H
#define IRIS_SRC_CCL_CCL_KERNELS_H

#include <iris/types.h>

extern const struct iris_kernel *const iris_i_ccl_reduce_kernel;
extern const struct iris_kernel *const iris_i_ccl_matrix_kernel;
extern const struct iris_kernel *const iris_i_ccl_move_kernel;
extern const struct iris_kernel *const iris_i_ccl_packet_kernel;
extern const struct iris_kernel *const iris_i_ccl_pairs_kernel;
extern const struct iris_kernel *const iris_i_ccl_unordered_kernel;
extern const struct iris_kernel *const iris_i_ccl_far_kernel; /* CPU only */
extern const struct iris_kernel *const iris_i_ccl_far_pairs_kernel;

#endif /* IRIS_SRC_CCL_CCL_KERNELS_H */
