/* SPDX-License-Identifier: MIT
 *
 * The instance's fault, and the watch that ends kernels.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_FAULT_H
#define IRIS_SRC_BACKEND_HIP_HIP_FAULT_H

#include "backend_hip/hip.h"

iris_status_t iris_i_hip_watch_open(struct hip_backend *hip);

/* Makes `status`, with this thread's message, the fault, and ends kernels that
 * wait. */
void iris_i_hip_raise(struct hip_backend *hip, iris_status_t status);

/* The fault, including one that a lane has just reported; or IRIS_OK. */
iris_status_t iris_i_hip_check(struct hip_backend *hip);

/* After a fault: waits until `is_done` is true, at most two seconds. Work that
 * has not ended by then is given up. */
bool iris_i_hip_end_work(struct hip_backend *hip, bool (*is_done)(void *arg),
                         void *arg);

IRIS_SLOT(iris_i_hip_clear_fault, device, clear_fault);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_FAULT_H */
