/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's memory behind handles: unnamed files, which travel as
 * descriptors.
 */
#include "config.h"

#include "fake_vmem.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* hipMemAllocationTypeUncached, of HIP since 7. */
#define UNCACHED ((hipMemAllocationType)0x40000000)

pthread_mutex_t fake_vmem_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_handle *handles; /* under the lock */

size_t fake_granularity(void)
{
    return (size_t)fake_setting("FAKEHIP_GRANULARITY", (long long)LARGE_PAGE);
}

int fake_handle_count(void)
{
    int count = 0;

    for (const struct fake_handle *one = handles; one != NULL;
         one = one->next) {
        count++;
    }
    return count;
}

struct fake_handle *fake_handle_find(hipMemGenericAllocationHandle_t handle)
{
    struct fake_handle *one = handles;

    while (one != NULL && (void *)one != (void *)handle) {
        one = one->next;
    }
    return one;
}

void fake_handle_put(struct fake_handle *handle)
{
    struct fake_handle **link = &handles;

    if (--handle->refs > 0) {
        return;
    }
    while (*link != handle) {
        link = &(*link)->next;
    }
    *link = handle->next;
    close(handle->fd);
    if (!handle->imported) {
        fake_memory_give(handle->prop.location.id, handle->bytes);
    }
    free(handle);
}

/* Adds a copy. */
static hipError_t add_handle(const struct fake_handle *what,
                             hipMemGenericAllocationHandle_t *handle_p)
{
    struct fake_handle *one = malloc(sizeof *one);

    if (one == NULL) {
        return hipErrorOutOfMemory;
    }
    *one = *what;
    one->refs = 1;
    pthread_mutex_lock(&fake_vmem_lock);
    one->next = handles;
    handles = one;
    pthread_mutex_unlock(&fake_vmem_lock);
    *handle_p = (hipMemGenericAllocationHandle_t)(void *)one;
    return hipSuccess;
}

static bool is_device(const hipMemAllocationProp *prop)
{
    int count = (int)fake_setting("FAKEHIP_DEVICES", 8);

    return (prop->type == hipMemAllocationTypePinned ||
            prop->type == UNCACHED) &&
           prop->location.type == hipMemLocationTypeDevice &&
           prop->location.id >= 0 && prop->location.id < count;
}

