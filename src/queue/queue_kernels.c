/* SPDX-License-Identifier: MIT
 *
 * The library's object file with the kernels of signals and barriers, for the
 * CPU and, if iriscc has a GPU compiler, for GPUs.
 */
#include "queue/kernels.h"

#include <iris/device/kernels/barrier.h>
#include <iris/device/kernels/signal.h>

/* Lanes of a workgroup that copies on a GPU. */
#define FAR_LANES 256

static const struct iris_stream_kernels near_kernels = {
    iris_k_barrier, iris_k_signal, iris_k_signal_add, iris_k_transfer};

static const struct iris_stream_kernels *
choose_kernels(const struct iris_queue *queue)
{
    return iris_i_queue_is_far(queue) ? &iris_i_far_kernels : &near_kernels;
}

static iris_status_t launch_own(struct iris_queue *queue,
                                const struct iris_kernel *kernel,
                                unsigned block, const void *args,
                                iris_stream_t *stream)
{
    struct iris_launch_request request = {
        kernel, 1, block, args, kernel->args_bytes, true};

    return iris_i_launch(queue, &request, stream);
}

iris_status_t iris_i_kernel_barrier(struct iris_queue *queue,
                                    struct iris_dev_group *group,
                                    iris_stream_t *stream)
{
    struct iris_barrier_args args = {iris_i_queue_context(queue), group};

    return launch_own(queue, choose_kernels(queue)->barrier,
                      IRIS_DEV_GROUP_LANES, &args, stream);
}

iris_status_t iris_i_kernel_signal(struct iris_queue *queue,
                                   const struct iris_transfer *what,
                                   iris_stream_t *stream)
{
    struct iris_signal_args args = {iris_i_queue_context(queue),
                                    (uint64_t *)what->symmetric, what->value,
                                    what->rank};

    const struct iris_stream_kernels *kernels = choose_kernels(queue);

    return launch_own(queue, what->adds ? kernels->signal_add : kernels->signal,
                      1, &args, stream);
}

iris_status_t iris_i_kernel_forward(struct iris_queue *queue,
                                    const struct iris_transfer *what,
                                    iris_stream_t *stream)
{
    struct iris_forward_args args = {iris_i_queue_context(queue),
                                     (uint64_t *)what->symmetric,
                                     (const uint64_t *)what->other, what->rank};

    return launch_own(queue, iris_k_forward, 1, &args, stream);
}

iris_status_t iris_i_kernel_transfer(struct iris_queue *queue,
                                     const struct iris_transfer *what,
                                     const struct iris_transfer_rows *rows,
                                     iris_stream_t *stream)
{
    struct iris_transfer_args args = {
        iris_i_queue_context(queue), what->symmetric,  what->other, what->bytes,
        rows->symmetric_step,        rows->other_step, what->rank,  what->gets};

    struct iris_launch_request request = {choose_kernels(queue)->transfer,
                                          rows->count,
                                          iris_i_queue_is_far(queue) ? FAR_LANES
                                                                     : 1,
                                          &args,
                                          sizeof args,
                                          true};

    return iris_i_launch(queue, &request, stream);
}

const struct iris_kernel *iris_i_wait_kernel(void)
{
    return iris_k_wait;
}

iris_status_t iris_i_kernel_wait(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t *stream)
{
    struct iris_wait_args args = {iris_i_queue_context(queue),
                                  (const uint64_t *)what->symmetric, what->cmp,
                                  what->value};

    return launch_own(queue, iris_k_wait, 1, &args, stream);
}
