/* SPDX-License-Identifier: MIT
 *
 * Heaps as addresses that get memory when it is needed, by the runtime's
 * virtual memory calls. Each piece of memory is one handle, which a descriptor
 * brings to other processes; so is memory of the program's own, which is mapped
 * behind the heap.
 */
#include "config.h"

#include "backend_hip/hip_vmem.h"

#include <iris/heap.h>

#include "heap/heap.h"

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

/* ---- Rooms ---- */

static void free_room(const struct hip_backend *hip, struct hip_room *room)
{
    const struct hip_thing thing = {
        .kind = HIP_ROOM, .ptr = room->raw, .bytes = room->raw_bytes};

    iris_i_hip_discard(hip, &thing);
    *room = (struct hip_room){.bytes = 0};
}

static hipError_t reserve(const struct hip_backend *hip, size_t bytes,
                          size_t alignment, void **raw_p)
{
    hipError_t error = hipMemAddressReserve(raw_p, bytes, alignment, NULL, 0);

    return error == hipErrorOutOfMemory && iris_i_hip_flush(hip)
               ? hipMemAddressReserve(raw_p, bytes, alignment, NULL, 0)
               : error;
}

/* Runtimes are free to ignore the alignment that is asked for. */
static hipError_t make_room(const struct hip_backend *hip,
                            struct hip_room *room, size_t bytes)
{
    size_t alignment = hip->vmem->granularity;
    void *raw = NULL;
    hipError_t error;

    alignment = alignment < IRIS_ALIGNMENT_MAX ? IRIS_ALIGNMENT_MAX : alignment;
    room->raw_bytes = bytes;
    error = reserve(hip, bytes, alignment, &raw);
    if (error == hipSuccess && (uintptr_t)raw % alignment != 0) {
        iris_i_hip_discard(
            hip,
            &(struct hip_thing){.kind = HIP_ROOM, .ptr = raw, .bytes = bytes});
        room->raw_bytes = bytes + alignment;
        error = reserve(hip, room->raw_bytes, alignment, &raw);
    }
    if (error == hipSuccess) {
        room->raw = raw;
        room->bytes = bytes;
        room->base = (char *)raw +
                     (round_up((uintptr_t)raw, alignment) - (uintptr_t)raw);
    }
    return error;
}

static void unmap_room(struct hip_backend *hip, const struct hip_room *room)
{
    struct hip_extent *extent = hip->vmem->extents;

    while (extent != NULL) {
        struct hip_extent *next = extent->next;

        if ((size_t)(extent->at - room->base) < room->bytes) {
            iris_i_hip_extent_unmap(hip, extent);
        }
        extent = next;
    }
}

/* ---- Heaps ---- */

/* Whoever in this process may use the heap: rank threads on other devices
 * address it as we do. */
static iris_status_t find_devices(struct hip_backend *hip)
{
    struct hip_vmem *vmem = hip->vmem;
    int count = 0, can = 0;

    if (hip->params.ranks_on_device > 1 ||
        hipGetDeviceCount(&count) != hipSuccess) {
        (void)hipGetLastError();
        count = 0;
    }
    if (count > HIP_MAX_DEVICES) {
        return iris_i_fail(NULL, IRIS_ERR_LIMIT,
                           "rank %d: %d GPUs are more than the %d that "
                           "IRIS_ALLOCATOR=vmem can give access to; show fewer "
                           "(%s_VISIBLE_DEVICES), or use IRIS_ALLOCATOR=pool",
                           hip->params.rank, count, HIP_MAX_DEVICES,
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

iris_status_t iris_i_hip_vmem_alloc(struct hip_backend *hip, size_t bytes,
                                    struct iris_heap_region *region_p)
{
    struct hip_room *room = &hip->vmem->room;
    size_t heap_bytes = round_up(bytes, hip->info.page_bytes);
    hipError_t error = make_room(hip, room, 2 * heap_bytes);

    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d gets no addresses for a heap of %zu "
                               "bytes on GPU %d; lower IRIS_HEAP_SIZE, or use "
                               "IRIS_ALLOCATOR=pool",
                               hip->params.rank, bytes, hip->device);
    }
    region_p->base = room->base;
    region_p->bytes = bytes;
    region_p->commit = IRIS_COMMIT_PRIVATE;
    region_p->guarded = 1;
    region_p->window = heap_bytes;
    region_p->window_bytes = heap_bytes;
    region_p->cookie = NULL;
    hip->heap = *region_p;
    hip->heap.bytes = room->bytes;
    return IRIS_OK;
}

void iris_i_hip_vmem_free(struct hip_backend *hip)
{
    if (hip->vmem != NULL) {
        unmap_room(hip, &hip->vmem->room);
        free_room(hip, &hip->vmem->room);
    }
}

static iris_status_t back_here(struct hip_backend *hip, void *at, size_t bytes)
{
    struct hip_extent extent = {.at = at, .bytes = bytes};
    hipMemAllocationProp prop = properties(hip);
    size_t free_bytes = 0, total_bytes = 0;
    iris_status_t status;
    hipError_t error = hipMemCreate(&extent.handle, bytes, &prop, 0);

    if (error == hipErrorOutOfMemory && iris_i_hip_flush(hip)) {
        error = hipMemCreate(&extent.handle, bytes, &prop, 0);
    }
    if (error == hipSuccess) {
        error = iris_i_hip_extent_map(hip, &extent, hip->vmem->num_devices);
        if (error != hipSuccess) {
            (void)hipMemRelease(extent.handle);
        }
    }
    if (error != hipSuccess) {
        if (hipMemGetInfo(&free_bytes, &total_bytes) != hipSuccess) {
            (void)hipGetLastError();
        }
        return iris_i_hip_fail(error,
                               "rank %d: no %zu bytes more for the heap on GPU "
                               "%d, where %zu of %zu bytes are free; free "
                               "some, or allocate less",
                               hip->params.rank, bytes, hip->device, free_bytes,
                               total_bytes);
    }
    status = iris_i_hip_zero(hip, at, bytes);
    if (status != IRIS_OK) {
        iris_i_hip_extent_unmap(hip, iris_i_hip_extent_find(hip, at));
    }
    return status;
}

static iris_status_t vmem_back(struct iris_backend *backend, void *at,
                               size_t bytes)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t status = back_here(hip, at, bytes);

    iris_i_hip_leave(hip, before);
    return status;
}

