/* SPDX-License-Identifier: MIT
 *
 * A stream as two numbers, and giving it work. It knows nothing of faults.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_QUEUE_H
#define IRIS_SRC_BACKEND_HIP_HIP_QUEUE_H

#include "backend_hip/hip.h"

bool iris_i_hip_capturing(struct hip_stream *stream);

/* Brings `completed` up to date. hipErrorNotReady: there is more to come. The
 * stream's lock is held. The second: of all streams that nobody enqueues to,
 * and of one whose lock is held, or NULL. */
hipError_t iris_i_hip_update(struct hip_stream *stream);
void iris_i_hip_update_all(struct hip_backend *hip, struct hip_stream *held);

/* hipSuccess: so much is completed; 0 is all, and becomes what that is.
 * hipErrorNotReady: not yet. Another error: the device fails, so that all the
 * stream has counts as completed. */
hipError_t iris_i_hip_poll(struct hip_stream *stream, uint64_t *target_p);

/* Around so many calls of the runtime that give the stream work. Begin: 0, and
 * the stream's lock is held up to the end; or there is no space: what has to be
 * completed first. */
uint64_t iris_i_hip_begin(struct hip_stream *stream, size_t calls);
void iris_i_hip_end(struct hip_stream *stream, size_t calls);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_QUEUE_H */
