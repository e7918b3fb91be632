/* SPDX-License-Identifier: MIT
 *
 * Whether kernels can access memory of the program.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_ACCESS_H
#define IRIS_SRC_BACKEND_HIP_HIP_ACCESS_H

#include "backend_hip/hip.h"

/* The slot check_access. */
iris_status_t iris_i_hip_check_access(struct iris_backend *backend,
                                      const char *name, const void *ptr,
                                      size_t bytes);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_ACCESS_H */
