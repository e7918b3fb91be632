/* SPDX-License-Identifier: MIT
 *
 * The memory of heaps on a GPU: this rank's, the mappings of the peers', external
 * memory, and the program's own memory that kernels use.
 *
 * There are two kinds of heaps. A pool is one allocation, shared by an IPC handle.
 * A heap that grows (IRIS_ALLOCATOR=vmem) is a range of addresses; each commit
 * maps a piece of memory there, and a descriptor carries the piece to other
 * processes. A rank thread's heap is used by its owner's pointer.
 *
 * A free may have to wait for kernels of other contexts, so memory
 * goes by deferred.c; no memory is freed while a kernel that could not be ended
 * may use it. hip->imports and hip->vmem.ranges belong to the thread that makes
 * the context's collective calls; known_lock guards the ranges that kernels are
 * known to reach, since any thread may enqueue.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include "backend/backend.h"
#include "base/base.h"
#include <iris/heap.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

/* The most pieces of IRIS_HEAP_SIZE bytes of virtual memory; a heap that grows
 * further has more. Each piece costs every process a mapping, with some runtimes
 * a descriptor, and one more in transit. */
#define MOST_PIECES 128

/* ---- Descriptors of memory ---- */

/* Rough number of descriptors that a process uses otherwise. */
#define OTHERS 256

static hipError_t export_once(hipMemGenericAllocationHandle_t handle, int *fd_p)
{
    int tries = 0;
    hipError_t error;

    do {
        error = hipMemExportToShareableHandle(
            fd_p, handle, hipMemHandleTypePosixFileDescriptor, 0);
    } while (iris_i_hip_try_again(error, &tries));
    return error;
}

/* A descriptor of memory, which the caller closes.
 * ROCm 7.14 returns the descriptor that it keeps for the handle. A caller that
 * closes it gets the same number at the next export, but it refers to no file
 * or another one (rocm-systems #7786, #8440). Two exports find this out: other
 * runtimes make a new descriptor each time, which the caller closes. */
static hipError_t export_descriptor(hipMemGenericAllocationHandle_t handle,
                                    int *fd_p)
{
    int fd = -1, again = -1;
    hipError_t error = export_once(handle, &fd);

    if (error != hipSuccess) {
        return error;
    }
    error = export_once(handle, &again);
    if (error != hipSuccess) { /* a kept descriptor always exists */
        close(fd);
        return error;
    }
    if (fd == again) {
        fd = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    } else {
        close(again);
        fd = iris_i_fd_above_stdio(fd);
    }
    if (fd < 0) {
        return hipErrorUnknown;
    }
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    *fd_p = fd;
    return hipSuccess;
}

static bool are_used_up(void)
{
    int fd = open("/", O_PATH | O_CLOEXEC);

    if (fd < 0) {
        return errno == EMFILE || errno == ENFILE;
    }
    close(fd);
    return false;
}

/* Whether a call failed because the process has no descriptors left: *status_p,
 * with this thread's message.
 * ROCm 7.14 keeps a descriptor for each handle, and reports a lack of memory if
 * it gets none (rocm-systems #10604). Only the program may raise the limit:
 * select() accepts no descriptor from 1024 on. */
static bool lacks_descriptors(const struct hip_backend *hip, size_t bytes,
                              iris_status_t *status_p)
{
    struct rlimit limit = {0};
    size_t most = hip->heap.window / hip->info.page_bytes;

    if (!are_used_up()) {
        return false;
    }
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    *status_p = iris_i_hip_refuse(
        hip, IRIS_ERR_LIMIT,
        "no file descriptor left for %zu bytes of a heap: the runtime may keep "
        "one for each of up to %zu pieces of a rank's heap. Raise "
        "RLIMIT_NOFILE "
        "(ulimit -n), now %llu, to %llu, or use IRIS_ALLOCATOR=pool",
        bytes, most, (unsigned long long)limit.rlim_cur,
        (unsigned long long)OTHERS +
            (unsigned long long)most *
                (unsigned long long)hip->params.num_ranks);
    return true;
}

/* ---- Heaps that grow ---- */

static hipMemAllocationProp make_properties(const struct hip_backend *hip)
{
    hipMemAllocationProp prop;

    memset(&prop, 0, sizeof prop);
    prop.type = hip->vmem.uncached ? hipMemAllocationTypeUncached
                                   : hipMemAllocationTypePinned;
    prop.requestedHandleType = hipMemHandleTypePosixFileDescriptor;
    prop.location.type = hipMemLocationTypeDevice;
    prop.location.id = hip->device;
    return prop;
}

