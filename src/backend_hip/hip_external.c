/* SPDX-License-Identifier: MIT
 *
 * External memory: the program's memory, mapped behind the heap. That is
 * possible if the runtime's virtual memory calls made it, for export.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <string.h>
#include <unistd.h>

/* Asks first: runtimes treat the query for a handle of host memory as an error,
 * and tools report it. */
static bool is_device(const struct hip_backend *hip, const void *ptr)
{
    hipPointerAttribute_t what;

    memset(&what, 0, sizeof what);
    return hipPointerGetAttributes(&what, ptr) == hipSuccess &&
           what.devicePointer != NULL && what.device == hip->device;
}

/* The reason why the handle's whole allocation cannot be mapped or exported.
 * NULL: it can, and the other outputs are set. */
static const char *unfit(const struct hip_backend *hip, void *ptr, size_t bytes,
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
        iris_i_hip_export_fd(handle, &fd) != hipSuccess) {
        return "it was not made to be exported as a descriptor";
    }
    close(fd);
    return NULL;
}

static const char *hold(const struct hip_backend *hip, void *ptr, size_t bytes,
                        struct iris_external *external)
{
    hipMemGenericAllocationHandle_t handle;
    const char *why = is_device(hip, ptr)
                          ? iris_i_hip_cannot_retain()
                          : "it is not memory of this rank's GPU";

    if (why != NULL) {
        return why;
    }
    if (hipMemRetainAllocationHandle(&handle, ptr) != hipSuccess) {
        return "the runtime's virtual memory calls did not make it";
    }
    why = unfit(hip, ptr, bytes, handle, external);
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

iris_status_t iris_i_hip_hold_external(struct iris_backend *backend,
                                       const void *ptr, size_t bytes,
                                       struct iris_external *external_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct iris_external external;
    const char *why = hold(hip, (void *)(uintptr_t)ptr, bytes, &external);

    if (why != NULL) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "memory at %p cannot be shared: %s", ptr, why);
    }
    *external_p = external;
    return IRIS_OK;
}

/* The program still has the memory, so this waits for nothing. */
void iris_i_hip_release_external(struct iris_backend *backend,
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
iris_status_t iris_i_hip_map_external(struct iris_backend *backend, void *at,
                                      struct iris_external *external)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    const struct hip_memory range = {HIP_RANGE, at, external->bytes,
                                     handle_of(external)};
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    hipError_t error = iris_i_hip_range_map(hip, &range, hip->vmem.num_devices);

    external->cookie = NULL;
    return iris_i_hip_fail(hip, error, "the program's %zu bytes are not mapped",
                           external->bytes);
}
