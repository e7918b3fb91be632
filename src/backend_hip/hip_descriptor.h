/* SPDX-License-Identifier: MIT
 *
 * Descriptors of memory.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_DESCRIPTOR_H
#define IRIS_SRC_BACKEND_HIP_HIP_DESCRIPTOR_H

#include "backend_hip/hip.h"

/* A heap of vmem has this many pieces at most: each costs every process a
 * mapping, with some runtimes a descriptor, and one while it travels. */
#define HIP_MOST_PIECES 128

/* A descriptor of memory, which is the caller's to close. */
hipError_t iris_i_hip_export_fd(hipMemGenericAllocationHandle_t handle,
                                int *fd_p);

/* Whether a call that failed did so since the process has no descriptors left:
 * *status_p, with this thread's message. */
bool iris_i_hip_lacks_descriptors(const struct hip_backend *hip, size_t bytes,
                                  iris_status_t *status_p);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_DESCRIPTOR_H */
