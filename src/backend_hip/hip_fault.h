/* SPDX-License-Identifier: MIT
 *
 * The instance's fault, and the watch by which kernels end.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_FAULT_H
#define IRIS_SRC_BACKEND_HIP_HIP_FAULT_H

#include "backend_hip/hip.h"

iris_status_t iris_i_hip_watch_open(struct hip_backend *hip);

/* Makes `status`, with this thread's message, the fault, and ends kernels that
 * wait. */
void iris_i_hip_raise(struct hip_backend *hip, iris_status_t status);

/* The fault, which a lane may have reported just now; or IRIS_OK. */
iris_status_t iris_i_hip_check(struct hip_backend *hip);

/* After a fault: waits until `is_done` says that work is, or for two seconds:
 * what has not ended by then does not. */
bool iris_i_hip_end_work(struct hip_backend *hip, bool (*is_done)(void *arg),
                         void *arg);

IRIS_SLOT(iris_i_hip_clear_fault, device, clear_fault);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_FAULT_H */
