/* SPDX-License-Identifier: MIT
 *
 * Launching kernels: finding a kernel's code for this GPU, once.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include "backend/module.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An image of GPU code that is loaded on a device, for all contexts of the
 * process together. It stays: where the program unloads an object with its
 * image, graphs and streams may still have its kernels. */
struct hip_image {
    struct hip_image *next;
    const void *image;
    uint64_t serial;
    int device;
    hipModule_t module;
};

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

/* One that is not for this GPU matters when a kernel of it is launched. */
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
    pthread_mutex_unlock(&images_lock);
    error = error ? error : hipModuleGetFunction(function_p, module, name);
    return fail_function(hip, kernel, error);
}

/* The kernel's code on this device, from the table or loaded into it. Once an
 * image has gone any kernel may be another. */
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

/* A kernel that the program compiled with hipcc or nvcc itself has an entry. */
static iris_status_t do_launch(struct hip_stream *stream, void *what)
{
    struct hip_backend *hip = stream->hip;
    const struct iris_launch *launch = what;
    const struct iris_kernel *kernel = launch->kernel;
    size_t bytes = kernel->args_bytes;
    void *args[] = {(void *)launch->args};
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, (void *)launch->args,
                     HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};
    dim3 grid = {launch->grid, 1, 1}, block = {launch->block, 1, 1};
    hipFunction_t function = NULL;
    iris_status_t status;
    hipError_t error;

    if (kernel->gpu_entry != NULL) {
        error = hipLaunchKernel(kernel->gpu_entry, grid, block, args, 0,
                                stream->native);
    } else {
        status = find_function(hip, kernel, &function);
        if (status != IRIS_OK) {
            return status;
        }
        error =
            hipModuleLaunchKernel(function, launch->grid, 1, 1, launch->block,
                                  1, 1, 0, stream->native, NULL, extra);
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
