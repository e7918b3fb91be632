/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/ccl: kernels and their launches, in C and in C++
 * for GPUs.
 */
#ifndef IRIS_SRC_CCL_KERNELS_H
#define IRIS_SRC_CCL_KERNELS_H

#include <iris/types.h>

/* ---- ccl_kernels.c ---- */

extern const struct iris_kernel *const iris_i_ccl_matrix_kernel;
extern const struct iris_kernel *const iris_i_ccl_move_kernel;
extern const struct iris_kernel *const iris_i_ccl_move_near_kernel;
extern const struct iris_kernel *const iris_i_ccl_packet_kernel;

/* The kernel that reads buffers in place, by enum iris_d_kind and
 * iris_reduce_op_t. */
const struct iris_kernel *iris_i_ccl_reduce_kernel(int kind, int op,
                                                   int members);

/* The kernel by packets of a group of at most IRIS_CCL_NEAR members. */
struct iris_ccl_packet_args;
const struct iris_kernel *
iris_i_ccl_packet_near(const struct iris_ccl_packet_args *args);
extern const struct iris_kernel *const iris_i_ccl_pairs_kernel;
extern const struct iris_kernel *const iris_i_ccl_unordered_kernel;

/* ---- far_kernels.c ---- */

extern const struct iris_kernel *const iris_i_ccl_far_kernel;
extern const struct iris_kernel *const iris_i_ccl_far_pairs_kernel;
extern const struct iris_kernel *const iris_i_ccl_levels_kernel;

#endif /* IRIS_SRC_CCL_KERNELS_H */