static size_t round_up(size_t bytes, size_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* ---- Ranges ---- */

/* The link to the range at this address; the list's end if there is no such
 * range. */
static struct hip_range **find_range(struct hip_backend *hip, const void *at)
{
    struct hip_range **link = &hip->vmem.ranges;

    while (*link != NULL && (*link)->memory.ptr != at) {
        link = &(*link)->next;
    }
    return link;
}

/* Maps memory for the last `num_devices` of `access`. The range owns the handle
 * from then on, and releases it if this fails. */
static hipError_t map_range(struct hip_backend *hip,
                            const struct hip_memory *what, int num_devices)
{
    struct hip_range *range = malloc(sizeof *range);
    hipError_t error = range == NULL ? hipErrorOutOfMemory : hipSuccess;

    if (error == hipSuccess) {
        /* Earlier unmappings at this address may have been deferred. */
        (void)iris_i_hip_free_deferred(hip->device, what->ptr, what->bytes);
        error = hipMemMap(what->ptr, what->bytes, 0, what->handle, 0);
    }
    if (error == hipSuccess) {
        error = iris_i_hip_set_access(
            hip, what, &hip->vmem.access[hip->vmem.num_devices - num_devices],
            (size_t)num_devices);
        if (error == hipSuccess) {
            *range = (struct hip_range){hip->vmem.ranges, *what};
            hip->vmem.ranges = range;
            return hipSuccess;
        }
        (void)hipMemUnmap(what->ptr, what->bytes);
    }
    (void)hipMemRelease(what->handle);
    free(range);
    return error;
}

static void unmap_range(struct hip_backend *hip, struct hip_range **link)
{
    struct hip_range *range = *link;

    *link = range->next;
    iris_i_hip_free_later(hip, &range->memory);
    free(range);
}

/* ---- Addresses ---- */

/* The usable addresses begin at the largest alignment of offsets in a heap.
 * This reserves more than needed, since runtimes are free to ignore an
 * alignment. */
static hipError_t reserve_addresses(const struct hip_backend *hip, size_t bytes,
                                    struct hip_memory *raw_p, void **base_p)
{
    size_t granularity = hip->vmem.granularity;
    size_t unit =
        granularity < IRIS_ALIGNMENT_MAX ? IRIS_ALIGNMENT_MAX : granularity;
    struct hip_memory raw = {.kind = HIP_ADDRESSES, .bytes = bytes + unit};
    hipError_t error =
        hipMemAddressReserve(&raw.ptr, raw.bytes, granularity, NULL, 0);

    if (error == hipSuccess) {
        *raw_p = raw;
        *base_p = (char *)round_up((uintptr_t)raw.ptr, unit);
    }
    return error;
}

/* Frees memory or addresses, and the mappings there. */
static void free_mapping(struct hip_backend *hip,
                         const struct hip_memory *memory)
{
    struct hip_range **link = &hip->vmem.ranges;

    while (*link != NULL) {
        uintptr_t at = (uintptr_t)(*link)->memory.ptr;

        if (at - (uintptr_t)memory->ptr < memory->bytes) {
            unmap_range(hip, link);
        } else {
            link = &(*link)->next;
        }
    }
    iris_i_hip_free_later(hip, memory);
}

/* ---- Heaps ---- */

static iris_status_t alloc_addresses(struct hip_backend *hip, size_t bytes,
                                     struct iris_heap_region *region_p)
{
    size_t heap_bytes = round_up(bytes, hip->info.page_bytes);
    hipError_t error = reserve_addresses(hip, 2 * heap_bytes, &hip->heap_memory,
                                         &hip->heap.base);

    if (error != hipSuccess) {
        return iris_i_hip_fail(
            hip, error,
            "no addresses for %zu bytes; lower IRIS_HEAP_SIZE or "
            "IRIS_HEAP_RESERVE",
            bytes);
    }
    *region_p = (struct iris_heap_region){.base = hip->heap.base,
                                          .bytes = bytes,
                                          .window = heap_bytes,
                                          .window_bytes = heap_bytes,
                                          .commit = IRIS_COMMIT_PRIVATE,
                                          .guarded = 1};
    hip->heap = *region_p;
    hip->heap.bytes = 2 * heap_bytes;
    return IRIS_OK;
}

static iris_status_t commit_range(struct iris_backend *backend, void *at,
                                  size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct hip_memory range = {HIP_RANGE, at, bytes, 0};
    hipMemAllocationProp prop = make_properties(hip);
    size_t free_bytes = 0, total_bytes = 0;
    iris_status_t status;
    hipError_t error = hipMemCreate(&range.handle, bytes, &prop, 0);

    if (error == hipErrorOutOfMemory &&
        iris_i_hip_make_room(hip->device, bytes)) {
        error = hipMemCreate(&range.handle, bytes, &prop, 0);
    }
    error = error ? error : map_range(hip, &range, hip->vmem.num_devices);
    if (error != hipSuccess && lacks_descriptors(hip, bytes, &status)) {
        return status;
    }
    if (error != hipSuccess) {
        (void)hipMemGetInfo(&free_bytes, &total_bytes);
        return iris_i_hip_fail(
            hip, error,
            "no %zu bytes more for the heap: %zu of %zu bytes "
            "are free; free some, or allocate less",
            bytes, free_bytes, total_bytes);
    }
    status = iris_i_hip_zero(hip, at, bytes);
    if (status != IRIS_OK) {
        unmap_range(hip, find_range(hip, at));
    }
    return status;
}

static void decommit_range(struct iris_backend *backend, void *at, size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_range **link = find_range(hip, at);
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    (void)bytes;
    if (*link != NULL) {
        unmap_range(hip, link);
    }
}

/* ---- Other processes ---- */

static iris_status_t export_piece(struct hip_backend *hip, const void *at,
                                  uint64_t *bytes_p, int *fd_p)
{
    const struct hip_range *range = *find_range(hip, at);
    iris_status_t status;
    hipError_t error;

    if (range == NULL) {
        return IRIS_OK;
    }
    *bytes_p = range->memory.bytes;
    error = export_descriptor(range->memory.handle, fd_p);
    return error != hipSuccess &&
                   lacks_descriptors(hip, range->memory.bytes, &status)
               ? status
               : iris_i_hip_fail(hip, error, "%zu bytes cannot be shared",
                                 range->memory.bytes);
}

/* Maps another process's memory. The caller keeps the descriptor. */
static iris_status_t import_at(struct hip_backend *hip, void *at,
                               uint64_t bytes, int fd)
{
    struct hip_memory range = {HIP_RANGE, at, bytes, 0};
    iris_status_t status;
    hipError_t error = hipMemImportFromShareableHandle(
        &range.handle, iris_i_hip_os_handle(&fd),
        hipMemHandleTypePosixFileDescriptor);

    error = error ? error : map_range(hip, &range, 1);
    return error != hipSuccess && lacks_descriptors(hip, bytes, &status)
               ? status
               : iris_i_hip_fail(hip, error,
                                 "%zu bytes of a peer are not mapped",
                                 (size_t)bytes);
}

/* A range's handle keeps its size. */
static iris_status_t export_range(struct iris_backend *backend, void *at,
                                  struct iris_heap_handle *handle_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    uint64_t bytes = 0;
    int fd = -1;
    iris_status_t status = export_piece(hip, at, &bytes, &fd);

    if (status == IRIS_OK && bytes == 0) {
        return iris_i_hip_refuse(hip, IRIS_ERR_SYSTEM, "no memory at %p", at);
    }
    if (status == IRIS_OK) {
        handle_p->fd = fd;
        handle_p->num_bytes = sizeof bytes;
        memcpy(handle_p->bytes, &bytes, sizeof bytes);
    }
    return status;
}

static iris_status_t import_range(struct iris_backend *backend, void *at,
                                  size_t most,
                                  const struct iris_heap_handle *handle)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    uint64_t bytes;

    memcpy(&bytes, handle->bytes, sizeof bytes);
    if (handle->num_bytes != sizeof bytes || handle->fd < 0 || bytes > most ||
        bytes % hip->vmem.granularity != 0) {
        return iris_i_hip_refuse(
            hip, IRIS_ERR_SYSTEM,
            "a peer's memory is not %zu bytes with a descriptor", most);
    }
    return import_at(hip, at, bytes, handle->fd);
}

