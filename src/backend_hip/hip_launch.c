/* SPDX-License-Identifier: MIT
 *
 * Launching kernels: finding a kernel's code for this GPU, once, and graphs.
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
    if (one == NULL) {
        one = calloc(1, sizeof *one);
        if (one == NULL) {
            return hipErrorOutOfMemory;
        }
        one->image = image;
        one->serial = serial;
        one->device = hip->device;
        error = hipModuleLoadData(&one->module, image);
        if (error != hipSuccess) {
            free(one);
            return error;
        }
        hip_load_functions(one->module);
        one->next = images;
        images = one;
    }
    *module_p = one->module;
    return hipSuccess;
}

/* One that is not for this GPU matters when a kernel of it is launched. */
static void load_ahead(void *argument, const void *image, uint64_t serial)
{
    hipModule_t module;

    pthread_mutex_lock(&images_lock);
    if (load_image(argument, image, serial, &module) != hipSuccess) {
        (void)hipGetLastError();
    }
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
        (void)hipGetLastError();
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "rank %d: kernel %s has no code for GPU %d (%s): "
                           "%s. Build the program with iriscc "
                           "--offload-arch=<this GPU's>",
                           hip->params.rank, kernel->name, hip->device,
                           hip->info.name, hipGetErrorString(error));
    }
    return iris_i_hip_fail(error, "rank %d cannot load kernel %s on GPU %d",
                           hip->params.rank, kernel->name, hip->device);
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
    if (error == hipSuccess) {
        error = hipModuleGetFunction(function_p, module, name);
    }
    return error == hipSuccess ? IRIS_OK : fail_function(hip, kernel, error);
}

/* The kernel's code on this device, from the table or loaded into it. */
static iris_status_t find_function(struct hip_backend *hip,
                                   const struct iris_kernel *kernel,
                                   hipFunction_t *function_p)
{
    size_t start = ((uintptr_t)kernel >> 4) % HIP_FUNCTION_SLOTS;
    uint64_t removed = iris_i_images_removed();
    struct hip_function *slot = NULL;
    iris_status_t status = IRIS_OK;

    pthread_mutex_lock(&hip->lock);
    if (hip->images_removed != removed) { /* any kernel may be another now */
        memset(hip->functions, 0, sizeof hip->functions);
        hip->images_removed = removed;
    }
    for (size_t i = 0; i < HIP_FUNCTION_SLOTS; i++) {
        slot = &hip->functions[(start + i) % HIP_FUNCTION_SLOTS];
        if (slot->kernel == NULL || slot->kernel == kernel) {
            break;
        }
    }
    if (slot->kernel == kernel) {
        *function_p = slot->function;
    } else {
        status = load_function(hip, kernel, function_p);
        if (status == IRIS_OK && slot->kernel == NULL) {
            *slot = (struct hip_function){kernel, *function_p};
        }
    }
    pthread_mutex_unlock(&hip->lock);
    return status;
}

static iris_status_t fail_launch(const struct hip_backend *hip,
                                 const struct iris_launch *launch,
                                 hipError_t error)
{
    return iris_i_hip_fail(
        error, "rank %d: launch of kernel %s, grid %u, block %u, on GPU %d",
        hip->params.rank, launch->kernel->name, launch->grid, launch->block,
        hip->device);
}

static iris_status_t launch_image(struct hip_stream *stream,
                                  const struct iris_launch *launch)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    size_t bytes = launch->kernel->args_bytes;
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, (void *)launch->args,
                     HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};
    hipFunction_t function = NULL;
    iris_status_t status = find_function(hip, launch->kernel, &function);
    hipError_t error;

    if (status != IRIS_OK) {
        return status;
    }
    error = hipModuleLaunchKernel(function, launch->grid, 1, 1, launch->block,
                                  1, 1, 0, stream->native, NULL, extra);
    return error == hipSuccess ? IRIS_OK : fail_launch(hip, launch, error);
}

/* A kernel that the program compiled with hipcc or nvcc itself. */
static iris_status_t launch_entry(struct hip_stream *stream,
                                  const struct iris_launch *launch)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    void *args[] = {(void *)launch->args};
    dim3 grid = {launch->grid, 1, 1}, block = {launch->block, 1, 1};
    hipError_t error = hipLaunchKernel(launch->kernel->gpu_entry, grid, block,
                                       args, 0, stream->native);

    return error == hipSuccess ? IRIS_OK : fail_launch(hip, launch, error);
}

