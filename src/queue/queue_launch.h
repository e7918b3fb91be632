/* SPDX-License-Identifier: MIT
 *
 * Enqueues kernels on streams. C and C++: files with kernels are compiled for
 * GPUs, too.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_LAUNCH_H
#define IRIS_SRC_QUEUE_QUEUE_LAUNCH_H

#include <iris/launch.h>

#include <stdbool.h>

struct iris_queue;

/* A launch as the program requests it. */
struct iris_launch_request {
    const struct iris_kernel *kernel;
    unsigned grid;
    unsigned block;
    const void *args;
    size_t args_bytes;
    bool own; /* one of the library's kernels */
};

/* The work of iris_launch(). */
iris_status_t iris_i_launch(struct iris_queue *queue,
                            const struct iris_launch_request *request,
                            iris_stream_t *stream);

/* The device context for kernels. */
const int64_t *iris_i_queue_context(const struct iris_queue *queue);

#endif /* IRIS_SRC_QUEUE_QUEUE_LAUNCH_H */
