/* SPDX-License-Identifier: MIT
 *
 * The GPU backend's tables, its module's entry, and the opening of an instance:
 * the choice of the device, and its properties.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include "backend/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static iris_status_t probe_hip(int *count_p)
{
    hipError_t error = hipGetDeviceCount(count_p);

    if (error == hipSuccess && *count_p > 0) {
        *count_p = *count_p < HIP_MAX_DEVICES ? *count_p : HIP_MAX_DEVICES;
        return IRIS_OK;
    }
    (void)hipGetLastError();
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "backend \"hip\" finds no GPU it can use (%s): run %s, "
                       "or use IRIS_BACKEND=sim IRIS_SIM_DEVICE=cpu",
                       error == hipSuccess ? "no device"
                                           : hipGetErrorString(error),
                       IRIS_HIP_NVIDIA ? "nvidia-smi" : "rocminfo");
}

/* The access between devices: bit i of a mask for device i. */
static void survey_peers(struct iris_survey *survey, int device, int count)
{
    for (int peer = 0; peer < count; peer++) {
        int access = peer == device, atomics = peer == device;

        if (peer != device &&
            (hipDeviceCanAccessPeer(&access, device, peer) != hipSuccess ||
             hipDeviceGetP2PAttribute(&atomics,
                                      hipDevP2PAttrNativeAtomicSupported,
                                      device, peer) != hipSuccess)) {
            (void)hipGetLastError();
        }
        survey->devices[device].access |= (uint32_t)(access != 0) << peer;
        survey->devices[device].atomics |= (uint32_t)(atomics != 0) << peer;
    }
}

/* HIP counts major versions in tens of millions, CUDA in thousands. */
static void name_version(int version, char *text, size_t bytes)
{
    if (IRIS_HIP_NVIDIA) {
        snprintf(text, bytes, "%d.%d", version / 1000, version % 1000 / 10);
    } else {
        snprintf(text, bytes, "%d.%d.%d", version / 10000000,
                 version / 100000 % 100, version % 100000);
    }
}

static iris_status_t survey_hip(struct iris_survey *survey_p)
{
    struct iris_survey survey = {.num_devices = 0};
    int runtime = 0, driver = 0, count;
    char versions[2][32];
    iris_status_t status = probe_hip(&survey.num_devices);

    if (status != IRIS_OK) {
        return status;
    }
    (void)hipRuntimeGetVersion(&runtime);
    (void)hipDriverGetVersion(&driver);
    name_version(runtime, versions[0], sizeof versions[0]);
    name_version(driver, versions[1], sizeof versions[1]);
    snprintf(survey.runtime, sizeof survey.runtime, "%s %s, driver %s",
             IRIS_HIP_NVIDIA ? "CUDA" : "HIP", versions[0], versions[1]);
    count = survey.num_devices < IRIS_SURVEY_DEVICES ? survey.num_devices
                                                     : IRIS_SURVEY_DEVICES;
    for (int device = 0; device < count; device++) {
        __typeof__(survey.devices[0]) *one = &survey.devices[device];

        if (hipDeviceGetName(one->name, sizeof one->name, device) ||
            hipDeviceGetPCIBusId(one->pci, HIP_PCI_BYTES, device) ||
            hipDeviceTotalMem(&one->memory_bytes, device)) {
            (void)hipGetLastError();
        }
        survey_peers(&survey, device, count);
    }
    *survey_p = survey;
    return IRIS_OK;
}

static iris_status_t read_properties(struct hip_backend *hip)
{
    struct iris_device_info *info = &hip->info;
    hipError_t error =
        hipDeviceGetName(info->name, sizeof info->name, hip->device);

    error = error ? error : iris_i_hip_identify(hip->device, &hip->self);
    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error, "its name is not known");
    }
    info->device_id = hip->device;
    info->num_cus =
        iris_i_hip_attribute(hip, hipDeviceAttributeMultiprocessorCount, 1);
    /* Kernels of all ranks on the device wait for each other, so they share its
     * compute units. */
    info->num_cus /= hip->params.ranks_on_device;
    info->num_cus += info->num_cus == 0;
    info->wavefront = iris_i_hip_attribute(hip, hipDeviceAttributeWarpSize, 64);
    info->num_xccs = 0; /* HIP does not tell */
    info->clock_khz = iris_i_hip_clock_khz(hip);
    info->page_bytes = 1;
    info->has_graphs = 1;
    info->memory = IRIS_HIP_FAKE     ? IRIS_MEMORY_HOST
                   : IRIS_HIP_NVIDIA ? IRIS_MEMORY_CUDA
                                     : IRIS_MEMORY_ROCM;
    return IRIS_OK;
}

static void read_info(const struct iris_backend *backend,
                      struct iris_device_info *info_p)
{
    const struct hip_backend *hip = (const struct hip_backend *)backend;

    *info_p = hip->info;
    info_p->heaps_grow = hip->params.vmem;
}

static void destroy_hip(struct hip_backend *hip)
{
    pthread_mutex_destroy(&hip->watch_lock);
    pthread_mutex_destroy(&hip->streams_lock);
    pthread_mutex_destroy(&hip->known_lock);
    pthread_mutex_destroy(&hip->functions_lock);
    free(hip);
}

