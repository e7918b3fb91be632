/* SPDX-License-Identifier: MIT
 *
 * The library's object file with the kernels of queue_kernels.c for GPUs that
 * reach other nodes, and with those that only they need. Other GPUs' kernels
 * have no instruction for it.
 */
#define IRIS_FAR 1
#include "queue/kernels.h"

#include <iris/device/kernels/barrier.h>
#include <iris/device/kernels/proxy.h>
#include <iris/device/kernels/signal.h>

const struct iris_stream_kernels iris_i_far_kernels = {
    iris_k_barrier, iris_k_signal, iris_k_signal_add, iris_k_transfer};

const struct iris_kernel *const iris_i_quiet_kernel = iris_k_quiet;
const struct iris_kernel *const iris_i_update_kernel = iris_k_update;
