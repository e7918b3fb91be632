/* SPDX-License-Identifier: MIT
 *
 * The library's own kernels (device/kernels/), enqueued on a stream, and how
 * any kernel is. C and C++: kernels.c is compiled for GPUs, too.
 */
#ifndef IRIS_SRC_QUEUE_KERNELS_H
#define IRIS_SRC_QUEUE_KERNELS_H

#include <iris/group.h>
#include <iris/launch.h>

#include <stdbool.h>

struct iris_queue;

/* A launch as a program asks for it. */
struct iris_launch_request {
    const struct iris_kernel *kernel;
    unsigned grid;
    unsigned block;
    const void *args;
    size_t args_bytes;
    bool own; /* one of the library's kernels */
};

/* What iris_launch() does and returns. */
iris_status_t iris_i_launch(struct iris_queue *queue,
                            const struct iris_launch_request *request,
                            iris_stream_t *stream);

/* What kernels start from. */
const int64_t *iris_i_queue_context(const struct iris_queue *queue);

/* What iris_i_kernel_wait() launches. */
const struct iris_kernel *iris_i_wait_kernel(void);

/* All of these return what iris_i_launch() returns. */
iris_status_t iris_i_kernel_barrier(struct iris_queue *queue,
                                    struct iris_dev_group *group,
                                    iris_stream_t *stream);

/* `signal` is this rank's own address of it. */
iris_status_t iris_i_kernel_signal(struct iris_queue *queue, uint64_t *signal,
                                   uint64_t value, int to_rank,
                                   iris_stream_t *stream);
iris_status_t iris_i_kernel_signal_add(struct iris_queue *queue,
                                       uint64_t *signal, uint64_t value,
                                       int to_rank, iris_stream_t *stream);
iris_status_t iris_i_kernel_wait(struct iris_queue *queue,
                                 const uint64_t *signal, iris_cmp_t cmp,
                                 uint64_t value, iris_stream_t *stream);

#endif /* IRIS_SRC_QUEUE_KERNELS_H */
