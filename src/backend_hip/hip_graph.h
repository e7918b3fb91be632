/* SPDX-License-Identifier: MIT
 *
 * Captures and graphs.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_GRAPH_H
#define IRIS_SRC_BACKEND_HIP_HIP_GRAPH_H

#include "backend_hip/hip.h"

IRIS_SLOT(iris_i_hip_capture_begin, queue, capture_begin);
IRIS_SLOT(iris_i_hip_capture_end, queue, capture_end);
IRIS_SLOT(iris_i_hip_graph_launch, queue, graph_launch);
IRIS_SLOT(iris_i_hip_graph_destroy, device, graph_destroy);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_GRAPH_H */