iris_status_t iris_i_hip_vmem_export(struct hip_backend *hip,
                                     struct hip_handle *handle, int *fd_p)
{
    if (iris_i_hip_extent_find(hip, handle->base) == NULL) {
        return IRIS_OK;
    }
    return iris_i_hip_extent_share(hip, handle->base, &handle->backed, fd_p);
}

iris_status_t iris_i_hip_vmem_import(struct hip_backend *hip,
                                     const struct hip_handle *theirs, int fd,
                                     struct hip_import *import)
{
    hipError_t error = make_room(hip, &import->room, hip->heap.bytes);
    iris_status_t status = IRIS_OK;

    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d gets no addresses for the heap of "
                               "rank %d; lower IRIS_HEAP_SIZE",
                               hip->params.rank, theirs->rank);
    }
    import->base = import->room.base;
    if (theirs->backed > 0) {
        status = theirs->backed > hip->heap.window || fd < 0
                     ? iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                                   "rank %d's heap handle makes no sense",
                                   theirs->rank)
                     : iris_i_hip_extent_import(hip, import->base,
                                                theirs->backed, fd);
    }
    if (status != IRIS_OK) {
        free_room(hip, &import->room);
    }
    return status;
}

void iris_i_hip_vmem_unimport(struct hip_backend *hip,
                              struct hip_import *import)
{
    unmap_room(hip, &import->room);
    free_room(hip, &import->room);
}

static void vmem_decommit(struct iris_backend *backend, void *at, size_t bytes)
{
    (void)bytes;
    iris_i_hip_vmem_unmap(backend, at);
}

static const struct iris_memory_ops memory = {
    .alloc = iris_i_hip_heap_alloc,
    .free = iris_i_hip_heap_free,
    .export = iris_i_hip_heap_export,
    .import = iris_i_hip_heap_import,
    .unimport = iris_i_hip_heap_unimport,
    .commit = vmem_back,
    .decommit = vmem_decommit,
    .export_range = iris_i_hip_vmem_share,
    .import_range = iris_i_hip_vmem_map,
    .hold_external = iris_i_hip_vmem_find,
    .release_external = iris_i_hip_vmem_drop,
    .map_external = iris_i_hip_vmem_adopt,
};

/* ---- Opening ---- */

iris_status_t iris_i_hip_vmem_open(struct hip_backend *hip)
{
    hipMemAllocationProp prop = properties(hip);
    size_t granularity = 0, page;
    hipError_t error = hipMemGetAllocationGranularity(
        &granularity, &prop, hipMemAllocationGranularityRecommended);

    if (error == hipSuccess &&
        (granularity == 0 || (granularity & (granularity - 1)) != 0)) {
        return iris_i_fail(NULL, IRIS_ERR_DEVICE,
                           "rank %d: GPU %d maps memory in pieces of %zu "
                           "bytes, which is no power of two; use "
                           "IRIS_ALLOCATOR=pool",
                           hip->params.rank, hip->device, granularity);
    }
    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d: GPU %d does not map memory by "
                               "request; use IRIS_ALLOCATOR=pool",
                               hip->params.rank, hip->device);
    }
    hip->vmem = calloc(1, sizeof *hip->vmem);
    if (hip->vmem == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    hip->vmem->granularity = granularity;
    /* The core puts memory behind a heap in pieces of no less. */
    page = granularity < IRIS_COMMIT_BYTES ? IRIS_COMMIT_BYTES : granularity;
    while (page < hip->params.heap_bytes / MOST_PIECES) {
        page *= 2;
    }
    hip->info.page_bytes = page;
    hip->base.memory = &memory;
    return find_devices(hip);
}

void iris_i_hip_vmem_close(struct hip_backend *hip)
{
    free(hip->vmem);
}
