/* SPDX-License-Identifier: MIT
 *
 * What the fake HIP runtime's streams do: kernels, of which an image is a
 * struct iris_kernel whose CPU version runs, copies, fills and the like.
 */
#include "config.h"

#include "fake.h"

#include <iris/device/watch/cpu.h>
#include <iris/device/wg/kernel.h>

#include <sched.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fake_stream.h"

/* Turns of a loop that waits before it gives the core away. */
#define TURNS 8

/* A workgroup while it runs. */
struct workgroup {
    struct fake_workgroup as_kernel;
    struct iris_cpu_wg far;
    unsigned polls;
    jmp_buf end;
};

struct ihipModule_t {
    struct iris_kernel kernel; /* as it was when it was loaded */
    int device;
};

/* Every device has the same. */
FAKE_EXPORT hipError_t hipDeviceGetAttribute(int *value_p,
                                             hipDeviceAttribute_t which,
                                             int device)
{
    hipError_t error = fake_enter(__func__);

    (void)device;
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    switch ((int)which) {
    case hipDeviceAttributeMultiprocessorCount:
        *value_p = (int)fake_setting("FAKEHIP_CUS", 4);
        return hipSuccess;
    case hipDeviceAttributeWarpSize:
        *value_p = fake_quirk("wave32") ? 32 : 64;
        return hipSuccess;
    case hipDeviceAttributeComputeCapabilityMajor:
        *value_p = 9;
        return hipSuccess;
    case hipDeviceAttributeComputeCapabilityMinor:
        *value_p = fake_setting("FAKEHIP_MI200", 0) != 0 ? 0 : 4;
        return hipSuccess;
    case hipDeviceAttributePageableMemoryAccess:
        *value_p = (int)fake_setting("FAKEHIP_PAGEABLE", 0);
        return hipSuccess;
    default:
        return fake_leave(hipErrorInvalidValue);
    }
}

/* 100 MHz, as MI300's, or the 25 of MI200. */
static uint64_t ticks(void)
{
    uint64_t mhz = fake_setting("FAKEHIP_MI200", 0) != 0 ? 25 : 100;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * mhz * 1000000 +
           (uint64_t)now.tv_nsec * mhz / 1000;
}

/* Threads that load at the same time never come back. */
static atomic_int loading;

