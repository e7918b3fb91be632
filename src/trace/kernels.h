/* SPDX-License-Identifier: MIT
 *
 * The kernel that reads the device's clock.
 */
#ifndef IRIS_SRC_TRACE_KERNELS_H
#define IRIS_SRC_TRACE_KERNELS_H

#include "queue/queue.h"

/* Enqueues on the default stream what writes the device's clock to `place`, on
 * the heap; no observer sees it. Not for devices whose clock_khz is 0. */
iris_status_t iris_i_trace_launch_clock(struct iris_queue *queue,
                                        int64_t *place);

#endif /* IRIS_SRC_TRACE_KERNELS_H */
