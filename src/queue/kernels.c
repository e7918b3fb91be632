/* SPDX-License-Identifier: MIT
 *
 * The one object of the library with kernels, for the CPU and, where iriscc has
 * a GPU compiler, for GPUs. It sees no internal header: those are no C++.
 */
#include "queue/kernels.h"

#include <iris/device/kernels/barrier.h>
#include <iris/device/kernels/signal.h>

iris_status_t iris_i_kernel_barrier(iris_t *iris, struct iris_dev_group *group,
                                    iris_stream_t *stream)
{
    struct iris_barrier_args args = {iris_device_context(iris), group};

    return iris_launch(iris, iris_k_barrier, 1, IRIS_DEV_GROUP_LANES, &args,
                       sizeof args, stream);
}

iris_status_t iris_i_kernel_signal(iris_t *iris, uint64_t *signal,
                                   uint64_t value, int to_rank,
                                   iris_stream_t *stream)
{
    struct iris_signal_args args = {iris_device_context(iris), signal, value,
                                    to_rank};

    return iris_launch(iris, iris_k_signal, 1, 1, &args, sizeof args, stream);
}

iris_status_t iris_i_kernel_signal_add(iris_t *iris, uint64_t *signal,
                                       uint64_t value, int to_rank,
                                       iris_stream_t *stream)
{
    struct iris_signal_args args = {iris_device_context(iris), signal, value,
                                    to_rank};

    return iris_launch(iris, iris_k_signal_add, 1, 1, &args, sizeof args,
                       stream);
}

iris_status_t iris_i_kernel_wait(iris_t *iris, const uint64_t *signal,
                                 iris_cmp_t cmp, uint64_t value,
                                 iris_stream_t *stream)
{
    struct iris_wait_args args = {iris_device_context(iris), signal, cmp,
                                  value};

    return iris_launch(iris, iris_k_wait, 1, 1, &args, sizeof args, stream);
}
