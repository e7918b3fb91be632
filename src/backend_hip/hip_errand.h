/* SPDX-License-Identifier: MIT
 *
 * Errands: work that the host does in a stream's order.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_ERRAND_H
#define IRIS_SRC_BACKEND_HIP_HIP_ERRAND_H

#include "backend_hip/hip.h"

/* A copy of host memory by the host; with src NULL, a fill. */
struct hip_errand {
    void *dst;
    const void *src;
    int value;
    size_t bytes;
};

/* Enqueues it, as a part of the stream's next call. The stream's lock is
 * held. */
hipError_t iris_i_hip_send_errand(struct hip_stream *stream,
                                  const struct hip_errand *what);

/* Whether a pending errand of this process will write to this memory. */
bool iris_i_hip_errand_writes(const void *ptr, size_t bytes);

/* The number of the last call before the stream's first pending errand;
 * UINT64_MAX if all have run. The stream's lock is held. */
uint64_t iris_i_hip_errand_limit(const struct hip_stream *stream);

/* Cancels the pending errands of a stream whose work is given up: the runtime
 * may run them later or never. */
void iris_i_hip_call_off_errands(const struct hip_stream *stream);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_ERRAND_H */
