/* SPDX-License-Identifier: MIT
 *
 * Quirks of runtimes and drivers, each with the version in which it was
 * observed.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <dirent.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* In the format of HIP_VERSION; 0: unknown. CUDA lacks the quirks that
 * depend on it. */
static int runtime_version(void)
{
    int version = 0;

    return IRIS_HIP_NVIDIA                                ? INT_MAX
           : hipRuntimeGetVersion(&version) == hipSuccess ? version
                                                          : 0;
}

/* CUDA 13.0: the most streams that run at once, regardless of the environment. */
#define MOST_QUEUES 32
/* The streams that all contexts share. */
#define SERVICES 2

/* ---- Variables and queues ---- */

#if IRIS_HIP_FAKE
#define DRIVER "/dev/full" /* a test opens it */
#else
#define DRIVER "/dev/kfd"
#endif

/* HIP: it had begun before this library could set variables. */
static bool is_late;
/* The streams of this process that run at once on a GPU, as the runtime read
 * them when it began. */
static unsigned long num_queues;

/* Whether the process has the driver open: then HIP has read its variables. */
static bool has_begun(void)
{
    DIR *folder = opendir("/proc/self/fd");
    const struct dirent *entry;
    char target[sizeof DRIVER];
    bool found = false;

    while (folder != NULL && !found && (entry = readdir(folder)) != NULL) {
        found = readlinkat(dirfd(folder), entry->d_name, target,
                           sizeof target) == sizeof DRIVER - 1 &&
                memcmp(target, DRIVER, sizeof DRIVER - 1) == 0;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return found;
}

#define QUEUES_VARIABLE \
    (IRIS_HIP_NVIDIA ? "CUDA_DEVICE_MAX_CONNECTIONS" : "GPU_MAX_HW_QUEUES")

static void set_variables(void)
{
    const char *text;

    is_late = !IRIS_HIP_NVIDIA && has_begun();
    if (!is_late) {
        (void)setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
        (void)setenv("CUDA_MODULE_LOADING", "EAGER", 0);
        (void)setenv("GPU_MAX_HW_QUEUES", "24", 0);
        (void)setenv("DEBUG_HIP_DYNAMIC_QUEUES", "0", 0);
    }
    text = getenv(QUEUES_VARIABLE);
    num_queues = text == NULL ? 4 : strtoul(text, NULL, 10);
    if (IRIS_HIP_NVIDIA && num_queues > MOST_QUEUES) {
        num_queues = MOST_QUEUES;
    }
}

/* CUDA 13.0: streams of many rank threads on one GPU must not share hardware
 * queues: there, a kernel that waits would delay the one that it waits for. 32
 * is the maximum. HIP: the same, and MI300 has 24. Since 7.2 HIP moves streams
 * between queues, perhaps to one where such a kernel waits (rocm-systems #1958,
 * #9249). Loading a kernel must not wait for a running one either. */
void iris_i_hip_set_environment(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    (void)pthread_once(&once, set_variables);
}

static void warn_if_late(const struct hip_backend *hip)
{
    const char *dynamic = getenv("DEBUG_HIP_DYNAMIC_QUEUES");

    if (is_late && (getenv(QUEUES_VARIABLE) == NULL || dynamic == NULL ||
                    strcmp(dynamic, "0") != 0)) {
        iris_i_warning(
            NULL,
            "rank %d, GPU %d: HIP began before Iris, with %lu hardware queues, "
            "and may move streams between them: a kernel may be queued behind "
            "one that waits for it; set GPU_MAX_HW_QUEUES=24 "
            "DEBUG_HIP_DYNAMIC_QUEUES=0 before the program starts",
            hip->params.rank, hip->device, num_queues);
    }
}

/* HIP: streams beyond the number of queues share one. On MI300X, threads that
 * enqueue there at the same time corrupt it (rocm-systems #7195, #10377). */
iris_status_t iris_i_hip_take_queue(const struct hip_backend *hip)
{
    unsigned used = atomic_load(&hip->gpu->num_streams), streams;
    bool may_share = IRIS_HIP_NVIDIA || hip->gpu->num_users <= 1;

    /* Nobody counts a stream that is refused. */
    do {
        streams = used + SERVICES;
    } while (
        (streams < num_queues || may_share) &&
        !atomic_compare_exchange_weak(&hip->gpu->num_streams, &used, used + 1));
    if (streams < num_queues) {
        return IRIS_OK;
    }
    if (!may_share) {
        return iris_i_hip_refuse(
            hip, IRIS_ERR_LIMIT,
            "%u streams of this process use all %lu hardware queues "
            "(GPU_MAX_HW_QUEUES): rank threads that share a queue may hang; "
            "destroy streams, raise GPU_MAX_HW_QUEUES before the program "
            "starts, or use processes (IRIS_SPAWN=processes)",
            streams, num_queues);
    }
    if (streams == num_queues) {
        iris_i_warning(NULL,
                       "rank %d makes stream %u of this process on GPU %d, "
                       "which runs %lu streams at once (%s): kernels that wait "
                       "for each other may hang; use processes "
                       "(IRIS_SPAWN=processes)",
                       hip->params.rank, streams + 1, hip->device, num_queues,
                       QUEUES_VARIABLE);
    }
    return IRIS_OK;
}

void iris_i_hip_return_queue(const struct hip_backend *hip)
{
    atomic_fetch_sub(&hip->gpu->num_streams, 1);
}

/* ---- Streams and graphs ---- */

/* CUDA 13.0, H200: streams without any previous work share a queue. If one
 * stream's first kernels wait, another's first kernel may never run. So the
 * first work is one that does not wait; an event does not count. */
hipError_t iris_i_hip_give_first_work(const struct hip_backend *hip,
                                      hipStream_t native)
{
    char *word = (char *)(uintptr_t)hip->info.watch +
                 offsetof(struct hip_pinned, unread);
    hipError_t error = HIP_QUEUE_WAITS
                           ? hipStreamWriteValue64(native, word, 0, 0)
                           : hipErrorNotSupported;

    return error == hipErrorNotSupported ? hipSuccess : error;
}

/* CUDA 13.0, H200: initially, a process has memory for about 34 streams and
 * graphs on a GPU. Allocating more waits for all work on the GPU, and all other
 * calls wait for that: forever, if a kernel waits for a rank whose thread is in
 * such a call. The memory stays when streams are destroyed. */
#define NUM_STREAMS 256
/* The same for about 4000 kernels and copies in graphs. */
#define NUM_NODES 16384

/* Makes a graph of copies within the GPU's memory, which never run. (Other
 * kinds of copies do not take the memory that kernels in graphs need.) */
static hipError_t make_graph(hipStream_t native, uint64_t *words)
{
    hipGraphExec_t exec;
    hipGraph_t graph = NULL;
    hipError_t error =
        hipStreamBeginCapture(native, hipStreamCaptureModeRelaxed);
    hipError_t ended;

    for (int i = 0; i < NUM_NODES && error == hipSuccess; i++) {
        error = hipMemcpyAsync(words, words + 1, 8, hipMemcpyDefault, native);
    }
    ended = hipStreamEndCapture(native, &graph);
    error = error == hipSuccess ? ended : error;
    error = error ? error : hipGraphInstantiate(&exec, graph, NULL, NULL, 0);
    error = error ? error : hipGraphExecDestroy(exec);
    if (graph != NULL) {
        (void)hipGraphDestroy(graph);
    }
    return error;
}

static hipError_t make_streams(const struct hip_backend *hip)
{
    hipStream_t natives[NUM_STREAMS];
    struct hip_memory words = {.kind = HIP_DEVICE};
    hipError_t error =
        hipExtMallocWithFlags(&words.ptr, 16, hipDeviceMallocFinegrained);
    int count = 0;

    while (count < NUM_STREAMS && error == hipSuccess) {
        error = hipStreamCreateWithFlags(&natives[count], hipStreamNonBlocking);
        count += error == hipSuccess;
    }
    error = error ? error : make_graph(natives[0], words.ptr);
    iris_i_hip_free_later(hip, &words);
    while (count > 0) {
        (void)hipStreamDestroy(natives[--count]);
    }
    hip->gpu->prepared = error == hipSuccess;
    return error;
}

hipError_t iris_i_hip_prepare(const struct hip_backend *hip)
{
    /* Before a second context's kernels can wait for the first's. Behind a
     * kernel that cannot be ended, this would never return. */
    return HIP_QUEUE_WAITS && hip->num_contexts == 2 && !hip->gpu->prepared &&
                   !iris_i_hip_any_stuck()
               ? make_streams(hip)
               : hipSuccess;
}

void iris_i_hip_warn_of_streams(const struct hip_backend *hip,
                                hipError_t prepared)
{
    if (prepared != hipSuccess) {
        iris_i_warning(NULL,
                       "rank %d: GPU %d has no memory now for the streams and "
                       "graphs of ranks that share it (%s): making one later "
                       "may hang; lower IRIS_HEAP_SIZE",
                       hip->params.rank, hip->device,
                       hipGetErrorString(prepared));
    }
    warn_if_late(hip);
}

#if !IRIS_HIP_NVIDIA
/* In HIP since 5.6; the runtime may be newer than the headers. */
extern hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
    __attribute__((weak));
#endif

hipError_t iris_i_hip_stream_device(hipStream_t native, int *device_p)
{
#if !IRIS_HIP_NVIDIA
    if (native == NULL || hipStreamGetDevice == NULL) {
        return hipSuccess;
    }
#endif
    return hipStreamGetDevice(native, device_p);
}

/* ---- Devices ---- */

static hipError_t read_identity(int device, struct hip_identity *identity)
{
    memset(identity, 0, sizeof *identity);
#if !IRIS_HIP_NVIDIA
    hipUUID uuid;

    if (hipDeviceGetUuid(&uuid, device) == hipSuccess) {
        memcpy(identity->uuid, &uuid, sizeof identity->uuid);
    }
#endif
    return hipDeviceGetPCIBusId(identity->pci, HIP_PCI_BYTES, device);
}

hipError_t iris_i_hip_identify(int device, struct hip_identity *identity_p)
{
    struct hip_identity own, other;
    hipError_t error = read_identity(device, &own);
    int32_t nth = 0;

    for (int i = 0; i < device && error == hipSuccess; i++) {
        error = read_identity(i, &other);
        nth += memcmp(&own, &other, sizeof own) == 0;
    }
    own.nth = nth;
    if (error == hipSuccess) {
        *identity_p = own;
    }
    return error;
}

hipError_t iris_i_hip_find_device(const struct hip_identity *identity,
                                  int *device_p)
{
    int32_t before = identity->nth;
    struct hip_identity one;
    int count = 0;
    hipError_t error = hipGetDeviceCount(&count);

    for (int device = 0; device < count && error == hipSuccess; device++) {
        error = read_identity(device, &one);
        one.nth = identity->nth;
        if (error == hipSuccess && memcmp(&one, identity, sizeof one) == 0 &&
            before-- == 0) {
            *device_p = device;
            return hipSuccess;
        }
    }
    return error == hipSuccess ? hipErrorInvalidDevice : error;
}

/* ---- Code ---- */

#if IRIS_HIP_NVIDIA && CUDA_VERSION >= 12040
/* Drivers before 12.4 do not have them. */
extern __typeof__(cuModuleGetFunctionCount) cuModuleGetFunctionCount
    __attribute__((weak));
extern __typeof__(cuModuleEnumerateFunctions) cuModuleEnumerateFunctions
    __attribute__((weak));
extern __typeof__(cuFuncLoad) cuFuncLoad __attribute__((weak));

/* CUDA 13.0: initially, a lane has 1 KB of local memory. Memory for more is
 * allocated at the first launch of a kernel that needs it, and that waits for
 * kernels that wait. So it is allocated here. The additional 1 KB is for tools
 * that change kernels. */
static void reserve_local(size_t bytes)
{
    size_t has = 0;

    if (cudaDeviceGetLimit(&has, cudaLimitStackSize) == cudaSuccess &&
        has < bytes) {
        (void)cudaDeviceSetLimit(cudaLimitStackSize, bytes + 1024);
    }
}

/* CUDA 13.0: if the program began to use CUDA before this library could ask for
 * eager loading, a kernel is loaded at its first launch, and that waits for
 * kernels that wait. */
void iris_i_hip_load_functions(hipModule_t module)
{
    CUfunction *functions;
    unsigned count = 0;
    int most = 0, bytes;

    if (cuModuleGetFunctionCount == NULL ||
        cuModuleEnumerateFunctions == NULL || cuFuncLoad == NULL ||
        cuModuleGetFunctionCount(&count, module) != CUDA_SUCCESS) {
        return;
    }
    functions = calloc(count, sizeof functions[0]);
    if (functions != NULL &&
        cuModuleEnumerateFunctions(functions, count, module) == CUDA_SUCCESS) {
        for (unsigned i = 0; i < count; i++) {
            bytes = 0;
            (void)cuFuncLoad(functions[i]);
            (void)cuFuncGetAttribute(&bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                                     functions[i]);
            most = bytes > most ? bytes : most;
        }
    }
    free(functions);
    reserve_local((size_t)most);
}
#else
/* HIP: functions are on the device once their module is. */
void iris_i_hip_load_functions(hipModule_t module)
{
    (void)module;
}
#endif

/* ---- Memory ---- */

/* ROCm 7: with HSA_ENABLE_IPC_MODE_LEGACY=1, which container images set, no IPC
 * handle can be made (rocm-systems #2209). That is tested once: the memory
 * allocated for the test stays until no context uses the GPU. */
bool iris_i_hip_can_share(const struct hip_backend *hip)
{
    struct hip_memory memory = {.kind = HIP_DEVICE};
    hipIpcMemHandle_t handle;
    hipError_t error;
    int tries = 0;

    if (IRIS_HIP_NVIDIA || hip->gpu->shares ||
        hipExtMallocWithFlags(&memory.ptr, 1, hipDeviceMallocFinegrained) !=
            hipSuccess) {
        return true;
    }
    do {
        error = hipIpcGetMemHandle(&handle, memory.ptr);
    } while (iris_i_hip_try_again(error, &tries));
    iris_i_hip_free_later(hip, &memory);
    hip->gpu->shares = error == hipSuccess;
    return error == hipSuccess;
}

/* The compute capability of gfx906 to gfx90a is 9.0, that of gfx942 9.4. */
static bool is_mi200(const struct hip_backend *hip)
{
#if IRIS_HIP_NVIDIA
    (void)hip;
    return false;
#else
    return iris_i_hip_attribute(hip, hipDeviceAttributeComputeCapabilityMajor,
                                9) == 9 &&
           iris_i_hip_attribute(hip, hipDeviceAttributeComputeCapabilityMinor,
                                4) == 0;
#endif
}

/* HIP tells it since 5.4, and an emulator returns 0. CDNA 2's manual: "constant
 * 25MHz clock". */
int64_t iris_i_hip_clock_khz(const struct hip_backend *hip)
{
    int64_t khz = 0;

#if IRIS_HIP_NVIDIA
    khz = 1000000; /* nanoseconds */
#elif HAVE_DECL_HIPDEVICEATTRIBUTEWALLCLOCKRATE
    khz = iris_i_hip_attribute(hip, hipDeviceAttributeWallClockRate, 0);
#endif
    return khz > 0 ? khz : is_mi200(hip) ? 25000 : 100000;
}

/* HIP before 7 has no uncached type. Later versions accept it and make ordinary
 * memory, up to April 2026 (rocm-systems #4476), so only the version tells. Some
 * refuse to tell the granularity (#847), so a piece is made as a test. NVIDIA's
 * caches keep no data that other devices change. Kernels of MI200 that
 * wait for each other in ordinary memory hang: they do not see a peer's writes
 * there (openxla/xla #48069). */
iris_status_t iris_i_hip_choose_type(struct hip_backend *hip,
                                     hipMemAllocationProp prop)
{
    hipMemGenericAllocationHandle_t handle;
    hipError_t error;

    if (IRIS_HIP_NVIDIA || strcmp(hip->params.memory, "fine") == 0) {
        return IRIS_OK;
    }
    hip->vmem.uncached = true;
    prop.type = hipMemAllocationTypeUncached;
    error = runtime_version() < 71400000
                ? hipErrorNotSupported
                : hipMemCreate(&handle, hip->vmem.granularity, &prop, 0);
    if (error == hipSuccess) {
        (void)hipMemRelease(handle);
    } else if (error == hipErrorOutOfMemory ||
               strcmp(hip->params.memory, "uncached") == 0) {
        return iris_i_hip_fail(hip, error,
                               "no uncached vmem, which HIP has since 7.14; "
                               "leave out IRIS_HIP_MEMORY, or use "
                               "IRIS_ALLOCATOR=pool");
    } else if (hip->params.num_ranks > 1 && is_mi200(hip)) {
        return iris_i_hip_refuse(
            hip, IRIS_ERR_DEVICE,
            "this HIP has no uncached vmem, and in other vmem kernels of an "
            "MI200 hang that wait for peers; use IRIS_ALLOCATOR=pool "
            "(IRIS_HIP_MEMORY=fine tries it all the same)");
    } else {
        hip->vmem.uncached = false;
        iris_i_warning(
            NULL,
            "rank %d, GPU %d: this HIP has no uncached vmem "
            "(7.14 has it); if values from other GPUs come late or never, use "
            "IRIS_ALLOCATOR=pool",
            hip->params.rank, hip->device);
    }
    return IRIS_OK;
}

/* The start of the memory that is mapped without a gap up to an address. */
static char *run_start(const struct hip_backend *hip, char *at)
{
    const struct hip_range *range = hip->vmem.ranges;

    while (range != NULL) {
        const struct hip_memory *memory = &range->memory;

        range = range->next;
        if ((char *)memory->ptr + memory->bytes == at) {
            at = memory->ptr;
            range = hip->vmem.ranges;
        }
    }
    return at;
}

/* HIP 6.4 to 7.2 may refuse a range that does not begin with the first mapping
 * in its reserved addresses (rocm-systems #2516, #2667, pull request 6977).
 * Then access is set again, including the memory that is mapped before it. */
hipError_t iris_i_hip_set_access(const struct hip_backend *hip,
                                 const struct hip_memory *what,
                                 const hipMemAccessDesc *access, size_t count)
{
    hipError_t error = hipMemSetAccess(what->ptr, what->bytes, access, count);
    char *start;

    if (error != hipErrorInvalidValue) {
        return error;
    }
    start = run_start(hip, what->ptr);
    return hipMemSetAccess(start,
                           (size_t)((char *)what->ptr - start) + what->bytes,
                           access, count);
}

/* By its type, since memory of another GPU may have no address on this one. HIP
 * before 6 has no type for unknown memory, and mostly returns an error. */
static bool is_unknown(const hipPointerAttribute_t *what)
{
#if IRIS_HIP_NVIDIA || HIP_VERSION_MAJOR >= 6
    return what->type == hipMemoryTypeUnregistered;
#else
    return what->memoryType == hipMemoryTypeHost && what->hostPointer == NULL &&
           what->devicePointer == NULL;
#endif
}

bool iris_i_hip_is_pageable(const void *ptr, hipPointerAttribute_t *what_p)
{
    hipError_t error;

    memset(what_p, 0, sizeof *what_p);
    error = hipPointerGetAttributes(what_p, ptr);
    return error == hipSuccess ? is_unknown(what_p)
                               : error == hipErrorInvalidValue;
}

bool iris_i_hip_is_device(const hipPointerAttribute_t *what)
{
#if IRIS_HIP_NVIDIA || HIP_VERSION_MAJOR >= 6
    return what->type == hipMemoryTypeDevice;
#else
    return what->memoryType == hipMemoryTypeDevice;
#endif
}

/* HIP before 7.1 took the address of a descriptor to import. Since then it
 * takes the descriptor, as CUDA does. */
void *iris_i_hip_os_handle(int *fd)
{
    int version = runtime_version();

    return version != 0 && version < 70100000 ? (void *)fd
                                              : (void *)(uintptr_t)*fd;
}

/* HIP before 7.14 crashes at the query for the handle of memory that its
 * virtual memory calls did not make (rocm-systems #5807). For other memory it
 * returns the handle without a reference (#2696). */
const char *iris_i_hip_cannot_retain(void)
{
    return runtime_version() < 71400000
               ? "HIP before 7.14 does not hold memory of the program's safely"
               : NULL;
}
