/* SPDX-License-Identifier: MIT
 *
 * The GPU backend's tables, its module's entry, and opening an instance: which
 * device, and what it is.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include "backend/module.h"
#include "backend/stubs.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What this library asks in a thread would be an error while a capture in
 * global mode is under way in any other, and void that capture. */
static hipStreamCaptureMode relax(void)
{
    hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;

    if (hipThreadExchangeStreamCaptureMode(&mode) != hipSuccess) {
        (void)hipGetLastError();
        mode = hipStreamCaptureModeRelaxed; /* nothing to put back */
    }
    return mode;
}

static void unrelax(hipStreamCaptureMode mode)
{
    if (mode != hipStreamCaptureModeRelaxed &&
        hipThreadExchangeStreamCaptureMode(&mode) != hipSuccess) {
        (void)hipGetLastError();
    }
}

#if IRIS_HIP_NVIDIA
/* A thread of the program has a device in name only until it uses it, and CUDA
 * would make a context there if it were made current again: contexts are pushed
 * and popped. */
struct hip_before iris_i_hip_enter(const struct hip_backend *hip)
{
    struct hip_before before = {.device = -1};

    if (hipCtxPushCurrent(hip->context) == hipSuccess) {
        before.device = hip->device;
    }
    before.mode = relax();
    return before;
}

void iris_i_hip_leave(const struct hip_backend *hip, struct hip_before before)
{
    hipCtx_t left;

    (void)hip;
    unrelax(before.mode);
    if (before.device >= 0) {
        (void)hipCtxPopCurrent(&left);
    }
}

/* The context is the runtime's own. It is kept for good, since memory whose
 * freeing is put off outlives its backend. */
static hipError_t attach(struct hip_backend *hip)
{
    return hipDevicePrimaryCtxRetain(&hip->context, hip->device);
}
#else
struct hip_before iris_i_hip_enter(const struct hip_backend *hip)
{
    struct hip_before before = {.device = -1};

    if (hipGetDevice(&before.device) != hipSuccess) {
        (void)hipGetLastError();
        before.device = -1;
    }
    /* Even if it is the current one: to a thread that is new to the runtime
     * that may mean nothing yet. */
    if (hipSetDevice(hip->device) != hipSuccess) {
        (void)hipGetLastError();
    }
    before.mode = relax();
    return before;
}

void iris_i_hip_leave(const struct hip_backend *hip, struct hip_before before)
{
    unrelax(before.mode);
    if (before.device >= 0 && before.device != hip->device) {
        (void)hipSetDevice(before.device);
    }
}

static hipError_t attach(struct hip_backend *hip)
{
    (void)hip;
    return hipSuccess;
}
#endif

iris_status_t iris_i_hip_fail(hipError_t error, const char *format, ...)
{
    char message[IRIS_MESSAGE_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    (void)hipGetLastError(); /* it is not the program's to find */
    return iris_i_fail(NULL,
                       error == hipErrorOutOfMemory ? IRIS_ERR_NO_MEMORY
                                                    : IRIS_ERR_DEVICE,
                       "%.700s: %s (%s)", message, hipGetErrorString(error),
                       hipGetErrorName(error));
}

static iris_status_t count_devices(int *count_p)
{
    hipError_t error = hipGetDeviceCount(count_p);

    if (error == hipSuccess && *count_p > 0) {
        return IRIS_OK;
    }
    (void)hipGetLastError();
    return iris_i_fail(NULL, IRIS_ERR_BACKEND,
                       "backend \"hip\" finds no GPU it can use (%s): look at "
                       "the driver with %s, or use IRIS_BACKEND=sim "
                       "IRIS_SIM_DEVICE=cpu",
                       error == hipSuccess ? "no device"
                                           : hipGetErrorString(error),
                       IRIS_HIP_NVIDIA ? "nvidia-smi" : "rocminfo");
}

static iris_status_t hip_probe(int *num_devices_p)
{
    return count_devices(num_devices_p);
}

/* Which devices reach which: bit i of a mask for device i. */
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

/* HIP counts millions of major versions and CUDA thousands. */
static void name_version(int version, char *text, size_t bytes)
{
    if (IRIS_HIP_NVIDIA) {
        snprintf(text, bytes, "%d.%d", version / 1000, version % 1000 / 10);
    } else {
        snprintf(text, bytes, "%d.%d.%d", version / 10000000,
                 version / 100000 % 100, version % 100000);
    }
}

static iris_status_t hip_survey(struct iris_survey *survey_p)
{
    struct iris_survey survey = {.num_devices = 0};
    int runtime = 0, driver = 0, count;
    char versions[2][32];
    iris_status_t status = count_devices(&survey.num_devices);

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
        size_t name_bytes = sizeof survey.devices[device].name;

        if (hipDeviceGetName(survey.devices[device].name, (int)name_bytes,
                             device) != hipSuccess ||
            hipDeviceGetPCIBusId(survey.devices[device].pci, HIP_PCI_BYTES,
                                 device) != hipSuccess ||
            hipDeviceTotalMem(&survey.devices[device].memory_bytes, device) !=
                hipSuccess) {
            (void)hipGetLastError();
        }
        survey_peers(&survey, device, count);
    }
    *survey_p = survey;
    return IRIS_OK;
}

