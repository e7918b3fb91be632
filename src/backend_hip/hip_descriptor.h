/* SPDX-License-Identifier: MIT
 *
 * Descriptors of memory.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_DESCRIPTOR_H
#define IRIS_SRC_BACKEND_HIP_HIP_DESCRIPTOR_H

#include "backend_hip/hip.h"

/* The most pieces of a heap of virtual memory. Each piece costs every process a
 * mapping, with some runtimes a descriptor, and one more in transit. */
#define HIP_MOST_PIECES 128

/* A descriptor of memory, which the caller closes. */
hipError_t iris_i_hip_export_fd(hipMemGenericAllocationHandle_t handle,
                                int *fd_p);

/* Whether a call failed because the process has no descriptors left: *status_p,
 * with this thread's message. */
bool iris_i_hip_lacks_descriptors(const struct hip_backend *hip, size_t bytes,
                                  iris_status_t *status_p);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_DESCRIPTOR_H */