/* Exports the memory that begins there; nothing, if there is no memory. */
static iris_status_t import_addresses(struct hip_backend *hip, int rank,
                                      uint64_t committed, int fd,
                                      struct hip_import *import)
{
    iris_status_t status = iris_i_hip_fail(
        hip,
        reserve_addresses(hip, hip->heap.bytes, &import->memory, &import->base),
        "no addresses for rank %d; lower IRIS_HEAP_SIZE or IRIS_HEAP_RESERVE",
        rank);

    if (status != IRIS_OK || committed == 0) {
        return status;
    }
    status = committed > hip->heap.window || fd < 0
                 ? iris_i_hip_refuse(hip, IRIS_ERR_SYSTEM,
                                     "rank %d's handle makes no sense", rank)
                 : import_at(hip, import->base, committed, fd);
    if (status != IRIS_OK) {
        iris_i_hip_free_later(hip, &import->memory);
    }
    return status;
}

/* ---- Opening ---- */

static void add_device(struct hip_vmem *vmem, int device)
{
    hipMemAccessDesc *access = &vmem->access[vmem->num_devices++];

    memset(access, 0, sizeof *access);
    access->location.type = hipMemLocationTypeDevice;
    access->location.id = device;
    access->flags = hipMemAccessFlagsProtReadWrite;
}

/* All devices in this process that may use the heap: rank threads on other
 * devices use the same addresses. */
