/* SPDX-License-Identifier: MIT
 *
 * The kernels of collectives (device/kernels/), for the CPU and, where iriscc
 * has a GPU compiler, for GPUs.
 */
#define IRIS_MAX_LANES 512 /* block size of their launches */
#include "ccl/kernels.h"

#include <iris/device/kernels/ccl_far.h>
#include <iris/device/kernels/ccl_matrix.h>
#include <iris/device/kernels/ccl_move.h>
#include <iris/device/kernels/ccl_packet.h>
#include <iris/device/kernels/ccl_pairs.h>
#include <iris/device/kernels/ccl_reduce.h>
#include <iris/device/kernels/ccl_unordered.h>

const struct iris_kernel *const iris_i_ccl_reduce_kernel = iris_k_ccl_reduce;
const struct iris_kernel *const iris_i_ccl_move_kernel = iris_k_ccl_move;
const struct iris_kernel *const iris_i_ccl_packet_kernel = iris_k_ccl_packet;
const struct iris_kernel *const iris_i_ccl_pairs_kernel = iris_k_ccl_pairs;
const struct iris_kernel *const iris_i_ccl_unordered_kernel =
    iris_k_ccl_unordered;
const struct iris_kernel *const iris_i_ccl_matrix_kernel = iris_k_ccl_matrix;
#if IRIS_ON_CPU /* GPUs reach mapped heaps only */
const struct iris_kernel *const iris_i_ccl_far_kernel = iris_k_ccl_far;
const struct iris_kernel *const iris_i_ccl_far_pairs_kernel =
    iris_k_ccl_far_pairs;
#endif
