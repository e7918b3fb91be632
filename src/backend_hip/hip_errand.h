/* SPDX-License-Identifier: MIT
 *
 * Errands: what the host does when a stream gets there.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_ERRAND_H
#define IRIS_SRC_BACKEND_HIP_HIP_ERRAND_H

#include "backend_hip/hip.h"

/* A copy of host memory, or with src NULL a fill, that the host makes. */
struct hip_errand {
    void *dst;
    const void *src;
    int value;
    size_t bytes;
};

/* Has the host do it when the stream gets there, as a part of the stream's next
 * call. The stream's lock is held. */
hipError_t iris_i_hip_send_errand(struct hip_stream *stream,
                                  const struct hip_errand *what);

/* Whether an errand of this process that has not run will write there. */
bool iris_i_hip_errand_writes(const void *ptr, size_t bytes);

/* The number of the last call before the stream's first errand that has not
 * run; UINT64_MAX if all have. The stream's lock is held. */
uint64_t iris_i_hip_errand_limit(const struct hip_stream *stream);

/* Calls off what a stream whose work is given up has not begun: the runtime may
 * run it later or never. */
void iris_i_hip_call_off_errands(const struct hip_stream *stream);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_ERRAND_H */
