/* SPDX-License-Identifier: MIT
 *
 * Memory at addresses: handles of the runtime that are mapped there, and their
 * way into other processes as descriptors.
 */
#include "config.h"

#include "backend_hip/hip_vmem.h"

#include "base/fd.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

/* HIP before this took the address of a descriptor to import, since then it
 * takes the descriptor, as CUDA does. */
#define IMPORTS_BY_VALUE 70100000

/* What share says of memory, its descriptor apart. */
struct vmem_handle {
    uint64_t bytes;
};

struct hip_extent *iris_i_hip_extent_find(const struct hip_backend *hip,
                                          const void *at)
{
    struct hip_extent *extent = hip->vmem->extents;

    while (extent != NULL && extent->at != at) {
        extent = extent->next;
    }
    return extent;
}

/* Maps memory for some devices. The handle is the extent's if that succeeds. */
hipError_t iris_i_hip_extent_map(struct hip_backend *hip,
                                 const struct hip_extent *what, int num_devices)
{
    struct hip_extent *extent = malloc(sizeof *extent);
    hipError_t error;

    if (extent == NULL) {
        return hipErrorOutOfMemory;
    }
    *extent = *what;
    /* What was unmapped here may not be so yet. */
    iris_i_hip_flush_at(hip, extent->at, extent->bytes);
    error = hipMemMap(extent->at, extent->bytes, 0, extent->handle, 0);
    if (error != hipSuccess) {
        free(extent);
        return error;
    }
    error = hipMemSetAccess(extent->at, extent->bytes, hip->vmem->access,
                            (size_t)num_devices);
    if (error != hipSuccess) {
        (void)hipMemUnmap(extent->at, extent->bytes);
        free(extent);
        return error;
    }
    extent->next = hip->vmem->extents;
    hip->vmem->extents = extent;
    return hipSuccess;
}

void iris_i_hip_extent_unmap(struct hip_backend *hip, struct hip_extent *extent)
{
    struct hip_extent **link = &hip->vmem->extents;
    const struct hip_thing thing = {.kind = HIP_EXTENT,
                                    .ptr = extent->at,
                                    .bytes = extent->bytes,
                                    .handle = extent->handle};

    while (*link != extent) {
        link = &(*link)->next;
    }
    *link = extent->next;
    iris_i_hip_discard(hip, &thing);
    free(extent);
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

#if !IRIS_HIP_NVIDIA
int iris_i_hip_version(void)
{
    int version = 0;

    return hipRuntimeGetVersion(&version) == hipSuccess ? version : 0;
}
#endif

static hipError_t import_fd(int fd, hipMemGenericAllocationHandle_t *handle_p)
{
    void *os_handle = (void *)(uintptr_t)fd;

#if !IRIS_HIP_NVIDIA
    int version = iris_i_hip_version();

    if (version != 0 && version < IMPORTS_BY_VALUE) {
        os_handle = &fd;
    }
#endif
    return hipMemImportFromShareableHandle(handle_p, os_handle,
                                           hipMemHandleTypePosixFileDescriptor);
}

iris_status_t iris_i_hip_extent_share(struct hip_backend *hip, const void *at,
                                      uint64_t *bytes_p, int *fd_p)
{
    const struct hip_extent *extent = iris_i_hip_extent_find(hip, at);
    hipError_t error;

    if (extent == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "rank %d has no memory at %p to share",
                           hip->params.rank, at);
    }
    error = iris_i_hip_export_fd(extent->handle, fd_p);
    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d cannot share %zu bytes of its heap "
                               "with other processes; are there too many open "
                               "descriptors (ulimit -n)?",
                               hip->params.rank, extent->bytes);
    }
    *bytes_p = extent->bytes;
    return IRIS_OK;
}

iris_status_t iris_i_hip_extent_import(struct hip_backend *hip, void *at,
                                       uint64_t bytes, int fd)
{
    struct hip_extent extent = {.at = at, .bytes = bytes};
    hipError_t error = import_fd(fd, &extent.handle);

    if (error == hipSuccess) {
        error = iris_i_hip_extent_map(hip, &extent, 1);
        if (error != hipSuccess) {
            (void)hipMemRelease(extent.handle);
        }
    }
    return error == hipSuccess
               ? IRIS_OK
               : iris_i_hip_fail(error,
                                 "rank %d cannot map %llu bytes of a peer's "
                                 "heap on GPU %d",
                                 hip->params.rank, (unsigned long long)bytes,
                                 hip->device);
}

iris_status_t iris_i_hip_vmem_share(struct iris_backend *backend, void *at,
                                    struct iris_heap_handle *handle_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);
    int fd = -1;
    struct vmem_handle handle = {0};
    iris_status_t status = iris_i_hip_extent_share(hip, at, &handle.bytes, &fd);

    iris_i_hip_leave(hip, before);
    if (status == IRIS_OK) {
        handle_p->fd = fd;
        handle_p->num_bytes = sizeof handle;
        memcpy(handle_p->bytes, &handle, sizeof handle);
    }
    return status;
}

iris_status_t iris_i_hip_vmem_map(struct iris_backend *backend, void *at,
                                  size_t most,
                                  const struct iris_heap_handle *handle)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct vmem_handle theirs;
    iris_status_t status;
    struct hip_before before;

    memcpy(&theirs, handle->bytes, sizeof theirs);
    if (handle->num_bytes != sizeof theirs || handle->fd < 0 ||
        theirs.bytes > most || theirs.bytes % hip->vmem->granularity != 0) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "rank %d: a peer's memory is not %zu bytes, of "
                           "which a descriptor came",
                           hip->params.rank, most);
    }
    before = iris_i_hip_enter(hip);
    status = iris_i_hip_extent_import(hip, at, theirs.bytes, handle->fd);
    iris_i_hip_leave(hip, before);
    return status;
}

void iris_i_hip_vmem_unmap(struct iris_backend *backend, void *at)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_extent *extent = iris_i_hip_extent_find(hip, at);
    struct hip_before before;

    if (extent != NULL) {
        before = iris_i_hip_enter(hip);
        iris_i_hip_extent_unmap(hip, extent);
        iris_i_hip_leave(hip, before);
    }
}
