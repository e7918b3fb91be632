/* SPDX-License-Identifier: MIT
 *
 * This rank's heap.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_HEAP_H
#define IRIS_SRC_BACKEND_HIP_HIP_HEAP_H

#include "backend_hip/hip.h"

IRIS_SLOT(iris_i_hip_alloc, memory, alloc);
IRIS_SLOT(iris_i_hip_free, memory, free);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_HEAP_H */
