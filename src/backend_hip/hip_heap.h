/* SPDX-License-Identifier: MIT
 *
 * This rank's heap, and the peers'.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_HEAP_H
#define IRIS_SRC_BACKEND_HIP_HIP_HEAP_H

#include "backend_hip/hip.h"

IRIS_SLOT(iris_i_hip_alloc, memory, alloc);
IRIS_SLOT(iris_i_hip_free, memory, free);
IRIS_SLOT(iris_i_hip_export_heap, memory, export_heap);
IRIS_SLOT(iris_i_hip_import_heap, memory, import_heap);
IRIS_SLOT(iris_i_hip_unimport_heap, memory, unimport_heap);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_HEAP_H */
