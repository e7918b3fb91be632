/* SPDX-License-Identifier: MIT
 *
 * Heaps as addresses that get memory when it is needed, by the runtime's
 * virtual memory calls. Each piece of memory is one handle, which a descriptor
 * brings to other processes; so is external memory, which is mapped behind the
 * heap.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <iris/heap.h>

#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* Each piece costs every process a mapping, and while it travels a descriptor:
 * a heap is made of this many at most. */
#define MOST_PIECES 128

static hipMemAllocationProp properties(const struct hip_backend *hip)
{
    hipMemAllocationProp prop;

    memset(&prop, 0, sizeof prop);
    /* Caches must not keep what other devices change. */
#if !IRIS_HIP_NVIDIA && HAVE_DECL_HIPMEMALLOCATIONTYPEUNCACHED
    prop.type = hipMemAllocationTypeUncached;
#else
    prop.type = hipMemAllocationTypePinned;
#endif
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

static struct hip_range *find(const struct hip_backend *hip, const void *at)
{
    struct hip_range *range = hip->vmem.ranges;

    while (range != NULL && range->at != at) {
        range = range->next;
    }
    return range;
}

hipError_t iris_i_hip_range_map(struct hip_backend *hip,
                                const struct hip_range *what, int num_devices)
{
    struct hip_range *range = malloc(sizeof *range);
    hipError_t error = range == NULL ? hipErrorOutOfMemory : hipSuccess;

    if (error == hipSuccess) {
        *range = *what;
        /* What was unmapped here may not be so yet. */
        (void)iris_i_hip_free_deferred(hip->device, range->at, range->bytes);
        error = hipMemMap(range->at, range->bytes, 0, range->handle, 0);
    }
    if (error == hipSuccess) {
        error = hipMemSetAccess(range->at, range->bytes, hip->vmem.access,
                                (size_t)num_devices);
        if (error != hipSuccess) {
            (void)hipMemUnmap(range->at, range->bytes);
        }
    }
    if (error != hipSuccess) {
        (void)hipMemRelease(what->handle);
        free(range);
        return error;
    }
    range->next = hip->vmem.ranges;
    hip->vmem.ranges = range;
    return hipSuccess;
}

static void unmap(struct hip_backend *hip, struct hip_range *range)
{
    struct hip_range **link = &hip->vmem.ranges;
    const struct hip_memory memory = {HIP_RANGE, range->at, range->bytes,
                                      range->handle};

    while (*link != range) {
        link = &(*link)->next;
    }
    *link = range->next;
    iris_i_hip_free_later(hip, &memory);
    free(range);
}

/* ---- Addresses ---- */

static void free_addresses(const struct hip_backend *hip,
                           struct hip_addresses *addresses)
{
    const struct hip_memory memory = {.kind = HIP_ADDRESSES,
                                      .ptr = addresses->raw,
                                      .bytes = addresses->raw_bytes};

    iris_i_hip_free_later(hip, &memory);
    *addresses = (struct hip_addresses){.bytes = 0};
}

/* More than asked for, since runtimes are free to ignore an alignment. */
static hipError_t reserve(const struct hip_backend *hip, size_t bytes,
                          struct hip_addresses *addresses_p)
{
    size_t granularity = hip->vmem.granularity;
    size_t unit =
        granularity < IRIS_ALIGNMENT_MAX ? IRIS_ALIGNMENT_MAX : granularity;
    struct hip_addresses addresses = {.bytes = bytes,
                                      .raw_bytes = bytes + unit};
    hipError_t error = hipMemAddressReserve(&addresses.raw, addresses.raw_bytes,
                                            granularity, NULL, 0);

    if (error == hipSuccess) {
        addresses.base = (char *)round_up((uintptr_t)addresses.raw, unit);
        *addresses_p = addresses;
    }
    return error;
}

void iris_i_hip_vmem_free(struct hip_backend *hip,
                          struct hip_addresses *addresses)
{
    struct hip_range *range = hip->vmem.ranges;

    while (range != NULL) {
        struct hip_range *next = range->next;

        if ((size_t)(range->at - addresses->base) < addresses->bytes) {
            unmap(hip, range);
        }
        range = next;
    }
    free_addresses(hip, addresses);
}

/* ---- Heaps ---- */

iris_status_t iris_i_hip_vmem_alloc(struct hip_backend *hip, size_t bytes,
                                    struct iris_heap_region *region_p)
{
    struct hip_addresses *addresses = &hip->vmem.addresses;
    size_t heap_bytes = round_up(bytes, hip->info.page_bytes);
    hipError_t error = reserve(hip, 2 * heap_bytes, addresses);

    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error,
                               "no addresses for a heap of %zu bytes; lower "
                               "IRIS_HEAP_SIZE, or use IRIS_ALLOCATOR=pool",
                               bytes);
    }
    region_p->base = addresses->base;
    region_p->bytes = bytes;
    region_p->window = heap_bytes;
    region_p->window_bytes = heap_bytes;
    region_p->commit = IRIS_COMMIT_PRIVATE;
    region_p->guarded = 1;
    region_p->cookie = NULL;
    hip->heap = *region_p;
    hip->heap.bytes = addresses->bytes;
    return IRIS_OK;
}

