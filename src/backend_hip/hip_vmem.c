/* SPDX-License-Identifier: MIT
 *
 * Heaps as reserved addresses with memory committed on demand, by the runtime's
 * virtual memory calls. Each piece of memory is one handle, and a descriptor
 * transfers it to other processes. So does external memory, which is mapped
 * behind the heap.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <iris/heap.h>

#include <stdlib.h>
#include <string.h>

static hipMemAllocationProp properties(const struct hip_backend *hip)
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
static struct hip_range **find(struct hip_backend *hip, const void *at)
{
    struct hip_range **link = &hip->vmem.ranges;

    while (*link != NULL && (*link)->memory.ptr != at) {
        link = &(*link)->next;
    }
    return link;
}

hipError_t iris_i_hip_range_map(struct hip_backend *hip,
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

static void unmap(struct hip_backend *hip, struct hip_range **link)
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
static hipError_t reserve(const struct hip_backend *hip, size_t bytes,
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

void iris_i_hip_vmem_free(struct hip_backend *hip,
                          const struct hip_memory *memory)
{
    struct hip_range **link = &hip->vmem.ranges;

    while (*link != NULL) {
        uintptr_t at = (uintptr_t)(*link)->memory.ptr;

        if (at - (uintptr_t)memory->ptr < memory->bytes) {
            unmap(hip, link);
        } else {
            link = &(*link)->next;
        }
    }
    iris_i_hip_free_later(hip, memory);
}

/* ---- Heaps ---- */

iris_status_t iris_i_hip_vmem_alloc(struct hip_backend *hip, size_t bytes,
                                    struct iris_heap_region *region_p)
{
    size_t heap_bytes = round_up(bytes, hip->info.page_bytes);
    hipError_t error =
        reserve(hip, 2 * heap_bytes, &hip->heap_memory, &hip->heap.base);

    if (error != hipSuccess) {
        return iris_i_hip_fail(
            hip, error, "no addresses for %zu bytes; lower IRIS_HEAP_SIZE",
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

iris_status_t iris_i_hip_commit(struct iris_backend *backend, void *at,
                                size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct hip_memory range = {HIP_RANGE, at, bytes, 0};
    hipMemAllocationProp prop = properties(hip);
    size_t free_bytes = 0, total_bytes = 0;
    iris_status_t status;
    hipError_t error = hipMemCreate(&range.handle, bytes, &prop, 0);

    if (error == hipErrorOutOfMemory &&
        iris_i_hip_free_deferred(hip->device, NULL, 0)) {
        error = hipMemCreate(&range.handle, bytes, &prop, 0);
    }
    error = error ? error
                  : iris_i_hip_range_map(hip, &range, hip->vmem.num_devices);
    if (error != hipSuccess &&
        iris_i_hip_lacks_descriptors(hip, bytes, &status)) {
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
        unmap(hip, find(hip, at));
    }
    return status;
}

void iris_i_hip_decommit(struct iris_backend *backend, void *at, size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_range **link = find(hip, at);
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    (void)bytes;
    if (*link != NULL) {
        unmap(hip, link);
    }
}

/* ---- Other processes ---- */

iris_status_t iris_i_hip_vmem_export(struct hip_backend *hip, const void *at,
                                     uint64_t *bytes_p, int *fd_p)
{
    const struct hip_range *range = *find(hip, at);
    iris_status_t status;
    hipError_t error;

    if (range == NULL) {
        return IRIS_OK;
    }
    *bytes_p = range->memory.bytes;
    error = iris_i_hip_export_fd(range->memory.handle, fd_p);
    return error != hipSuccess && iris_i_hip_lacks_descriptors(
                                      hip, range->memory.bytes, &status)
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

    error = error ? error : iris_i_hip_range_map(hip, &range, 1);
    return error != hipSuccess &&
                   iris_i_hip_lacks_descriptors(hip, bytes, &status)
               ? status
               : iris_i_hip_fail(hip, error,
                                 "%zu bytes of a peer are not mapped",
                                 (size_t)bytes);
}

/* A range's handle keeps its size. */
iris_status_t iris_i_hip_export_range(struct iris_backend *backend, void *at,
                                      struct iris_heap_handle *handle_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    uint64_t bytes = 0;
    int fd = -1;
    iris_status_t status = iris_i_hip_vmem_export(hip, at, &bytes, &fd);

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

iris_status_t iris_i_hip_import_range(struct iris_backend *backend, void *at,
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

iris_status_t iris_i_hip_vmem_import(struct hip_backend *hip, int rank,
                                     uint64_t committed, int fd,
                                     struct hip_import *import)
{
    iris_status_t status = iris_i_hip_fail(
        hip, reserve(hip, hip->heap.bytes, &import->memory, &import->base),
        "no addresses for rank %d; lower IRIS_HEAP_SIZE", rank);

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
    hipMemAllocationProp prop = properties(hip);
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
    while (page < hip->params.heap_bytes / HIP_MOST_PIECES) {
        page *= 2;
    }
    hip->info.page_bytes = page;
    find_devices(hip);
    return iris_i_hip_choose_type(hip, prop);
}
