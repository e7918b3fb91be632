/* SPDX-License-Identifier: MIT
 *
 * How the host waits until a stream's work is done, or until the stream has
 * space for more work.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_SYNCHRONIZE_H
#define IRIS_SRC_BACKEND_HIP_HIP_SYNCHRONIZE_H

#include "backend_hip/hip.h"

#define HIP_WORK "work on a stream was"

/* Waits until all earlier work is done (*finished_p), or is given up. Returns
 * the fault, if there is one. `what` is the subject of a message, with its
 * verb. */
iris_status_t iris_i_hip_wait_all(struct hip_stream *stream, const char *what,
                                  bool *finished_p);

/* Calls `enqueue` with the stream's lock held, once there is room for this
 * number of runtime calls. Returns its status, or the reason why it was not
 * called. */
typedef iris_status_t (*hip_enqueue_t)(struct hip_stream *stream, void *what);
iris_status_t iris_i_hip_enqueue(struct iris_stream *stream, size_t calls,
                                 hip_enqueue_t enqueue, void *what);

IRIS_SLOT(iris_i_hip_synchronize, queue, synchronize);
IRIS_SLOT(iris_i_hip_query, queue, query);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_SYNCHRONIZE_H */