static iris_status_t commit(struct hip_backend *hip, void *at, size_t bytes)
{
    struct hip_range range = {.at = at, .bytes = bytes};
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
    if (error != hipSuccess) {
        (void)hipMemGetInfo(&free_bytes, &total_bytes);
        return iris_i_hip_fail(hip, error,
                               "no %zu bytes more for the heap, where %zu of "
                               "%zu bytes are free; free some, or allocate "
                               "less",
                               bytes, free_bytes, total_bytes);
    }
    status = iris_i_hip_zero(hip, at, bytes);
    if (status != IRIS_OK) {
        unmap(hip, find(hip, at));
    }
    return status;
}

iris_status_t iris_i_hip_commit(struct iris_backend *backend, void *at,
                                size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    return commit(hip, at, bytes);
}

void iris_i_hip_decommit(struct iris_backend *backend, void *at, size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_range *range = find(hip, at);
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);

    (void)bytes;
    if (range != NULL) {
        unmap(hip, range);
    }
}

/* ---- Other processes ---- */

hipError_t iris_i_hip_export_fd(hipMemGenericAllocationHandle_t handle,
                                int *fd_p)
{
    int fd = -1;
    hipError_t error = hipMemExportToShareableHandle(
        &fd, handle, hipMemHandleTypePosixFileDescriptor, 0);

    if (error == hipSuccess) {
        fd = iris_i_fd_above_stdio(fd);
        error = fd < 0 ? hipErrorUnknown : hipSuccess;
    }
    if (error == hipSuccess) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        *fd_p = fd;
    }
    return error;
}

static iris_status_t export_at(struct hip_backend *hip, const void *at,
                               uint64_t *bytes_p, int *fd_p)
{
    const struct hip_range *range = find(hip, at);

    if (range == NULL) {
        return iris_i_hip_refuse(hip, IRIS_ERR_SYSTEM,
                                 "there is no memory at %p to share", at);
    }
    *bytes_p = range->bytes;
    return iris_i_hip_fail(hip, iris_i_hip_export_fd(range->handle, fd_p),
                           "%zu bytes of the heap cannot be shared with other "
                           "processes; are there too many open descriptors "
                           "(ulimit -n)?",
                           range->bytes);
}

/* Maps another process's memory, whose descriptor stays the caller's. */
static iris_status_t import_at(struct hip_backend *hip, void *at,
                               uint64_t bytes, int fd)
{
    struct hip_range range = {.at = at, .bytes = bytes};
    hipError_t error = hipMemImportFromShareableHandle(
        &range.handle, iris_i_hip_os_handle(&fd),
        hipMemHandleTypePosixFileDescriptor);

    error = error ? error : iris_i_hip_range_map(hip, &range, 1);
    return iris_i_hip_fail(hip, error,
                           "%llu bytes of a peer's heap cannot be mapped",
                           (unsigned long long)bytes);
}

/* A range's handle holds its size. */
iris_status_t iris_i_hip_export_range(struct iris_backend *backend, void *at,
                                      struct iris_heap_handle *handle_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    uint64_t bytes = 0;
    int fd = -1;
    iris_status_t status = export_at(hip, at, &bytes, &fd);

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
        return iris_i_hip_refuse(hip, IRIS_ERR_SYSTEM,
                                 "a peer's memory is not %zu bytes, of which a "
                                 "descriptor came",
                                 most);
    }
    return import_at(hip, at, bytes, handle->fd);
}

