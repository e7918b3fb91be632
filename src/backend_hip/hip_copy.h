/* SPDX-License-Identifier: MIT
 *
 * Copies and fills.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_COPY_H
#define IRIS_SRC_BACKEND_HIP_HIP_COPY_H

#include "backend_hip/hip.h"

/* Fills new memory of the heap with zeros, and waits for that as for a stream:
 * IRIS_ERR_TIMEOUT and similar if it does not end by itself. */
iris_status_t iris_i_hip_zero(struct hip_backend *hip, void *base,
                              size_t bytes);

IRIS_SLOT(iris_i_hip_copy, queue, copy);
IRIS_SLOT(iris_i_hip_copy_rows, queue, copy_rows);
IRIS_SLOT(iris_i_hip_set, queue, set);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_COPY_H */
