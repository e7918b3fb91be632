/* SPDX-License-Identifier: MIT
 *
 * Memory of the program's own, as far as it can be mapped behind the heap: made
 * by the runtime's virtual memory calls, to be exported.
 */
#include "config.h"

#include "backend_hip/hip_vmem.h"

#include <string.h>
#include <unistd.h>

/* Whether this is memory as ours: of the same device, to be exported. */
static const char *unfit(const struct hip_backend *hip,
                         hipMemGenericAllocationHandle_t handle)
{
    hipMemAllocationProp prop;
    int fd;

    if (hipMemGetAllocationPropertiesFromHandle(&prop, handle) != hipSuccess) {
        return "the runtime does not tell what it is";
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

/* Runtimes call it an error, and tools report it, to be asked for the handle of
 * memory of the host. */
static bool is_device(const struct hip_backend *hip, const void *ptr)
{
    hipPointerAttribute_t what;

    memset(&what, 0, sizeof what);
    return hipPointerGetAttributes(&what, ptr) == hipSuccess &&
           what.devicePointer != NULL && what.device == hip->device;
}

#if !IRIS_HIP_NVIDIA
/* HIP before this crashes when it is asked for the handle of memory that its
 * virtual memory calls did not make (rocm-systems #5807), and gives the handle
 * of other memory without a hold on it (#2696). */
#define RETAINS 71400000
#endif

static const char *find_here(struct hip_backend *hip, void *ptr, size_t bytes,
                             struct iris_external *foreign)
{
    size_t granularity = hip->vmem->granularity, whole = 0;
    hipMemGenericAllocationHandle_t handle;
    hipDeviceptr_t start = 0;
    const char *why = NULL;

    if (!is_device(hip, ptr)) {
        return "it is not memory of this rank's GPU";
    }
#if !IRIS_HIP_NVIDIA
    if (iris_i_hip_version() < RETAINS) {
        return "HIP before 7.14 does not hold memory of the program's safely";
    }
#endif
    if (hipMemRetainAllocationHandle(&handle, ptr) != hipSuccess) {
        return "the runtime's virtual memory calls did not make it";
    }
    if (hipMemGetAddressRange(&start, &whole, (hipDeviceptr_t)ptr) !=
        hipSuccess) {
        why = "the runtime does not tell where it begins";
    } else {
        foreign->bytes = whole;
        foreign->offset = (size_t)((char *)ptr - (char *)start);
        why = foreign->offset >= whole || bytes > whole - foreign->offset
                  ? "it is not mapped in one piece"
              : whole % granularity != 0 ? "its size is not one to map"
                                         : unfit(hip, handle);
    }
    if (why != NULL) {
        (void)hipMemRelease(handle);
    }
    foreign->cookie = (void *)(uintptr_t)handle;
    return why;
}

static hipMemGenericAllocationHandle_t
handle_of(const struct iris_external *foreign)
{
    return (hipMemGenericAllocationHandle_t)(uintptr_t)foreign->cookie;
}

iris_status_t iris_i_hip_vmem_find(struct iris_backend *backend,
                                   const void *ptr, size_t bytes,
                                   struct iris_external *foreign_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);
    struct iris_external foreign;
    const char *why;

    why = find_here(hip, (void *)(uintptr_t)ptr, bytes, &foreign);
    (void)hipGetLastError();
    iris_i_hip_leave(hip, before);
    if (why != NULL) {
        return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                           "memory at %p cannot be shared: %s", ptr, why);
    }
    *foreign_p = foreign;
    return IRIS_OK;
}

void iris_i_hip_vmem_drop(struct iris_backend *backend,
                          struct iris_external *foreign)
{
    const struct hip_backend *hip = (const struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);

    /* The program has the memory, so that nothing waits for this. */
    if (foreign->cookie != NULL &&
        hipMemRelease(handle_of(foreign)) != hipSuccess) {
        (void)hipGetLastError();
    }
    iris_i_hip_leave(hip, before);
    foreign->cookie = NULL;
}

/* From here on the handle is the extent's: the program's own hold and mapping
 * may go. */
iris_status_t iris_i_hip_vmem_adopt(struct iris_backend *backend, void *at,
                                    struct iris_external *foreign)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_extent extent = {
        .at = at, .bytes = foreign->bytes, .handle = handle_of(foreign)};
    struct hip_before before = iris_i_hip_enter(hip);
    hipError_t error =
        iris_i_hip_extent_map(hip, &extent, hip->vmem->num_devices);

    iris_i_hip_leave(hip, before);
    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d cannot map %zu bytes of the program's "
                               "own behind its heap on GPU %d",
                               hip->params.rank, foreign->bytes, hip->device);
    }
    foreign->cookie = NULL;
    return IRIS_OK;
}