FAKE_EXPORT hipError_t hipMemGetAllocationGranularity(
    size_t *bytes_p, const hipMemAllocationProp *prop,
    hipMemAllocationGranularity_flags option)
{
    hipError_t error = fake_enter(__func__);

    (void)option;
    *bytes_p = fake_granularity();
    if (error == hipSuccess &&
        (!is_device(prop) ||
         (prop->type == UNCACHED && (fake_quirk("no-uncached") ||
                                     fake_quirk("no-uncached-granularity"))))) {
        error = hipErrorInvalidValue;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle_p,
                                    size_t bytes,
                                    const hipMemAllocationProp *prop,
                                    unsigned long long flags)
{
    hipError_t error = fake_enter(__func__);
    struct fake_handle handle = {.bytes = bytes};

    if (error == hipSuccess && (bytes == 0 || bytes % fake_granularity() != 0 ||
                                flags != 0 || !is_device(prop))) {
        error = hipErrorInvalidValue;
    }
    if (error == hipSuccess && prop->type == UNCACHED &&
        fake_quirk("no-uncached")) {
        error = hipErrorInvalidValue;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    handle.prop = *prop;
    if (!fake_memory_take(prop->location.id, bytes)) {
        return fake_leave(hipErrorOutOfMemory);
    }
    error = fake_memory_create(bytes, &handle.fd);
    if (error == hipSuccess) {
        error = add_handle(&handle, handle_p);
        if (error != hipSuccess) {
            close(handle.fd);
        }
    }
    if (error != hipSuccess) {
        fake_memory_give(prop->location.id, bytes);
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipMemRelease(hipMemGenericAllocationHandle_t handle)
{
    hipError_t error = fake_enter(__func__);
    struct fake_handle *one;

    pthread_mutex_lock(&fake_vmem_lock);
    one = fake_handle_find(handle);
    if (one != NULL) {
        fake_handle_put(one);
    }
    pthread_mutex_unlock(&fake_vmem_lock);
    return fake_leave(one == NULL ? hipErrorInvalidValue : error);
}

FAKE_EXPORT hipError_t hipMemRetainAllocationHandle(
    hipMemGenericAllocationHandle_t *handle_p, void *ptr)
{
    hipError_t error = fake_enter(__func__);
    struct fake_handle *one;

    fake_need_version(71400000);
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&fake_vmem_lock);
    one = fake_handle_at(ptr);
    if (one != NULL) {
        one->refs++;
        *handle_p = (hipMemGenericAllocationHandle_t)(void *)one;
    }
    pthread_mutex_unlock(&fake_vmem_lock);
    return fake_leave(one == NULL ? hipErrorInvalidValue : hipSuccess);
}

FAKE_EXPORT hipError_t hipMemGetAllocationPropertiesFromHandle(
    hipMemAllocationProp *prop_p, hipMemGenericAllocationHandle_t handle)
{
    hipError_t error = fake_enter(__func__);
    struct fake_handle *one;

    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&fake_vmem_lock);
    one = fake_handle_find(handle);
    if (one != NULL) {
        *prop_p = one->prop;
    }
    pthread_mutex_unlock(&fake_vmem_lock);
    return fake_leave(one == NULL ? hipErrorInvalidValue : hipSuccess);
}

/* ---- Descriptors ---- */

FAKE_EXPORT hipError_t hipMemExportToShareableHandle(
    void *shareable, hipMemGenericAllocationHandle_t handle,
    hipMemAllocationHandleType type, unsigned long long flags)
{
    hipError_t error = fake_enter(__func__);
    struct fake_handle *one;
    int fd = -1;

    if (error == hipSuccess &&
        (type != hipMemHandleTypePosixFileDescriptor || flags != 0)) {
        error = hipErrorInvalidValue;
    }
    if (error == hipSuccess && fake_quirk("export-not-ready")) {
        error = hipErrorNotReady;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&fake_vmem_lock);
    one = fake_handle_find(handle);
    if (one == NULL || one->prop.requestedHandleType != type) {
        error = hipErrorInvalidValue;
    } else {
        fd = fake_quirk("one-descriptor") ? one->fd : dup(one->fd);
        error = fd < 0 ? hipErrorOutOfMemory : hipSuccess;
    }
    pthread_mutex_unlock(&fake_vmem_lock);
    if (error == hipSuccess) {
        *(int *)shareable = fd;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipMemImportFromShareableHandle(
    hipMemGenericAllocationHandle_t *handle_p, void *os_handle,
    hipMemAllocationHandleType type)
{
    hipError_t error = fake_enter(__func__);
    int version = fake_version();
    struct fake_handle handle = {.imported = true};
    struct stat st;

    if (error == hipSuccess && type != hipMemHandleTypePosixFileDescriptor) {
        error = hipErrorInvalidValue;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    handle.fd =
        version < 70100000 ? *(int *)os_handle : (int)(uintptr_t)os_handle;
    if (fstat(handle.fd, &st) != 0 || st.st_size == 0 ||
        (size_t)st.st_size % fake_granularity() != 0) {
        return fake_leave(hipErrorInvalidValue);
    }
    handle.bytes = (size_t)st.st_size;
    handle.prop.type = hipMemAllocationTypePinned;
    handle.prop.requestedHandleType = type;
    handle.prop.location.type = hipMemLocationTypeDevice;
    handle.prop.location.id = fake_device();
    if (fake_quirk("wrong-memory")) {
        error = fake_memory_create(handle.bytes, &handle.fd);
    } else {
        handle.fd = fcntl(handle.fd, F_DUPFD_CLOEXEC, 0);
    }
    if (handle.fd < 0) {
        return fake_leave(hipErrorOutOfMemory);
    }
    error = add_handle(&handle, handle_p);
    if (error != hipSuccess) {
        close(handle.fd);
    }
    return fake_leave(error);
}
