/* SPDX-License-Identifier: MIT
 *
 * This rank's heap, and the peers'.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_HEAP_H
#define IRIS_SRC_BACKEND_HIP_HIP_HEAP_H

#include "backend_hip/hip.h"

extern const struct iris_memory_ops iris_i_hip_pool_ops;
extern const struct iris_memory_ops iris_i_hip_vmem_ops; /* heaps that grow */

#endif /* IRIS_SRC_BACKEND_HIP_HIP_HEAP_H */