static void find_devices(struct hip_backend *hip)
{
    int count = 0, can = 0;

    if (hip->params.ranks_on_device > 1 ||
        hipGetDeviceCount(&count) != hipSuccess) {
        count = 0;
    }
    for (int device = 0; device < count && device < HIP_MAX_DEVICES; device++) {
        if (device != hip->device &&
            hipDeviceCanAccessPeer(&can, device, hip->device) == hipSuccess &&
            can) {
            add_device(&hip->vmem, device);
        }
    }
    add_device(&hip->vmem, hip->device);
}

iris_status_t iris_i_hip_vmem_open(struct hip_backend *hip)
{
    hipMemAllocationProp prop = make_properties(hip);
    size_t granularity = 0, page;
    hipError_t error = hipMemGetAllocationGranularity(
        &granularity, &prop, hipMemAllocationGranularityRecommended);

    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error, "no vmem; use IRIS_ALLOCATOR=pool");
    }
    if (granularity == 0 || (granularity & (granularity - 1)) != 0) {
        return iris_i_hip_refuse(hip, IRIS_ERR_DEVICE,
                                 "vmem has pieces of %zu bytes, no power of "
                                 "two; use IRIS_ALLOCATOR=pool",
                                 granularity);
    }
    hip->vmem.granularity = granularity;
    /* The core commits a heap in pieces of at least this size. */
    page = granularity < IRIS_COMMIT_BYTES ? IRIS_COMMIT_BYTES : granularity;
    while (page < hip->params.heap_bytes / MOST_PIECES) {
        page *= 2;
    }
    hip->info.page_bytes = page;
    find_devices(hip);
    return iris_i_hip_choose_type(hip, prop);
}

/* ---- External memory ---- */

/* Asks first: runtimes treat the query for a handle of host memory as an error,
 * and tools report it. */
static bool is_own_memory(const struct hip_backend *hip, const void *ptr)
{
    hipPointerAttribute_t what;

    memset(&what, 0, sizeof what);
    return hipPointerGetAttributes(&what, ptr) == hipSuccess &&
           what.devicePointer != NULL && what.device == hip->device;
}

/* The reason why the handle's whole allocation cannot be mapped or exported.
 * NULL: it can, and the other outputs are set. */
static const char *check_fit(const struct hip_backend *hip, void *ptr,
                             size_t bytes,
                             hipMemGenericAllocationHandle_t handle,
                             struct iris_external *external)
{
    hipMemAllocationProp prop;
    hipDeviceptr_t start = 0;
    int fd;

    if (hipMemGetAddressRange(&start, &external->bytes, (hipDeviceptr_t)ptr) !=
            hipSuccess ||
        hipMemGetAllocationPropertiesFromHandle(&prop, handle) != hipSuccess) {
        return "the runtime does not describe it";
    }
    external->offset = (size_t)((char *)ptr - (char *)start);
    if (external->offset >= external->bytes ||
        bytes > external->bytes - external->offset) {
        return "it is not mapped in one piece";
    }
    if (external->bytes % hip->vmem.granularity != 0) {
        return "its size is not one to map";
    }
    if (prop.location.type != hipMemLocationTypeDevice ||
        prop.location.id != hip->device) {
        return "it is not on this rank's GPU";
    }
    if ((prop.requestedHandleType & hipMemHandleTypePosixFileDescriptor) == 0 ||
        export_descriptor(handle, &fd) != hipSuccess) {
        return "it was not made to be exported as a descriptor";
    }
    close(fd);
    return NULL;
}

static const char *hold_allocation(const struct hip_backend *hip, void *ptr,
                                   size_t bytes, struct iris_external *external)
{
    hipMemGenericAllocationHandle_t handle;
    const char *why = is_own_memory(hip, ptr)
                          ? iris_i_hip_cannot_retain()
                          : "it is not memory of this rank's GPU";

    if (why != NULL) {
        return why;
    }
    if (hipMemRetainAllocationHandle(&handle, ptr) != hipSuccess) {
        return "the runtime's virtual memory calls did not make it";
    }
    why = check_fit(hip, ptr, bytes, handle, external);
    if (why != NULL) {
        (void)hipMemRelease(handle);
    }
    external->cookie = (void *)(uintptr_t)handle;
    return why;
}

static hipMemGenericAllocationHandle_t
handle_of(const struct iris_external *external)
{
    return (hipMemGenericAllocationHandle_t)(uintptr_t)external->cookie;
}

static iris_status_t hold_external(struct iris_backend *backend,
                                   const void *ptr, size_t bytes,
                                   struct iris_external *external_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct iris_external external;
    const char *why =
        hold_allocation(hip, (void *)(uintptr_t)ptr, bytes, &external);

    if (why != NULL) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "memory at %p cannot be shared: %s", ptr, why);
    }
    *external_p = external;
    return IRIS_OK;
}