static int attribute(const struct hip_backend *hip, hipDeviceAttribute_t which,
                     int otherwise)
{
    int value = otherwise;

    if (hipDeviceGetAttribute(&value, which, hip->device) != hipSuccess) {
        (void)hipGetLastError();
        return otherwise;
    }
    return value;
}

/* Accelerator complex dies, from the kernel driver's topology: HIP does not
 * tell. 0: not told. */
static int count_xccs(const struct hip_backend *hip)
{
    unsigned domain, bus, device, function;
    unsigned long long location;

    if (sscanf(hip->pci, "%x:%x:%x.%x", &domain, &bus, &device, &function) !=
        4) {
        return 0;
    }
    location = bus << 8 | device << 3 | function;
    for (int node = 0; node < 256; node++) {
        unsigned long long value, at = 0, in = 0, xccs = 0;
        char path[96], key[64];
        FILE *file;

        snprintf(path, sizeof path,
                 "/sys/class/kfd/kfd/topology/nodes/%d/properties", node);
        file = fopen(path, "re");
        if (file == NULL) {
            return 0;
        }
        while (fscanf(file, "%63s %llu", key, &value) == 2) {
            at = strcmp(key, "location_id") == 0 ? value : at;
            in = strcmp(key, "domain") == 0 ? value : in;
            xccs = strcmp(key, "num_xcc") == 0 ? value : xccs;
        }
        fclose(file);
        if (at == location && in == domain) {
            return (int)xccs;
        }
    }
    return 0;
}

/* kHz of the clock that iris_d_clock() reads. */
static int64_t clock_khz(const struct hip_backend *hip)
{
#if IRIS_HIP_NVIDIA
    (void)hip;
    return 1000000; /* nanoseconds */
#elif HAVE_DECL_HIPDEVICEATTRIBUTEWALLCLOCKRATE
    return attribute(hip, hipDeviceAttributeWallClockRate, 100000);
#else
    (void)hip;
    return 100000; /* of every gfx9 */
#endif
}

static iris_status_t describe(struct hip_backend *hip)
{
    struct iris_device_info *info = &hip->info;
    hipError_t error =
        hipDeviceGetName(info->name, sizeof info->name, hip->device);

    if (error == hipSuccess) {
        error = hipDeviceGetPCIBusId(hip->pci, sizeof hip->pci, hip->device);
    }
    if (error != hipSuccess) {
        return iris_i_hip_fail(error, "rank %d: GPU %d does not tell its name",
                               hip->params.rank, hip->device);
    }
    info->device_id = hip->device;
    info->num_cus = attribute(hip, hipDeviceAttributeMultiprocessorCount, 1);
    if (hip->params.ranks_on_device >
        1) { /* kernels of all ranks wait for others */
        info->num_cus /= hip->params.ranks_on_device;
        info->num_cus += info->num_cus == 0;
    }
    info->wavefront = attribute(hip, hipDeviceAttributeWarpSize, 64);
    info->clock_khz = clock_khz(hip);
    info->num_xccs = count_xccs(hip);
    info->page_bytes = 1;
    info->has_graphs = 1;
    return IRIS_OK;
}

static iris_status_t fail_device(const struct hip_backend *hip,
                                 hipError_t error)
{
    return iris_i_hip_fail(error, "rank %d cannot use GPU %d %s",
                           hip->params.rank, hip->device, hip->info.name);
}

static void hip_close(struct iris_backend *backend)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);
    /* Callbacks of copies may still come. */
    bool keep = hip->abandoned || hip->left != NULL;

    if (!keep) {
        iris_i_hip_stage_close(hip);
    }
    iris_i_hip_watch_close(hip);
    iris_i_hip_services_close(hip);
    iris_i_hip_leave_memory(hip);
    iris_i_hip_leave(hip, before);
    if (!keep) {
        iris_i_hip_vmem_close(hip);
        pthread_mutex_destroy(&hip->lock);
        pthread_mutex_destroy(&hip->streams_lock);
        free(hip);
    }
}

static const struct iris_device_ops device_ops;
static const struct iris_memory_ops memory_ops;
static const struct iris_queue_ops queue_ops;

