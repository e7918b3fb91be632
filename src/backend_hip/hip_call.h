/* SPDX-License-Identifier: MIT
 *
 * Calls of the runtime: the brackets around them, and their errors.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_CALL_H
#define IRIS_SRC_BACKEND_HIP_HIP_CALL_H

#include "backend_hip/hip.h"

/* The state of a program's thread before a call into the backend. */
struct hip_before {
    int device; /* -1: nothing to restore */
    hipStreamCaptureMode mode;
    hipError_t error; /* error that the program may still query */
};

/* Between these two calls, the calling thread's device is the backend's, and no
 * capture of any thread of the program forbids calls. The program does not see
 * errors of calls in between. Each slot that calls the runtime holds this as
 * HIP_SCOPED, which leaves at the end of the block; older clangs report that as
 * unused. */
struct hip_before iris_i_hip_enter(const struct hip_backend *hip);
void iris_i_hip_leave(const struct hip_before *before);
#define HIP_SCOPED __attribute__((cleanup(iris_i_hip_leave), unused))

/* Takes a reference to the device for the rest of the process. */
hipError_t iris_i_hip_attach(struct hip_backend *hip);

/* Translates an error of the runtime: IRIS_OK, IRIS_ERR_NO_MEMORY or
 * IRIS_ERR_DEVICE. The message has "rank 0, GPU 3: " in front, and the
 * runtime's name and text for the error at its end. The second function is for
 * the library's own errors. */
iris_status_t iris_i_hip_fail(const struct hip_backend *hip, hipError_t error,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));
iris_status_t iris_i_hip_refuse(const struct hip_backend *hip,
                                iris_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
iris_status_t iris_i_hip_fail_captured(const struct hip_backend *hip,
                                       const char *what);

/* For a call that may fail by chance. Waits a moment and returns true for the
 * first few such errors, else returns false. `tries` starts at 0. */
bool iris_i_hip_try_again(hipError_t error, int *tries);

/* An attribute of the device; the third argument if the runtime does not know
 * it. */
int iris_i_hip_attribute(const struct hip_backend *hip,
                         hipDeviceAttribute_t which, int otherwise);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_CALL_H */