/* The program still has the memory, so this waits for nothing. */
static void release_external(struct iris_backend *backend,
                             struct iris_external *external)
{
    const struct hip_backend *hip = (const struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    if (external->cookie != NULL) {
        (void)hipMemRelease(handle_of(external));
    }
    external->cookie = NULL;
}

/* From here on the range owns the handle; the program's own reference and
 * mapping may go. */
static iris_status_t map_external(struct iris_backend *backend, void *at,
                                  struct iris_external *external)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    const struct hip_memory range = {HIP_RANGE, at, external->bytes,
                                     handle_of(external)};
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    hipError_t error = map_range(hip, &range, hip->vmem.num_devices);

    external->cookie = NULL;
    return iris_i_hip_fail(hip, error, "the program's %zu bytes are not mapped",
                           external->bytes);
}

/* ---- Memory of the program that kernels access ---- */

static bool is_known(struct hip_backend *hip, uintptr_t start, size_t bytes)
{
    unsigned waits = atomic_load_explicit(&hip->waits, memory_order_relaxed);
    bool found = false;

    pthread_mutex_lock(&hip->known_lock);
    for (int i = 0; i < HIP_KNOWN && !found; i++) {
        const struct hip_known *one = &hip->known[i];

        found = start - one->start < one->bytes &&
                bytes <= one->bytes - (start - one->start) &&
                (one->waits == waits || one->waits == HIP_KNOWN_FOREVER);
    }
    pthread_mutex_unlock(&hip->known_lock);
    return found;
}

static void remember_range(struct hip_backend *hip, struct hip_known known)
{
    pthread_mutex_lock(&hip->known_lock);
    hip->known[hip->next_known++ % HIP_KNOWN] = known;
    pthread_mutex_unlock(&hip->known_lock);
}

/* The slot check_access. */
static iris_status_t check_access(struct iris_backend *backend,
                                  const char *name, const void *ptr,
                                  size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_known known = {(uintptr_t)ptr, bytes, 0};
    hipPointerAttribute_t first, last;
    hipDeviceptr_t start = 0;
    size_t whole = 0;

    if (is_known(hip, (uintptr_t)ptr, bytes)) {
        return IRIS_OK;
    }

    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    known.waits = atomic_load_explicit(&hip->waits, memory_order_relaxed);
    if ((iris_i_hip_is_pageable(ptr, &first) ||
         iris_i_hip_is_pageable((const char *)ptr + bytes - 1, &last)) &&
        iris_i_hip_attribute(hip, hipDeviceAttributePageableMemoryAccess, 0) ==
            0) {
        return iris_i_hip_refuse(
            hip, IRIS_ERR_INVALID,
            "%s: %zu bytes at %p are host memory, which kernels of this GPU "
            "cannot access; pass memory from iris_malloc, memory of the GPU, "
            "or pinned memory (hipHostMalloc, hipHostRegister or those of "
            "CUDA)",
            name, bytes, ptr);
    }
    if (iris_i_hip_is_device(&first)) {
        known.waits = HIP_KNOWN_FOREVER;
        if (hipMemGetAddressRange(&start, &whole, (hipDeviceptr_t)ptr) ==
                hipSuccess &&
            known.start - (uintptr_t)start < whole) {
            known.start = (uintptr_t)start;
            known.bytes = whole > bytes ? whole : bytes;
        }
    }
    remember_range(hip, known);
    return IRIS_OK;
}

/* ---- This rank's heap and the mappings of the peers' ---- */

/* ---- This rank's heap ---- */

static void free_memory(const struct hip_backend *hip, void *raw, size_t bytes)
{
    const struct hip_memory memory = {HIP_DEVICE, raw, bytes, 0};

    iris_i_hip_free_later(hip, &memory);
}

/* NULL for any error of the runtime. */
static void *allocate_memory(const struct hip_backend *hip, size_t bytes,
                             hipError_t *error_p)
{
    unsigned flags = strcmp(hip->params.memory, "uncached") == 0
                         ? hipDeviceMallocUncached
                         : hipDeviceMallocFinegrained;
    void *raw = NULL;

    *error_p = hipExtMallocWithFlags(&raw, bytes, flags);
    if (*error_p == hipErrorOutOfMemory &&
        iris_i_hip_make_room(hip->device, bytes)) {
        *error_p = hipExtMallocWithFlags(&raw, bytes, flags);
    }
    return *error_p == hipSuccess ? raw : NULL;
}

/* Bytes from an address to the next one at the largest alignment of offsets in
 * a heap. */
static size_t find_gap(const void *raw)
{
    return -(uintptr_t)raw % IRIS_ALIGNMENT_MAX;
}

static iris_status_t alloc_pool(struct hip_backend *hip, size_t bytes,
                                struct iris_heap_region *region_p)
{
    size_t free_bytes = 0, total_bytes = 0;
    hipError_t error;
    void *raw = allocate_memory(hip, bytes, &error);
    iris_status_t status;

