/* SPDX-License-Identifier: MIT
 *
 * The kernels of signals and barriers (device/kernels/), enqueued on a stream.
 * All but iris_i_wait_kernel() return what iris_i_launch() returns. C and C++.
 */
#ifndef IRIS_SRC_QUEUE_QUEUE_KERNELS_H
#define IRIS_SRC_QUEUE_QUEUE_KERNELS_H

#include <iris/group.h>
#include <iris/launch.h>

struct iris_queue;

/* What iris_i_kernel_wait() launches. */
const struct iris_kernel *iris_i_wait_kernel(void);

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

#endif /* IRIS_SRC_QUEUE_QUEUE_KERNELS_H */
