/* SPDX-License-Identifier: MIT
 *
 * The library's object file with the kernels of collectives between nodes, for
 * the CPU and for GPUs. Other GPUs' kernels have no instruction for it.
 */
#define IRIS_FAR 1
#define IRIS_MAX_LANES 512 /* block size of their launches */
#include "ccl/kernels.h"

#include <iris/device/kernels/ccl_far.h>
#include <iris/device/kernels/ccl_levels.h>
#include <iris/device/kernels/ccl_pairs.h>

const struct iris_kernel *const iris_i_ccl_far_kernel = iris_k_ccl_far;
const struct iris_kernel *const iris_i_ccl_far_pairs_kernel =
    iris_k_ccl_far_pairs;
const struct iris_kernel *const iris_i_ccl_levels_kernel = iris_k_ccl_levels;