    if (find_gap(raw) != 0) {
        free_memory(hip, raw, bytes);
        raw = allocate_memory(hip, bytes + IRIS_ALIGNMENT_MAX, &error);
    }
    if (raw == NULL) {
        (void)hipMemGetInfo(&free_bytes, &total_bytes);
        /* A runtime may use another error for a size that no GPU could have. */
        error = total_bytes != 0 && bytes > total_bytes ? hipErrorOutOfMemory
                                                        : error;
        return iris_i_hip_fail(hip, error,
                               "no heap of %zu bytes, where %zu of %zu bytes "
                               "are free; lower IRIS_HEAP_SIZE",
                               bytes, free_bytes, total_bytes);
    }
    region_p->base = (char *)raw + find_gap(raw);
    region_p->bytes = bytes;
    status = iris_i_hip_zero(hip, region_p->base, bytes);
    if (status != IRIS_OK) {
        free_memory(hip, raw, bytes);
        return status;
    }
    hip->heap = *region_p;
    hip->heap_memory = (struct hip_memory){HIP_DEVICE, raw, bytes, 0};
    return IRIS_OK;
}

static iris_status_t alloc_heap(struct iris_backend *backend, size_t bytes,
                                struct iris_heap_region *region_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    return hip->params.vmem ? alloc_addresses(hip, bytes, region_p)
                            : alloc_pool(hip, bytes, region_p);
}

static void free_heap(struct iris_backend *backend,
                      struct iris_heap_region *region)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    (void)region;
    hip->heap_freed = true;
    free_mapping(hip, &hip->heap_memory);
    hip->heap_freed = false;
}

/* ---- Handles ---- */

/* The bytes of a handle. A pid is unique only in its namespace, whose number
 * has 32 bits. */
struct hip_handle {
    char *base; /* in that process */
    uint64_t bytes;
    uint32_t pid_namespace;
    int32_t pid;
    int32_t rank;
    int32_t vmem; /* the allocator, which must be the same on all ranks */
    struct hip_identity gpu;
    union {
        uint64_t offset;    /* pool: offset of the heap in its allocation */
        uint64_t committed; /* vmem: bytes of memory behind the descriptor */
    };
    int32_t error;         /* pool: the error if there is no `ipc`; else 0 */
    int32_t legacy;        /* with HSA_ENABLE_IPC_MODE_LEGACY=1 */
    hipIpcMemHandle_t ipc; /* pool: handle of the whole allocation */
};

_Static_assert(sizeof(struct hip_handle) <= IRIS_HANDLE_BYTES,
               "a hip handle fits in a heap handle");

static uint32_t read_namespace(void)
{
    struct stat st;

    return stat("/proc/self/ns/pid", &st) == 0 ? (uint32_t)st.st_ino : 0;
}

/* ---- Reach ---- */

/* Whether it is the heap of another rank thread of this process. */
static bool is_here(const struct hip_handle *theirs)
{
    return theirs->pid == getpid() && theirs->pid_namespace == read_namespace();
}

/* Warns once if atomics on a peer's heap may not be atomic, as over PCIe. */
static void warn_of_atomics(struct hip_backend *hip, int peer,
                            const struct hip_handle *theirs)
{
    int native = 1;

    if (hip->warned_of_atomics ||
        hipDeviceGetP2PAttribute(&native, hipDevP2PAttrNativeAtomicSupported,
                                 hip->device, peer) != hipSuccess ||
        native) {
        return;
    }
    hip->warned_of_atomics = true;
    iris_i_warning(NULL,
                   "the link from GPU %d (%s) of rank %d to GPU %d (%s) of "
                   "rank %d has no atomics: iris_atomic_* and iris_signal_add "
                   "there may lose updates",
                   hip->device, hip->self.pci, hip->params.rank, peer,
                   theirs->gpu.pci, theirs->rank);
}

/* Gives kernels here access to the peer's GPU; *can_p: it is possible. On
 * NVIDIA that needs a context on the peer's GPU, and opening a handle or
 * mapping virtual memory does it implicitly. */
static hipError_t enable_peer(const struct hip_backend *hip, int peer,
                              const struct hip_handle *theirs, int *can_p)
{
    hipError_t error = hipDeviceCanAccessPeer(can_p, hip->device, peer);
    bool by_itself = IRIS_HIP_NVIDIA && (hip->params.vmem || !is_here(theirs));

    if (error == hipSuccess && *can_p && !by_itself) {
        error = hipDeviceEnablePeerAccess(peer, 0);
    }
    return error == hipErrorPeerAccessAlreadyEnabled ? hipSuccess : error;
}

