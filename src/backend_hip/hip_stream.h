/* SPDX-License-Identifier: MIT
 *
 * Streams of a GPU: created, wrapped, destroyed.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_STREAM_H
#define IRIS_SRC_BACKEND_HIP_HIP_STREAM_H

#include "backend_hip/hip.h"

/* Opens the streams for fills and copies that all contexts of a GPU in this
 * process share, unless they are open, and this context's own stream for
 * fills. */
iris_status_t iris_i_hip_streams_open(struct hip_backend *hip);
void iris_i_hip_streams_close(struct hip_backend *hip);

IRIS_SLOT(iris_i_hip_stream_create, device, stream_create);
IRIS_SLOT(iris_i_hip_stream_wrap, device, stream_wrap);
IRIS_SLOT(iris_i_hip_stream_destroy, device, stream_destroy);
IRIS_SLOT(iris_i_hip_native, queue, native);
IRIS_SLOT(iris_i_hip_call, queue, call);
IRIS_SLOT(iris_i_hip_follow, queue, follow);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_STREAM_H */
