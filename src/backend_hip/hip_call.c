/* SPDX-License-Identifier: MIT
 *
 * Calls of the runtime: what a thread of the program has before and after, and
 * errors as statuses.
 */
#include "config.h"

#include "backend_hip/hip_call.h"

#include <stdarg.h>
#include <stdio.h>

/* ---- Errors ---- */

iris_status_t iris_i_hip_refuse(const struct hip_backend *hip,
                                iris_status_t status, const char *format, ...)
{
    char message[IRIS_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return iris_i_fail(NULL, status, "rank %d, GPU %d: %s", hip->params.rank,
                       hip->device, message);
}

iris_status_t iris_i_hip_fail(const struct hip_backend *hip, hipError_t error,
                              const char *format, ...)
{
    char message[700]; /* there is room behind it */
    va_list args;

    if (error == hipSuccess) {
        return IRIS_OK;
    }
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
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

/* ROCm 10: a handle cannot be made or opened now and then (rocm-systems #8178,
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

/* All: what this library asks in a thread would be an error while a capture in
 * global mode is under way in any other, and void that capture. */
static hipStreamCaptureMode exchange_mode(hipStreamCaptureMode mode)
{
    return hipThreadExchangeStreamCaptureMode(&mode) == hipSuccess
               ? mode
               : hipStreamCaptureModeRelaxed; /* nothing to put back */
}

#if IRIS_HIP_NVIDIA
/* CUDA 12 and 13: a thread of the program has a device in name only until it
 * uses it, and to make it current again would make a context there. So contexts
 * are pushed and popped. */
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

/* It is the runtime's own, and kept: memory whose freeing is deferred outlives
 * its backend. */
hipError_t iris_i_hip_attach(struct hip_backend *hip)
{
    return hipDevicePrimaryCtxRetain(&hip->context, hip->device);
}
#else
/* HIP 5.2: even the device that is current is set, since to a thread that is
 * new to the runtime that may mean nothing yet. */
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