/* Whether this rank's GPU can reach the peer's. */
static iris_status_t check_reach(struct hip_backend *hip,
                                 const struct hip_handle *theirs)
{
    int peer, can = 0;
    hipError_t error;

    if (memcmp(&hip->self, &theirs->gpu, sizeof hip->self) == 0) {
        return hip->params.ranks_on_device > 1
                   ? IRIS_OK
                   : iris_i_fail(NULL, IRIS_ERR_BACKEND,
                                 "ranks %d and %d are both on GPU %s; share "
                                 "it with IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu",
                                 hip->params.rank, theirs->rank, hip->self.pci);
    }
    error = iris_i_hip_find_device(&theirs->gpu, &peer);
    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error,
                               "rank %d's GPU %s is not seen; show every "
                               "rank all GPUs (%s_VISIBLE_DEVICES)",
                               theirs->rank, theirs->gpu.pci,
                               IRIS_HIP_NVIDIA ? "CUDA" : "HIP");
    }
    error = enable_peer(hip, peer, theirs, &can);
    if (error == hipSuccess && can) {
        warn_of_atomics(hip, peer, theirs);
        return IRIS_OK;
    }
    return iris_i_fail(NULL, IRIS_ERR_UNREACHABLE,
                       "GPU %d (%s) of rank %d cannot reach GPU %d (%s) of "
                       "rank %d: %s. Use GPUs that are linked, or "
                       "IRIS_BACKEND=sim IRIS_SIM_DEVICE=gpu",
                       hip->device, hip->self.pci, hip->params.rank, peer,
                       theirs->gpu.pci, theirs->rank,
                       error == hipSuccess ? "no peer access between them"
                                           : hipGetErrorString(error));
}

/* ---- Exporting ---- */

static iris_status_t export_pool(const struct hip_backend *hip,
                                 struct hip_handle *handle)
{
    const char *legacy = getenv("HSA_ENABLE_IPC_MODE_LEGACY");
    hipDeviceptr_t start;
    int tries = 0;
    size_t bytes;
    hipError_t error =
        hipMemGetAddressRange(&start, &bytes, (hipDeviceptr_t)handle->base);

    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error, "the heap cannot be shared");
    }
    handle->offset = (uint64_t)(handle->base - (char *)start);
    do {
        error = hipIpcGetMemHandle(&handle->ipc, hip->heap_memory.ptr);
    } while (iris_i_hip_try_again(error, &tries));
    handle->error = (int32_t)error;
    handle->legacy = legacy != NULL && strcmp(legacy, "1") == 0;
    return IRIS_OK;
}

static iris_status_t export_heap(struct iris_backend *backend,
                                 const struct iris_heap_region *region,
                                 struct iris_heap_handle *handle_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_handle handle = {.pid_namespace = read_namespace(),
                                .pid = getpid(),
                                .base = region->base,
                                .bytes = region->bytes,
                                .rank = hip->params.rank,
                                .vmem = hip->params.vmem};
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    int fd = -1;
    iris_status_t status =
        hip->params.vmem
            ? export_piece(hip, handle.base, &handle.committed, &fd)
            : export_pool(hip, &handle);

    if (status == IRIS_OK) {
        handle.gpu = hip->self;
        handle_p->fd = fd;
        handle_p->num_bytes = sizeof handle;
        memcpy(handle_p->bytes, &handle, sizeof handle);
    }
    return status;
}

/* ---- Importing ---- */

/* The runtime counts the opens of a handle: other contexts of this process may
 * have opened it, too. */
static iris_status_t import_pool(struct hip_backend *hip,
                                 const struct hip_handle *theirs,
                                 struct hip_import *import)
{
    hipError_t error;
    int tries = 0;

    if (theirs->error != hipSuccess) {
        return iris_i_hip_fail(
            hip, (hipError_t)theirs->error,
            "rank %d, process %d on GPU %s, cannot share its heap with other "
            "processes (hipIpcGetMemHandle); %sset IRIS_ALLOCATOR=vmem, or "
            "IRIS_SPAWN=threads",
            theirs->rank, (int)theirs->pid, theirs->gpu.pci,
            theirs->legacy ? "unset HSA_ENABLE_IPC_MODE_LEGACY there, " : "");
    }
    do {
        error = hipIpcOpenMemHandle(&import->memory.ptr, theirs->ipc,
                                    hipIpcMemLazyEnablePeerAccess);
    } while (iris_i_hip_try_again(error, &tries));
    if (error == hipSuccess) {
        import->base = (char *)import->memory.ptr + theirs->offset;
    }
    return iris_i_hip_fail(
        hip, error, "the heap of rank %d, process %d on GPU %s, is not mapped",
        theirs->rank, (int)theirs->pid, theirs->gpu.pci);
}

static iris_status_t map_import(struct hip_backend *hip,
                                const struct hip_handle *theirs, int fd,
                                struct hip_import *import)
{
    iris_status_t status = check_reach(hip, theirs);

