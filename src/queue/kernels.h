/* SPDX-License-Identifier: MIT
 *
 * The library's own kernels (device/kernels/), enqueued on a stream. What
 * iris_launch() returns.
 */
#ifndef IRIS_SRC_QUEUE_KERNELS_H
#define IRIS_SRC_QUEUE_KERNELS_H

#include <iris/group.h>
#include <iris/launch.h>

iris_status_t iris_i_kernel_barrier(iris_t *iris, struct iris_dev_group *group,
                                    iris_stream_t *stream);

/* `signal` is this rank's own address of it. */
iris_status_t iris_i_kernel_signal(iris_t *iris, uint64_t *signal,
                                   uint64_t value, int to_rank,
                                   iris_stream_t *stream);
iris_status_t iris_i_kernel_signal_add(iris_t *iris, uint64_t *signal,
                                       uint64_t value, int to_rank,
                                       iris_stream_t *stream);
iris_status_t iris_i_kernel_wait(iris_t *iris, const uint64_t *signal,
                                 iris_cmp_t cmp, uint64_t value,
                                 iris_stream_t *stream);

#endif /* IRIS_SRC_QUEUE_KERNELS_H */