iris_status_t iris_i_hip_launch(struct iris_stream *base,
                                const struct iris_launch *launch)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    const struct iris_kernel *kernel = launch->kernel;
    iris_status_t status;
    struct hip_before before;

    if (kernel->gpu_image == NULL && kernel->gpu_entry == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "rank %d: the program has no GPU version of kernel "
                           "%s; build it with iriscc, or run it with "
                           "IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu",
                           hip->params.rank, kernel->name);
    }
    before = iris_i_hip_enter(hip);
    status = iris_i_hip_enqueue_begin(stream);
    if (status == IRIS_OK) {
        status = kernel->gpu_entry != NULL ? launch_entry(stream, launch)
                                           : launch_image(stream, launch);
        iris_i_hip_enqueue_end(stream);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

/* ---- Graphs ---- */

struct hip_graph {
    hipGraphExec_t exec;
    size_t num_nodes;
};

bool iris_i_hip_capturing(struct hip_stream *stream)
{
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    hipError_t error = hipStreamIsCapturing(stream->native, &status);

    if (error != hipSuccess) {
        (void)hipGetLastError();
        /* The default stream, which would disturb another's capture. */
        return error == hipErrorStreamCaptureImplicit;
    }
    return status != hipStreamCaptureStatusNone;
}

iris_status_t iris_i_hip_fail_captured(const struct hip_stream *stream,
                                       const char *what)
{
    const struct hip_backend *hip =
        (const struct hip_backend *)stream->base.backend;

    return iris_i_fail(NULL, IRIS_ERR_STATE,
                       "rank %d: %s cannot be captured in a graph; do it "
                       "before or after the capture",
                       hip->params.rank, what);
}

iris_status_t iris_i_hip_not_capturing(struct hip_stream *stream,
                                       const char *what)
{
    return iris_i_hip_capturing(stream) ? iris_i_hip_fail_captured(stream, what)
                                        : IRIS_OK;
}

iris_status_t iris_i_hip_capture_begin(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t status =
        iris_i_hip_not_capturing(stream, "the beginning of a capture");
    hipError_t error = hipSuccess;

    /* Relaxed, since a kernel's image is loaded at its first launch, maybe in a
     * capture, which the other modes forbid. As work that comes, so that no
     * thread asks the stream meanwhile, having seen that it is not captured. */
    if (status == IRIS_OK) {
        status = iris_i_hip_enqueue_begin(stream);
    }
    if (status == IRIS_OK) {
        error =
            hipStreamBeginCapture(stream->native, hipStreamCaptureModeRelaxed);
        iris_i_hip_enqueue_end(stream);
    }
    if (error != hipSuccess) {
        status = iris_i_hip_fail(error, "rank %d: a capture cannot begin",
                                 hip->params.rank);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

/* Makes what was captured ready to be launched. */
static hipError_t make_ready(hipGraph_t captured, struct hip_graph *graph)
{
    hipError_t error = hipGraphGetNodes(captured, NULL, &graph->num_nodes);

    graph->num_nodes += graph->num_nodes == 0; /* a launch is something */
    return error == hipSuccess
               ? hipGraphInstantiate(&graph->exec, captured, NULL, NULL, 0)
               : error;
}

iris_status_t iris_i_hip_capture_end(struct iris_stream *base, void **graph_p)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    hipStreamCaptureStatus capture = hipStreamCaptureStatusActive;
    struct hip_graph *graph = calloc(1, sizeof *graph);
    hipGraph_t captured = NULL;
    iris_status_t status = IRIS_OK;
    hipError_t error;
    struct hip_before before;

    before = iris_i_hip_enter(hip);
    error = hipStreamIsCapturing(stream->native, &capture);
    if (capture == hipStreamCaptureStatusNone) {
        iris_i_hip_leave(hip, before);
        free(graph);
        return iris_i_fail(NULL, IRIS_ERR_STATE,
                           "rank %d: iris_capture_end without "
                           "iris_capture_begin on this stream",
                           hip->params.rank);
    }
    if (error == hipSuccess) {
        error = hipStreamEndCapture(stream->native, &captured);
    }
    if (error == hipSuccess) {
        error =
            graph == NULL ? hipErrorOutOfMemory : make_ready(captured, graph);
    }
    if (captured != NULL) {
        (void)hipGraphDestroy(captured);
    }
    if (error != hipSuccess) {
        status = iris_i_hip_fail(error, "rank %d: the capture gives no graph",
                                 hip->params.rank);
        free(graph);
    } else {
        *graph_p = graph;
    }
    iris_i_hip_leave(hip, before);
    return status;
}

iris_status_t iris_i_hip_graph_launch(struct iris_stream *base, void *handle)
{
    const struct hip_graph *graph = handle;
    size_t num_nodes = graph->num_nodes; /* it may be freed once it has run */
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    struct hip_before before = iris_i_hip_enter(hip);
    hipError_t error = hipSuccess;
    iris_status_t status = iris_i_hip_enqueue_begin_many(stream, num_nodes);

    if (status != IRIS_OK) {
        iris_i_hip_leave(hip, before);
        return status;
    }
    status = iris_i_hip_not_capturing(stream, "the launch of a graph");
    if (status == IRIS_OK) {
        error = hipGraphLaunch(graph->exec, stream->native);
    }
    iris_i_hip_enqueue_end_many(stream, num_nodes);
    if (error != hipSuccess) {
        status = iris_i_hip_fail(error, "rank %d: launch of a graph",
                                 hip->params.rank);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

void iris_i_hip_graph_destroy(struct iris_backend *backend, void *handle)
{
    struct hip_graph *graph = handle;
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);

    if (!hip->abandoned && hipGraphExecDestroy(graph->exec) != hipSuccess) {
        (void)hipGetLastError();
    }
    iris_i_hip_leave(hip, before);
    free(graph);
}
