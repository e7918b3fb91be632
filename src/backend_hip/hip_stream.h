/* SPDX-License-Identifier: MIT
 *
 * Streams of a GPU: created, wrapped, destroyed.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_STREAM_H
#define IRIS_SRC_BACKEND_HIP_HIP_STREAM_H

#include "backend_hip/hip.h"

/* Makes the GPU's streams, if there are none, and what is around them. */
iris_status_t iris_i_hip_streams_open(struct hip_backend *hip);
void iris_i_hip_streams_close(struct hip_backend *hip);

IRIS_SLOT(iris_i_hip_stream_create, device, stream_create);
IRIS_SLOT(iris_i_hip_stream_wrap, device, stream_wrap);
IRIS_SLOT(iris_i_hip_stream_destroy, device, stream_destroy);
IRIS_SLOT(iris_i_hip_native, queue, native);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_STREAM_H */