iris_status_t iris_i_hip_vmem_export(struct hip_backend *hip,
                                     struct hip_handle *handle, int *fd_p)
{
    return find(hip, handle->base) == NULL
               ? IRIS_OK
               : export_at(hip, handle->base, &handle->committed, fd_p);
}

iris_status_t iris_i_hip_vmem_import(struct hip_backend *hip,
                                     const struct hip_handle *theirs, int fd,
                                     struct hip_import *import)
{
    iris_status_t status =
        iris_i_hip_fail(hip, reserve(hip, hip->heap.bytes, &import->addresses),
                        "no addresses for the heap of rank %d; lower "
                        "IRIS_HEAP_SIZE",
                        theirs->rank);

    import->base = import->addresses.base;
    if (status != IRIS_OK || theirs->committed == 0) {
        return status;
    }
    status = theirs->committed > hip->heap.window || fd < 0
                 ? iris_i_hip_refuse(hip, IRIS_ERR_SYSTEM,
                                     "rank %d's heap handle makes no sense",
                                     theirs->rank)
                 : import_at(hip, import->base, theirs->committed, fd);
    if (status != IRIS_OK) {
        free_addresses(hip, &import->addresses);
    }
    return status;
}

/* ---- Opening ---- */

/* Whoever in this process may use the heap: rank threads on other devices
 * address it as we do. */
static iris_status_t find_devices(struct hip_backend *hip)
{
    struct hip_vmem *vmem = &hip->vmem;
    int count = 0, can = 0;

    if (hip->params.ranks_on_device > 1 ||
        hipGetDeviceCount(&count) != hipSuccess) {
        count = 0;
    }
    if (count > HIP_MAX_DEVICES) {
        return iris_i_hip_refuse(hip, IRIS_ERR_LIMIT,
                                 "%d GPUs are more than the %d that "
                                 "IRIS_ALLOCATOR=vmem can give access to; show "
                                 "fewer (%s_VISIBLE_DEVICES), or use "
                                 "IRIS_ALLOCATOR=pool",
                                 count, HIP_MAX_DEVICES,
                                 IRIS_HIP_NVIDIA ? "CUDA" : "HIP");
    }
    for (int device = -1; device < count; device++) {
        hipMemAccessDesc *access = &vmem->access[vmem->num_devices];

        if (device == hip->device ||
            (device >= 0 &&
             (hipDeviceCanAccessPeer(&can, device, hip->device) != hipSuccess ||
              !can))) {
            continue;
        }
        memset(access, 0, sizeof *access);
        access->location.type = hipMemLocationTypeDevice;
        access->location.id = device < 0 ? hip->device : device;
        access->flags = hipMemAccessFlagsProtReadWrite;
        vmem->num_devices++;
    }
    (void)hipGetLastError();
    return IRIS_OK;
}

iris_status_t iris_i_hip_vmem_open(struct hip_backend *hip)
{
    hipMemAllocationProp prop = properties(hip);
    size_t granularity = 0, page;
    hipError_t error = hipMemGetAllocationGranularity(
        &granularity, &prop, hipMemAllocationGranularityRecommended);

    if (error != hipSuccess) {
        return iris_i_hip_fail(hip, error,
                               "no memory is mapped by request; use "
                               "IRIS_ALLOCATOR=pool");
    }
    if (granularity == 0 || (granularity & (granularity - 1)) != 0) {
        return iris_i_hip_refuse(hip, IRIS_ERR_DEVICE,
                                 "memory is mapped in pieces of %zu bytes, "
                                 "which is no power of two; use "
                                 "IRIS_ALLOCATOR=pool",
                                 granularity);
    }
    hip->vmem.granularity = granularity;
    /* The core commits a heap in pieces of no less. */
    page = granularity < IRIS_COMMIT_BYTES ? IRIS_COMMIT_BYTES : granularity;
    while (page < hip->params.heap_bytes / MOST_PIECES) {
        page *= 2;
    }
    hip->info.page_bytes = page;
    return find_devices(hip);
}
