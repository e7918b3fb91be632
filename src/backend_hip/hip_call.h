/* SPDX-License-Identifier: MIT
 *
 * Calls of the runtime: the brackets around them, and their errors.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_CALL_H
#define IRIS_SRC_BACKEND_HIP_HIP_CALL_H

#include "backend_hip/hip.h"

/* What a thread of the program had before a call into the backend. */
struct hip_before {
    int device; /* -1: nothing to put back */
    hipStreamCaptureMode mode;
    hipError_t error; /* that the program may still ask for */
};

/* Between these two the calling thread's device is the backend's, and no
 * capture that some thread of the program has begun forbids it anything. Errors
 * of calls between are not the program's to find. Each slot that calls the
 * runtime holds this as HIP_SCOPED, which leaves at the end of the block; older
 * clangs see no use in that. */
struct hip_before iris_i_hip_enter(const struct hip_backend *hip);
void iris_i_hip_leave(const struct hip_before *before);
#define HIP_SCOPED __attribute__((cleanup(iris_i_hip_leave), unused))

/* Takes hold of the device for as long as the process lasts. */
hipError_t iris_i_hip_attach(struct hip_backend *hip);

/* An error of the runtime as a status: IRIS_OK, IRIS_ERR_NO_MEMORY or
 * IRIS_ERR_DEVICE, with "rank 0, GPU 3: " before the message and the runtime's
 * name and text behind it. The second: of this library's. */
iris_status_t iris_i_hip_fail(const struct hip_backend *hip, hipError_t error,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));
iris_status_t iris_i_hip_refuse(const struct hip_backend *hip,
                                iris_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
iris_status_t iris_i_hip_fail_captured(const struct hip_backend *hip,
                                       const char *what);

/* For a call that may fail by chance: false, or after a moment true, some
 * times. `tries` begins as 0. */
bool iris_i_hip_try_again(hipError_t error, int *tries);

/* An attribute of the device; the third if the runtime does not know it. */
int iris_i_hip_attribute(const struct hip_backend *hip,
                         hipDeviceAttribute_t which, int otherwise);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_CALL_H */
