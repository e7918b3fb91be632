/* SPDX-License-Identifier: MIT
 *
 * Launches kernels: finds a kernel's code for this GPU, once. Before the first
 * launch of ranks that share a GPU, tests whether copies pass kernels that
 * wait.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <iris/device/kernels/signal_args.h>

#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time that a copy may take beside a kernel that waits. */
#define COPY_MS 1000

/* An image of GPU code that is loaded on a device, for all contexts of the
 * process. It stays: after the program unloads an object with its image, graphs
 * and streams may still have its kernels. */
struct hip_image {
    struct hip_image *next;
    const void *image;
    uint64_t serial;
    int device;
    hipModule_t module;
};

/* Held around all loading of code: with ROCm 7.2.3, threads that load at once
 * may wait for each other forever (legacy-rocm-build #6577). */
static pthread_mutex_t images_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hip_image *images;

static hipError_t load_image(const struct hip_backend *hip, const void *image,
                             uint64_t serial, hipModule_t *module_p)
{
    struct hip_image *one = images;
    hipError_t error;

    while (one != NULL && (one->image != image || one->serial != serial ||
                           one->device != hip->device)) {
        one = one->next;
    }
    if (one != NULL) {
        *module_p = one->module;
        return hipSuccess;
    }
    one = malloc(sizeof *one);
    error =
        one == NULL ? hipErrorOutOfMemory : hipModuleLoadData(module_p, image);
    if (error != hipSuccess) {
        free(one);
        return error;
    }
    iris_i_hip_load_functions(*module_p);
    *one = (struct hip_image){images, image, serial, hip->device, *module_p};
    images = one;
    return hipSuccess;
}

/* An image that is not for this GPU is an error only when one of its kernels is
 * launched. */
static void load_ahead(void *argument, const void *image, uint64_t serial)
{
    hipModule_t module;

    pthread_mutex_lock(&images_lock);
    (void)load_image(argument, image, serial, &module);
    pthread_mutex_unlock(&images_lock);
}

void iris_i_hip_load_images(struct hip_backend *hip)
{
    iris_i_each_image(load_ahead, hip);
}

static iris_status_t fail_function(const struct hip_backend *hip,
                                   const struct iris_kernel *kernel,
                                   hipError_t error)
{
    if (error == hipErrorNoBinaryForGpu || error == hipErrorInvalidImage ||
        error == hipErrorNotFound) {
        return iris_i_hip_refuse(hip, IRIS_ERR_UNSUPPORTED,
                                 "kernel %s has no code for %s: %s. Build it "
                                 "with iriscc --offload-arch=<this GPU's>",
                                 kernel->name, hip->info.name,
                                 hipGetErrorString(error));
    }
    return iris_i_hip_fail(hip, error, "kernel %s cannot be loaded",
                           kernel->name);
}

/* Looks a kernel up in its image. */
static iris_status_t load_function(const struct hip_backend *hip,
                                   const struct iris_kernel *kernel,
                                   hipFunction_t *function_p)
{
    uint64_t serial = iris_i_image_serial(kernel->gpu_image);
    char name[256];
    hipModule_t module;
    hipError_t error;

    snprintf(name, sizeof name, "%s_gpu", kernel->name);
    pthread_mutex_lock(&images_lock);
    error = load_image(hip, kernel->gpu_image, serial, &module);
    error = error ? error : hipModuleGetFunction(function_p, module, name);
    pthread_mutex_unlock(&images_lock);
    return fail_function(hip, kernel, error);
}

/* The kernel's code on this device, from the table or newly loaded. After an
 * image was removed, any kernel address may belong to another kernel. */
static iris_status_t find_function(struct hip_backend *hip,
                                   const struct iris_kernel *kernel,
                                   hipFunction_t *function_p)
{
    struct hip_function *slot =
        &hip->functions[((uintptr_t)kernel >> 4) % HIP_FUNCTION_SLOTS];
    uint64_t removed = iris_i_images_removed();
    iris_status_t status = IRIS_OK;

    pthread_mutex_lock(&hip->functions_lock);
    if (slot->kernel != kernel || slot->removed != removed) {
        status = load_function(hip, kernel, &slot->function);
        slot->kernel = status == IRIS_OK ? kernel : NULL;
        slot->removed = removed;
    }
    *function_p = slot->function;
    pthread_mutex_unlock(&hip->functions_lock);
    return status;
}

static hipError_t launch_code(hipFunction_t function, hipStream_t native,
                              const struct iris_launch *launch, size_t bytes)
{
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, (void *)launch->args,
                     HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};

    return hipModuleLaunchKernel(function, launch->grid, 1, 1, launch->block, 1,
                                 1, 0, native, NULL, extra);
}

