/* SPDX-License-Identifier: MIT
 *
 * How any kernel is enqueued on a stream. C and C++: what has kernels is
 * compiled for GPUs, too.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_LAUNCH_H
#define IRIS_SRC_QUEUE_QUEUE_LAUNCH_H

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

#endif /* IRIS_SRC_QUEUE_QUEUE_LAUNCH_H */
