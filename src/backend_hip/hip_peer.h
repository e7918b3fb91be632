/* SPDX-License-Identifier: MIT
 *
 * Peers' heaps.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_PEER_H
#define IRIS_SRC_BACKEND_HIP_HIP_PEER_H

#include "backend_hip/hip.h"

IRIS_SLOT(iris_i_hip_export_heap, memory, export_heap);
IRIS_SLOT(iris_i_hip_import_heap, memory, import_heap);
IRIS_SLOT(iris_i_hip_unimport_heap, memory, unimport_heap);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_PEER_H */
