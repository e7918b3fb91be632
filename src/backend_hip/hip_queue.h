/* SPDX-License-Identifier: MIT
 *
 * A stream's two numbers, and the enqueueing of work. It does not know faults.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_QUEUE_H
#define IRIS_SRC_BACKEND_HIP_HIP_QUEUE_H

#include "backend_hip/hip.h"

bool iris_i_hip_capturing(struct hip_stream *stream);

/* Updates `completed`. hipErrorNotReady: there is incomplete work. The stream's
 * lock is held. The second function is for all streams to which no thread is
 * enqueueing, and for one whose lock is held, or NULL. */
hipError_t iris_i_hip_update(struct hip_stream *stream);
void iris_i_hip_update_all(struct hip_backend *hip, struct hip_stream *held);

/* hipSuccess: this number is completed; 0 means all, and is replaced by that
 * number. hipErrorNotReady: not yet. Another error: the device has failed, so
 * all of the stream's work counts as completed. */
hipError_t iris_i_hip_poll(struct hip_stream *stream, uint64_t *target_p);

/* Called around this number of runtime calls that enqueue work. Begin returns
 * 0, and holds the stream's lock up to the end. If there is no space, it
 * returns the number that has to be completed first. */
uint64_t iris_i_hip_begin(struct hip_stream *stream, size_t calls);
void iris_i_hip_end(struct hip_stream *stream, size_t calls);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_QUEUE_H */