static iris_status_t hip_open(const struct iris_backend_params *params,
                              struct iris_backend **backend_p)
{
    struct hip_backend *hip = calloc(1, sizeof *hip);
    iris_status_t status;
    hipError_t error;
    struct hip_before before;

    if (hip == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for the hip backend");
    }
    hip->base.type = &iris_i_hip_type;
    hip->base.device = &device_ops;
    hip->base.memory = &memory_ops;
    hip->base.queue = &queue_ops;
    iris_i_backend_made(&hip->base);
    hip->params = *params;
    pthread_mutex_init(&hip->lock, NULL);
    pthread_mutex_init(&hip->streams_lock, NULL);
    hip->device = params->device;
    error = attach(hip);
    status = error == hipSuccess ? IRIS_OK : fail_device(hip, error);
    if (status != IRIS_OK) {
        pthread_mutex_destroy(&hip->lock);
        pthread_mutex_destroy(&hip->streams_lock);
        free(hip);
        return status;
    }
    before = iris_i_hip_enter(hip);
    iris_i_hip_use_memory(hip);
    status = describe(hip);
    if (status == IRIS_OK && params->vmem) {
        status = iris_i_hip_vmem_open(hip);
    }
    if (status == IRIS_OK) {
        status = iris_i_hip_watch_open(hip);
    }
    if (status == IRIS_OK) {
        status = iris_i_hip_services_open(hip);
    }
    if (status == IRIS_OK) {
        status = iris_i_hip_stage_open(hip);
    }
    if (status == IRIS_OK) {
        iris_i_hip_load_images(hip);
    }
    iris_i_hip_leave(hip, before);
    if (status != IRIS_OK) {
        hip_close(&hip->base);
        return status;
    }
    *backend_p = &hip->base;
    return IRIS_OK;
}

static void hip_info(const struct iris_backend *backend,
                     struct iris_device_info *info_p)
{
    *info_p = ((const struct hip_backend *)backend)->info;
}

/* Every synchronise forgets what ended its work. */
static iris_status_t hip_clear_fault(struct iris_backend *backend)
{
    iris_i_fault_clear(backend);
    return IRIS_OK;
}

static const struct iris_device_ops device_ops = {
    .info = hip_info,
    .stream_create = iris_i_hip_stream_create,
    .stream_wrap = iris_i_hip_stream_wrap,
    .stream_destroy = iris_i_hip_stream_destroy,
    .graph_destroy = iris_i_hip_graph_destroy,
    .clear_fault = hip_clear_fault,
    .close = hip_close,
};

/* Of the pool allocator; hip_vmem.c has the other one. */
static const struct iris_memory_ops memory_ops = {
    .alloc = iris_i_hip_heap_alloc,
    .free = iris_i_hip_heap_free,
    .export = iris_i_hip_heap_export,
    .import = iris_i_hip_heap_import,
    .unimport = iris_i_hip_heap_unimport,
    .commit = iris_i_all_committed,
    .decommit = iris_i_no_decommit,
    .export_range = iris_i_no_export_range,
    .import_range = iris_i_no_import_range,
    .hold_external = iris_i_no_hold_external,
    .release_external = iris_i_no_release_external,
    .map_external = iris_i_no_map_external,
};

static const struct iris_queue_ops queue_ops = {
    .synchronize = iris_i_hip_synchronize,
    .copy = iris_i_hip_copy,
    .set = iris_i_hip_set,
    .launch = iris_i_hip_launch,
    .signal = iris_i_hip_signal,
    .wait = iris_i_hip_wait,
    .capture_begin = iris_i_hip_capture_begin,
    .capture_end = iris_i_hip_capture_end,
    .graph_launch = iris_i_hip_graph_launch,
    .native = iris_i_hip_stream_native,
};

const struct iris_backend_type iris_i_hip_type = {
    .name = "hip",
    .is_gpu = 1,
    .probe = hip_probe,
    .survey = hip_survey,
    .open = hip_open,
};

IRIS_API const struct iris_backend_type *
iris_backend_module(const struct iris_module_core *core);

const struct iris_backend_type *
iris_backend_module(const struct iris_module_core *core)
{
    const struct iris_backend_type *type =
        iris_i_module_open(core, &iris_i_hip_type);

    if (type == NULL) {
        return NULL;
    }
    /* Streams of many rank threads on one GPU must not share hardware queues:
     * a kernel that waits would hold up the one it waits for. 32 is CUDA's
     * most. */
    (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
    (void)setenv("GPU_MAX_HW_QUEUES", "16", 0);
    /* Nor may loading a kernel wait for one that runs. This does not reach CUDA
     * where the program has begun to use it; see hip_load_functions(). */
    (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
    return type;
}
