/* SPDX-License-Identifier: MIT
 *
 * External memory: the program's own, mapped behind the heap.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_EXTERNAL_H
#define IRIS_SRC_BACKEND_HIP_HIP_EXTERNAL_H

#include "backend_hip/hip.h"

IRIS_SLOT(iris_i_hip_hold_external, memory, hold_external);
IRIS_SLOT(iris_i_hip_release_external, memory, release_external);
IRIS_SLOT(iris_i_hip_map_external, memory, map_external);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_EXTERNAL_H */
