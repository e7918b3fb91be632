/* SPDX-License-Identifier: MIT
 *
 * Calls of the runtime: the state of a program's thread before and after, and
 * the translation of errors.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include "base/base.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Errors ---- */

iris_status_t iris_i_hip_refuse(const struct hip_backend *hip,
                                iris_status_t status, const char *format, ...)
{
    char message[IRIS_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    iris_i_vprint(message, sizeof message, format, args);
    va_end(args);
    return iris_i_fail(NULL, status, "rank %d, GPU %d: %s", hip->params.rank,
                       hip->device, message);
}

iris_status_t iris_i_hip_fail(const struct hip_backend *hip, hipError_t error,
                              const char *format, ...)
{
    char message[700]; /* leaves room for the runtime's text */
    va_list args;

    if (error == hipSuccess) {
        return IRIS_OK;
    }
    va_start(args, format);
    iris_i_vprint(message, sizeof message, format, args);
    va_end(args);
    return iris_i_hip_refuse(hip,
                             error == hipErrorOutOfMemory ? IRIS_ERR_NO_MEMORY
                                                          : IRIS_ERR_DEVICE,
                             "%s: %s (%s)", message, hipGetErrorString(error),
                             hipGetErrorName(error));
}

iris_status_t iris_i_hip_fail_captured(const struct hip_backend *hip,
                                       const char *what)
{
    return iris_i_hip_refuse(hip, IRIS_ERR_STATE,
                             "%s cannot be captured in a graph; do it before "
                             "or after the capture",
                             what);
}

/* ROCm 10: a handle sometimes cannot be made or opened (rocm-systems #8178,
 * #10609, #11892), or a descriptor is not ready yet (pull request 8293). */
bool iris_i_hip_try_again(hipError_t error, int *tries)
{
    struct iris_wait wait;

    if (error == hipSuccess || error == hipErrorOutOfMemory || ++*tries > 5) {
        return false;
    }
    iris_i_wait_moment(&wait, 10);
    while (iris_i_wait_tick(&wait) == IRIS_OK) {
    }
    return true;
}

int iris_i_hip_attribute(const struct hip_backend *hip,
                         hipDeviceAttribute_t which, int otherwise)
{
    int value;

    return hipDeviceGetAttribute(&value, which, hip->device) == hipSuccess
               ? value
               : otherwise;
}

/* ---- The calling thread ---- */

/* Needed around all calls. While any other thread captures in global mode, this
 * library's queries in this thread would return an error and void that
 * capture. */
static hipStreamCaptureMode exchange_mode(hipStreamCaptureMode mode)
{
    return hipThreadExchangeStreamCaptureMode(&mode) == hipSuccess
               ? mode
               : hipStreamCaptureModeRelaxed; /* nothing to restore */
}

#if IRIS_HIP_NVIDIA
/* CUDA 12 and 13: a thread of the program has a device only nominally until it
 * uses it. Making that device current again would create a context there. So
 * contexts are pushed and popped. */
static int make_current(const struct hip_backend *hip)
{
    return hipCtxPushCurrent(hip->context) == hipSuccess ? hip->device : -1;
}

static void put_back(int device)
{
    hipCtx_t left;

    (void)device;
    (void)hipCtxPopCurrent(&left);
}

/* The runtime's own context, which stays: memory whose freeing is deferred
 * outlives its backend. */
hipError_t iris_i_hip_attach(struct hip_backend *hip)
{
    return hipDevicePrimaryCtxRetain(&hip->context, hip->device);
}
#else
/* HIP 5.2: sets even the current device, since it may have no effect yet in a
 * thread that is new to the runtime. */
static int make_current(const struct hip_backend *hip)
{
    int device;
    bool had = hipGetDevice(&device) == hipSuccess && device != hip->device;

    (void)hipSetDevice(hip->device);
    return had ? device : -1;
}

static void put_back(int device)
{
    (void)hipSetDevice(device);
}

hipError_t iris_i_hip_attach(struct hip_backend *hip)
{
    (void)hip;
    return hipSuccess;
}
#endif

struct hip_before iris_i_hip_enter(const struct hip_backend *hip)
{
    hipError_t error = hipPeekAtLastError();
    int device = make_current(hip);

    return (struct hip_before){
        device, exchange_mode(hipStreamCaptureModeRelaxed), error};
}

void iris_i_hip_leave(const struct hip_before *before)
{
    if (before->mode != hipStreamCaptureModeRelaxed) {
        (void)exchange_mode(before->mode);
    }
    if (before->device >= 0) {
        put_back(before->device);
    }
    if (before->error == hipSuccess) {
        (void)hipGetLastError();
    }
}