static bool launch_lane(struct hip_backend *hip, hipStream_t native,
                        const struct iris_kernel *kernel, const void *args)
{
    const struct iris_launch launch = {.grid = 1, .block = 1, .args = args};
    hipFunction_t function;

    return kernel != NULL && kernel->gpu_image != NULL &&
           find_function(hip, kernel, &function) == IRIS_OK &&
           launch_code(function, native, &launch, kernel->args_bytes) ==
               hipSuccess;
}

/* ---- Whether copies pass kernels that wait ---- */

static pthread_mutex_t try_lock = PTHREAD_MUTEX_INITIALIZER;

/* Launches a kernel that waits for the host. */
static bool start_wait(struct hip_stream *stream)
{
    struct hip_backend *hip = stream->hip;
    char *pinned = (char *)(uintptr_t)hip->info.watch;
    struct iris_wait_args args = {
        .context = (void *)((char *)hip->heap.base + IRIS_CONTEXT_OFFSET),
        .signal = (void *)(pinned + offsetof(struct hip_pinned, released)),
        .cmp = IRIS_CMP_NE};

    hip->pinned->released = 0;
    return launch_lane(hip, stream->native, hip->params.wait, &args);
}

/* Uses half of the limit of a wait inside a kernel, so that it ends before the
 * limit. */
static bool copy_in_time(const struct hip_backend *hip)
{
    int64_t most = hip->params.device_timeout_ms;
    int64_t ms = most > 0 && most / 2 < COPY_MS ? most / 2 : COPY_MS;
    hipStream_t native = hip->gpu->copy;
    hipError_t error =
        hipMemcpyAsync(&hip->pinned->copied, hip->heap.base, sizeof(uint64_t),
                       hipMemcpyDefault, native);
    struct iris_wait wait;

    iris_i_wait_moment(&wait, ms);
    error = error ? error : hipStreamQuery(native);
    while (error == hipErrorNotReady && iris_i_wait_tick(&wait) == IRIS_OK) {
        error = hipStreamQuery(native);
    }
    return error != hipErrorNotReady;
}

/* Streams may share a hardware queue. There a copy waits behind another rank's
 * kernel, and the kernel waits for the copy. Other ranks' launches wait for the
 * result of this test, so none of their kernels is in the way. */
static void try_copy(struct hip_stream *stream)
{
    struct hip_backend *hip = stream->hip;

    if (hip->gpu->num_users < 2 || hip->gpu->tried || stream->capturing) {
        return;
    }
    pthread_mutex_lock(&try_lock);
    if (!hip->gpu->tried && start_wait(stream) && !copy_in_time(hip)) {
        iris_i_warning(NULL,
                       "rank %d, GPU %d: a copy does not pass a kernel that "
                       "waits on another stream: ranks that share the GPU may "
                       "hang; %s, or use processes (IRIS_SPAWN=processes)",
                       hip->params.rank, hip->device,
                       IRIS_HIP_NVIDIA
                           ? "raise CUDA_DEVICE_MAX_CONNECTIONS"
                           : "raise GPU_MAX_HW_QUEUES, set "
                             "DEBUG_HIP_DYNAMIC_QUEUES=0 or HSA_ENABLE_SDMA=0");
    }
    hip->pinned->released = 1;
    hip->gpu->tried = true;
    pthread_mutex_unlock(&try_lock);
}

/* ---- Launching ---- */

/* A kernel that the program compiled with hipcc or nvcc has its own entry. */
static iris_status_t do_launch(struct hip_stream *stream, void *what)
{
    struct hip_backend *hip = stream->hip;
    const struct iris_launch *launch = what;
    const struct iris_kernel *kernel = launch->kernel;
    void *args[] = {(void *)launch->args};
    dim3 grid = {launch->grid, 1, 1}, block = {launch->block, 1, 1};
    hipFunction_t function = NULL;
    iris_status_t status;
    hipError_t error;

    try_copy(stream);
    if (kernel->gpu_entry != NULL) {
        error = hipLaunchKernel(kernel->gpu_entry, grid, block, args, 0,
                                stream->native);
    } else {
        status = find_function(hip, kernel, &function);
        if (status != IRIS_OK) {
            return status;
        }
        error =
            launch_code(function, stream->native, launch, kernel->args_bytes);
    }
    return iris_i_hip_fail(hip, error, "launch of kernel %s, grid %u, block %u",
                           kernel->name, launch->grid, launch->block);
}

iris_status_t iris_i_hip_launch(struct iris_stream *stream,
                                const struct iris_launch *launch)
{
    const struct hip_backend *hip = (struct hip_backend *)stream->backend;

    if (launch->kernel->gpu_image == NULL &&
        launch->kernel->gpu_entry == NULL) {
        return iris_i_hip_refuse(hip, IRIS_ERR_UNSUPPORTED,
                                 "no GPU version of kernel %s: build it with "
                                 "iriscc, or use IRIS_BACKEND=sim "
                                 "IRIS_SIM_DEVICE=cpu",
                                 launch->kernel->name);
    }
    return iris_i_hip_enqueue(stream, 1, do_launch, (void *)(uintptr_t)launch);
}