    if (status != IRIS_OK) {
        return status;
    }
    if (is_here(theirs)) {
        import->base = theirs->base;
        import->local = true;
        iris_i_hip_import_local(1);
        return IRIS_OK;
    }
    return hip->params.vmem ? import_addresses(hip, theirs->rank,
                                               theirs->committed, fd, import)
                            : import_pool(hip, theirs, import);
}

/* Reads a peer's handle. */
static iris_status_t read_handle(const struct hip_backend *hip,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, struct hip_handle *theirs)
{
    if (handle->num_bytes != sizeof *theirs) {
        return iris_i_hip_refuse(hip, IRIS_ERR_MISMATCH,
                                 "a peer's handle has %u bytes, not %zu: the "
                                 "ranks use different builds of this library",
                                 (unsigned)handle->num_bytes, sizeof *theirs);
    }
    memcpy(theirs, handle->bytes, sizeof *theirs);
    if (theirs->bytes != bytes) {
        return iris_i_hip_refuse(hip, IRIS_ERR_SYSTEM,
                                 "a peer's heap has %llu bytes instead of %zu",
                                 (unsigned long long)theirs->bytes, bytes);
    }
    if (theirs->vmem != hip->params.vmem) {
        return iris_i_hip_refuse(hip, IRIS_ERR_MISMATCH,
                                 "IRIS_ALLOCATOR=%s, but rank %d has another; "
                                 "give all ranks the same",
                                 hip->params.vmem ? "vmem" : "pool",
                                 theirs->rank);
    }
    return IRIS_OK;
}

static iris_status_t import_heap(struct iris_backend *backend,
                                 const struct iris_heap_handle *handle,
                                 size_t bytes, void **base_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_import *mapped = calloc(1, sizeof *mapped);
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct hip_handle theirs;
    iris_status_t status =
        mapped == NULL ? iris_i_hip_refuse(hip, IRIS_ERR_NO_MEMORY, "no memory")
                       : read_handle(hip, handle, bytes, &theirs);

    status = status ? status : map_import(hip, &theirs, handle->fd, mapped);
    if (status != IRIS_OK) {
        free(mapped);
        return status;
    }
    mapped->bytes = hip->params.vmem ? hip->heap.bytes : bytes;
    mapped->next = hip->imports;
    hip->imports = mapped;
    *base_p = mapped->base;
    return IRIS_OK;
}

static void unimport_heap(struct iris_backend *backend, void *base,
                          size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_import **link = &hip->imports, *mapped;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    (void)bytes;
    while (*link != NULL && (*link)->base != base) {
        link = &(*link)->next;
    }
    mapped = *link;
    if (mapped == NULL) { /* not one of ours */
        return;
    }
    *link = mapped->next;
    if (mapped->local) {
        iris_i_hip_import_local(-1);
    } else if (hip->params.vmem) {
        free_mapping(hip, &mapped->memory);
    } else if (!iris_i_hip_any_stuck()) {
        (void)hipIpcCloseMemHandle(mapped->memory.ptr);
    }
    free(mapped);
}

static iris_status_t pin_memory(struct iris_backend *backend, size_t bytes,
                                struct iris_pinned *pinned_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct iris_pinned pinned = {.bytes = bytes};
    void *device = NULL;
    hipError_t error = iris_i_hip_pin(hip, bytes, &pinned.host);

    error = error ? error : hipHostGetDevicePointer(&device, pinned.host, 0);
    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error, "no %zu bytes of pinned memory",
                               bytes);
    }
    memset(pinned.host, 0, bytes);
    pinned.device = (uint64_t)(uintptr_t)device;
    *pinned_p = pinned;
    return IRIS_OK;
}

static void unpin_memory(struct iris_backend *backend,
                         struct iris_pinned *pinned)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    const struct hip_memory memory = {
        .kind = HIP_PINNED, .ptr = pinned->host, .bytes = pinned->bytes};

    iris_i_hip_free_later(hip, &memory);
}

#define HEAP_SLOTS                                                        \
    .alloc = alloc_heap, .free = free_heap, .check_access = check_access, \
    .export_heap = export_heap, .import_heap = import_heap,               \
    .unimport_heap = unimport_heap, .pin = pin_memory, .unpin = unpin_memory
const struct iris_memory_ops iris_i_hip_pool_ops = {
    HEAP_SLOTS,
    IRIS_ALL_COMMITTED_SLOTS,
    IRIS_NO_RANGE_SLOTS,
};

const struct iris_memory_ops iris_i_hip_vmem_ops = {
    HEAP_SLOTS,
    .commit = commit_range,
    .decommit = decommit_range,
    .export_range = export_range,
    .import_range = import_range,
    .hold_external = hold_external,
    .release_external = release_external,
    .map_external = map_external,
};
#undef HEAP_SLOTS