static void load(void)
{
    bool many = atomic_fetch_add(&loading, 1) > 0;

    if (fake_quirk("load-deadlock")) {
        while (many) {
            pause();
        }
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    atomic_fetch_sub(&loading, 1);
}

static void end_workgroup(struct fake_workgroup *self)
{
    _longjmp(((struct workgroup *)self)->end, 1);
}

static void poll_workgroup(struct fake_workgroup *self)
{
    if (fake_lost() != hipSuccess) {
        end_workgroup(self);
    }
    if (++((struct workgroup *)self)->polls % TURNS == 0) {
        sched_yield();
    }
}

void fake_run_workgroup(const struct fake_op *op, unsigned id)
{
    struct workgroup self = {
        .as_kernel = {id, ticks, poll_workgroup, end_workgroup, &self.far},
    };
    const iris_wg_t wg = {
        .id = id,
        .num_wgs = op->launch.grid,
        .num_lanes = op->launch.block,
        .fake = &self.as_kernel,
    };

    if (_setjmp(self.end) == 0) {
        op->launch.kernel->cpu_entry(&wg, op->args);
    }
}

FAKE_EXPORT hipError_t hipModuleLoadData(hipModule_t *module_p,
                                         const void *image)
{
    const struct iris_kernel *kernel = image;
    hipError_t error = fake_enter_driver(__func__);
    hipModule_t module;

    if (error == hipSuccess) {
        error = fake_refuse_capture();
    }
    if (error == hipSuccess && kernel->gpu_image != image) {
        error = hipErrorInvalidImage;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    load();
    module = calloc(1, sizeof *module);
    if (module == NULL) {
        return fake_leave(hipErrorOutOfMemory);
    }
    module->kernel = *kernel;
    module->device = fake_device();
    *module_p = module;
    return hipSuccess;
}

FAKE_EXPORT hipError_t hipModuleGetFunction(hipFunction_t *function_p,
                                            hipModule_t module,
                                            const char *name)
{
    hipError_t error = fake_enter(__func__);
    char known[256];

    if (error != hipSuccess) {
        return error;
    }
    load();
    snprintf(known, sizeof known, "%s_gpu", module->kernel.name);
    if (strcmp(name, known) != 0) {
        return fake_leave(hipErrorNotFound);
    }
    *function_p = (hipFunction_t)module;
    return hipSuccess;
}

/* What HIP_LAUNCH_PARAM_* say: the arguments, and how many bytes. */
static const void *arguments(void **extra, size_t *bytes_p)
{
    const void *args = NULL;

    for (; *extra != HIP_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == HIP_LAUNCH_PARAM_BUFFER_POINTER) {
            args = extra[1];
        } else if (extra[0] == HIP_LAUNCH_PARAM_BUFFER_SIZE) {
            *bytes_p = *(const size_t *)extra[1];
        }
    }
    return args;
}

FAKE_EXPORT hipError_t hipModuleLaunchKernel(
    hipFunction_t function, unsigned grid, unsigned grid_y, unsigned grid_z,
    unsigned block, unsigned block_y, unsigned block_z, unsigned shared,
    hipStream_t stream, void **args, void **extra)
{
    const struct ihipModule_t *module = (const void *)function;
    struct fake_op op = {.kind = FAKE_LAUNCH,
                         .launch = {&module->kernel, grid, block}};
    hipError_t error = fake_enter_driver(__func__);
    const void *bytes = arguments(extra, &op.bytes);

    if (error != hipSuccess) {
        return error;
    }
    if (grid == 0 || block == 0 || block > 1024 || grid_y != 1 || grid_z != 1 ||
        block_y != 1 || block_z != 1) {
        return fake_leave(hipErrorInvalidConfiguration);
    }
    if (shared != 0 || args != NULL || bytes == NULL ||
        op.bytes != module->kernel.args_bytes) {
        return fake_leave(hipErrorInvalidValue);
    }
    if (module->device != fake_device()) {
        return fake_leave(hipErrorInvalidHandle);
    }
    return fake_leave(fake_enqueue(stream, &op, bytes));
}

/* For kernels that hipcc compiled, of which there are none here. */
FAKE_EXPORT hipError_t hipLaunchKernel(const void *function, dim3 grid,
                                       dim3 block, void **args, size_t shared,
                                       hipStream_t stream)
{
    hipError_t error = fake_enter(__func__);

    (void)function, (void)grid, (void)block, (void)args, (void)shared;
    (void)stream;
    return fake_leave(error == hipSuccess ? hipErrorInvalidDeviceFunction
                                          : error);
}

/* ---- What is enqueued, beside launches ---- */

static hipError_t enqueue(const char *call, hipStream_t stream,
                          const struct fake_op *op)
{
    hipError_t error = fake_enter(call);

    return error == hipSuccess ? fake_leave(fake_enqueue(stream, op, NULL))
                               : error;
}

/* The runtime waits for the stream where host memory is not pinned. */
static bool waits(const void *dst, const void *src)
{
    struct fake_range range;

    return !fake_range_find(dst, &range) || !fake_range_find(src, &range);
}

FAKE_EXPORT hipError_t hipMemcpyAsync(void *dst, const void *src, size_t bytes,
                                      hipMemcpyKind kind, hipStream_t stream)
{
    const struct fake_op op = {
        .kind = FAKE_COPY, .dst = dst, .src = src, .bytes = bytes};
    hipError_t error = kind == hipMemcpyDefault
                           ? enqueue(__func__, stream, &op)
                           : fake_leave(hipErrorInvalidMemcpyDirection);

    return error == hipSuccess && waits(dst, src) ? hipStreamSynchronize(stream)
                                                  : error;
}

/* As the runtimes: pitches of 2^31 and more, or below a row, are refused. */
FAKE_EXPORT hipError_t hipMemcpy2DAsync(void *dst, size_t dst_pitch,
                                        const void *src, size_t src_pitch,
                                        size_t width, size_t height,
                                        hipMemcpyKind kind, hipStream_t stream)
{
    const struct fake_op op = {.kind = FAKE_COPY_ROWS,
                               .dst = dst,
                               .src = src,
                               .bytes = width,
                               .rows = height,
                               .dst_pitch = dst_pitch,
                               .src_pitch = src_pitch};
    size_t longest = dst_pitch > src_pitch ? dst_pitch : src_pitch;
    size_t shortest = dst_pitch < src_pitch ? dst_pitch : src_pitch;
    hipError_t error;

    if (kind != hipMemcpyDefault) {
        return fake_leave(hipErrorInvalidMemcpyDirection);
    }
    error = shortest < width || longest > INT32_MAX
                ? fake_leave(hipErrorInvalidPitchValue)
                : enqueue(__func__, stream, &op);
    return error == hipSuccess && waits(dst, src) ? hipStreamSynchronize(stream)
                                                  : error;
}

FAKE_EXPORT hipError_t hipMemsetAsync(void *dst, int value, size_t bytes,
                                      hipStream_t stream)
{
    const struct fake_op op = {.kind = FAKE_FILL,
                               .dst = dst,
                               .value = (unsigned char)value,
                               .bytes = bytes};
    struct fake_range range;

    return fake_range_find(dst, &range) ? enqueue(__func__, stream, &op)
                                        : fake_leave(hipErrorInvalidValue);
}

/* enqueue() of what no capture may contain, which is then void. */
static hipError_t enqueue_now(const char *call, hipStream_t handle,
                              const struct fake_op *op)
{
    hipError_t error = fake_enter(call);
    hipStream_t stream;

    if (error == hipSuccess) {
        error = fake_stream_lock_idle(handle, &stream);
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(fake_enqueue(handle, op, NULL));
}

FAKE_EXPORT hipError_t hipStreamWriteValue64(hipStream_t stream, void *place,
                                             uint64_t value, unsigned flags)
{
    const struct fake_op op = {
        .kind = FAKE_WRITE, .dst = place, .value = value};

    (void)flags;
    return enqueue_now(__func__, stream, &op);
}

/* As on CUDA: any device memory will do, and GE is cyclic. On AMD, and so here
 * unless the environment asks for it, there is no such call for a heap. */
FAKE_EXPORT hipError_t hipStreamWaitValue64(hipStream_t stream, void *place,
                                            uint64_t value, unsigned flags,
                                            uint64_t mask)
{
    const struct fake_op op = {
        .kind = FAKE_WAIT, .dst = place, .value = value, .bytes = flags};

    if (mask != UINT64_MAX ||
        (flags != hipStreamWaitValueEq && flags != hipStreamWaitValueGte)) {
        return fake_leave(hipErrorInvalidValue);
    }
    return fake_setting("FAKEHIP_STREAM_WAITS", 0) == 0
               ? fake_leave(hipErrorNotSupported)
               : enqueue_now(__func__, stream, &op);
}

static bool has_come(const struct fake_op *op)
{
    uint64_t seen = atomic_load((_Atomic uint64_t *)op->dst);

    return op->bytes == hipStreamWaitValueEq ? seen == op->value
                                             : (int64_t)(seen - op->value) >= 0;
}

void fake_wait(const struct fake_op *op)
{
    while (!has_come(op) && fake_lost() == hipSuccess) {
        nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
    }
}

FAKE_EXPORT hipError_t hipStreamAddCallback(hipStream_t stream,
                                            hipStreamCallback_t callback,
                                            void *argument, unsigned flags)
{
    const struct fake_op op = {
        .kind = FAKE_CALLBACK, .callback = callback, .argument = argument};

    (void)flags;
    return enqueue_now(__func__, stream, &op);
}