static void close_hip(struct iris_backend *backend)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    const struct hip_memory pinned = {
        .kind = HIP_PINNED, .ptr = hip->pinned, .bytes = sizeof *hip->pinned};

    iris_i_hip_free_later(hip, &pinned);
    iris_i_hip_streams_close(hip);
    if (!hip->stuck) {
        destroy_hip(hip);
    }
}

static void renumber_rank(struct iris_backend *backend, int rank, int num_ranks)
{
    struct hip_backend *hip = (struct hip_backend *)backend;

    hip->params.rank = rank;
    hip->params.num_ranks = num_ranks;
}

static const struct iris_device_ops device_ops = {
    .info = read_info,
    .close = close_hip,
    .clear_fault = iris_i_hip_clear_fault,
    .renumber = renumber_rank,
    .stream_create = iris_i_hip_stream_create,
    .stream_wrap = iris_i_hip_stream_wrap,
    .stream_destroy = iris_i_hip_stream_destroy,
    .graph_destroy = iris_i_hip_graph_destroy,
};

static const struct iris_backend_type hip_type;

/* Uses virtual memory for heaps: its descriptors reach other processes in
 * another way. If these calls do not work either, or give memory that GPUs
 * cache, sharing fails: nobody asked for such memory. */
static void use_vmem(struct hip_backend *hip)
{
    const char *memory = hip->params.memory;
    iris_status_t status;

    if (strcmp(memory, "auto") == 0) {
        hip->params.memory = "uncached";
    }
    status = iris_i_hip_vmem_open(hip);
    hip->params.memory = memory;
    if (status != IRIS_OK) {
        memset(&hip->vmem, 0, sizeof hip->vmem);
        hip->info.page_bytes = 1;
        return;
    }
    hip->params.vmem = 1;
    hip->base.memory = &iris_i_hip_vmem_ops;
    iris_i_warning(NULL,
                   "rank %d, GPU %d: no IPC handle can be made "
                   "(hipIpcGetMemHandle; is HSA_ENABLE_IPC_MODE_LEGACY set?), "
                   "so heaps are shared by descriptors, as with "
                   "IRIS_ALLOCATOR=vmem",
                   hip->params.rank, hip->device);
}

/* The memory that the runtime gives; the program may have asked for another. */
static const char *name_heap(const struct hip_backend *hip)
{
    if (IRIS_HIP_NVIDIA) {
        return hip->params.vmem ? "device memory, vmem" : "device memory, pool";
    }
    if (hip->params.vmem) {
        return hip->vmem.uncached ? "uncached memory, vmem"
                                  : "ordinary memory, which GPUs cache, vmem";
    }
    return strcmp(hip->params.memory, "uncached") == 0
               ? "uncached memory, pool"
               : "fine-grained memory, pool";
}

/* The part of opening that uses the device; close() undoes it. */
static iris_status_t open_here(struct hip_backend *hip)
{
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t status;

    iris_i_hip_memory_join(hip);
    status = read_properties(hip);
    if (status == IRIS_OK && hip->params.vmem) {
        status = iris_i_hip_vmem_open(hip);
    } else if (status == IRIS_OK && hip->params.vmem_if_needed &&
               hip->params.num_ranks > 1 && !iris_i_hip_can_share(hip)) {
        use_vmem(hip);
    }
    snprintf(hip->info.heap, sizeof hip->info.heap, "%s", name_heap(hip));
    status = status ? status : iris_i_hip_watch_open(hip);
    status = status ? status : iris_i_hip_streams_open(hip);
    if (status == IRIS_OK) {
        iris_i_hip_load_images(hip);
    }
    return status;
}

static iris_status_t open_hip(const struct iris_backend_params *params,
                              struct iris_backend **backend_p)
{
    struct hip_backend *hip = calloc(1, sizeof *hip);
    iris_status_t status;

    if (hip == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the hip backend");
    }
    hip->base.type = &hip_type;
    hip->base.device = &device_ops;
    hip->base.memory =
        params->vmem ? &iris_i_hip_vmem_ops : &iris_i_hip_pool_ops;
    hip->base.queue = &iris_i_hip_queue_ops;
    iris_i_backend_made(&hip->base);
    hip->params = *params;
    hip->params.memory = params->memory == NULL ? "auto" : params->memory;
    hip->device = params->device;
    pthread_mutex_init(&hip->watch_lock, NULL);
    pthread_mutex_init(&hip->streams_lock, NULL);
    pthread_mutex_init(&hip->known_lock, NULL);
    pthread_mutex_init(&hip->functions_lock, NULL);
    status = iris_i_hip_fail(hip, iris_i_hip_attach(hip), "it cannot be used");
    if (status != IRIS_OK) {
        destroy_hip(hip);
        return status;
    }
    status = open_here(hip);
    if (status != IRIS_OK) {
        close_hip(&hip->base);
        return status;
    }
    *backend_p = &hip->base;
    return IRIS_OK;
}

static const struct iris_backend_type hip_type = {
    .name = "hip",
    .is_gpu = 1,
    .probe = probe_hip,
    .survey = survey_hip,
    .open = open_hip,
};

IRIS_API const struct iris_backend_type *
iris_backend_module(const struct iris_module_core *core);

const struct iris_backend_type *
iris_backend_module(const struct iris_module_core *core)
{
    const struct iris_backend_type *type = iris_i_module_open(core, &hip_type);

    if (type != NULL) {
        iris_i_hip_set_environment();
    }
    return type;
}
