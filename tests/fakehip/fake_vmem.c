/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's virtual memory calls: reserved addresses, memory as
 * unnamed files behind handles, and mappings of the one at the other. What HIP
 * does not promise to forgive is refused here.
 */
#include "config.h"

#include "fake.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define LARGE_PAGE ((size_t)2 << 20)
/* Addresses begin at a multiple of this; that of larger ones is by chance. */
#define ROOM_ALIGNMENT ((size_t)65536)

struct fake_handle {
    struct fake_handle *next;
    int refs; /* of the program's, and one for each mapping */
    int fd;
    size_t bytes;
    bool imported;
    hipMemAllocationProp prop;
};

struct fake_room {
    struct fake_room *next;
    char *start;
    size_t bytes;
    int mappings;
};

struct fake_mapping {
    struct fake_mapping *next;
    char *at;
    size_t bytes;
    struct fake_handle *handle;
    struct fake_room *room;
};

/* Of mappings. */
static size_t granularity(void)
{
    return (size_t)fake_setting("FAKEHIP_GRANULARITY", (long long)LARGE_PAGE);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_handle *handles; /* all below under the lock */
static struct fake_room *rooms;
static struct fake_mapping *mappings;
static unsigned num_rooms;

void fake_count_vmem(struct fakehip_counts *counts_p)
{
    pthread_mutex_lock(&lock);
    for (const struct fake_handle *h = handles; h != NULL; h = h->next) {
        counts_p->handles++;
    }
    for (const struct fake_room *room = rooms; room != NULL;
         room = room->next) {
        counts_p->rooms++;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- Addresses ---- */

FAKE_EXPORT hipError_t hipMemAddressReserve(void **ptr_p, size_t bytes,
                                            size_t alignment, void *hint,
                                            unsigned long long flags)
{
    hipError_t error = fake_enter(__func__);
    struct fake_room *room;
    char *start;
    size_t skip, step = granularity();

    if (error == hipSuccess &&
        (bytes == 0 || bytes % step != 0 || hint != NULL || flags != 0 ||
         (alignment & (alignment - 1)) != 0)) {
        error = hipErrorInvalidValue;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    room = calloc(1, sizeof *room);
    start = mmap(NULL, bytes + 2 * LARGE_PAGE, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == NULL || start == MAP_FAILED) {
        free(room);
        return fake_leave(hipErrorOutOfMemory);
    }
    pthread_mutex_lock(&lock);
    skip = (LARGE_PAGE - (uintptr_t)start % LARGE_PAGE) % LARGE_PAGE;
    skip += num_rooms++ % 2 == 0    ? 0
            : step < ROOM_ALIGNMENT ? step
                                    : ROOM_ALIGNMENT;
    room->start = start + skip;
    room->bytes = bytes;
    room->next = rooms;
    rooms = room;
    pthread_mutex_unlock(&lock);
    if (skip > 0) {
        munmap(start, skip);
    }
    munmap(room->start + bytes, 2 * LARGE_PAGE - skip);
    *ptr_p = room->start;
    return hipSuccess;
}

FAKE_EXPORT hipError_t hipMemAddressFree(void *ptr, size_t bytes)
{
    hipError_t error = fake_enter(__func__);
    struct fake_room **link = &rooms;
    struct fake_room *room;

    pthread_mutex_lock(&lock);
    while (*link != NULL && (*link)->start != ptr) {
        link = &(*link)->next;
    }
    room = *link;
    if (room == NULL || room->bytes != bytes || room->mappings != 0) {
        pthread_mutex_unlock(&lock);
        return fake_leave(hipErrorInvalidValue);
    }
    *link = room->next;
    pthread_mutex_unlock(&lock);
    munmap(ptr, bytes);
    free(room);
    return fake_leave(error);
}

/* ---- Memory ---- */

/* The handle if it is one; the lock is held. */
static struct fake_handle *find_handle(hipMemGenericAllocationHandle_t handle)
{
    struct fake_handle *one = handles;

    while (one != NULL && (void *)one != (void *)handle) {
        one = one->next;
    }
    return one;
}

/* Drops a reference; the lock is held. */
static void put_handle(struct fake_handle *handle)
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
    pthread_mutex_lock(&lock);
    one->next = handles;
    handles = one;
    pthread_mutex_unlock(&lock);
    *handle_p = (hipMemGenericAllocationHandle_t)(void *)one;
    return hipSuccess;
}

static bool is_device(const hipMemAllocationProp *prop)
{
    int count = (int)fake_setting("FAKEHIP_DEVICES", 8);

    return prop->type == hipMemAllocationTypePinned &&
           prop->location.type == hipMemLocationTypeDevice &&
           prop->location.id >= 0 && prop->location.id < count;
}

FAKE_EXPORT hipError_t hipMemGetAllocationGranularity(
    size_t *bytes_p, const hipMemAllocationProp *prop,
    hipMemAllocationGranularity_flags option)
{
    hipError_t error = fake_enter(__func__);

    (void)option;
    *bytes_p = granularity();
    return fake_leave(
        error != hipSuccess || is_device(prop) ? error : hipErrorInvalidValue);
}

FAKE_EXPORT hipError_t hipMemCreate(hipMemGenericAllocationHandle_t *handle_p,
                                    size_t bytes,
                                    const hipMemAllocationProp *prop,
                                    unsigned long long flags)
{
    hipError_t error = fake_enter(__func__);
    struct fake_handle handle = {.bytes = bytes};

    if (error == hipSuccess && (bytes == 0 || bytes % granularity() != 0 ||
                                flags != 0 || !is_device(prop))) {
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

    pthread_mutex_lock(&lock);
    one = find_handle(handle);
    if (one != NULL) {
        put_handle(one);
    }
    pthread_mutex_unlock(&lock);
    return fake_leave(one == NULL ? hipErrorInvalidValue : error);
}

FAKE_EXPORT hipError_t hipMemRetainAllocationHandle(
    hipMemGenericAllocationHandle_t *handle_p, void *ptr)
{
    hipError_t error = fake_enter(__func__);
    struct fake_mapping *one;

    fake_need_version(71400000);
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&lock);
    for (one = mappings; one != NULL; one = one->next) {
        if ((uintptr_t)ptr - (uintptr_t)one->at < one->bytes) {
            one->handle->refs++;
            *handle_p = (hipMemGenericAllocationHandle_t)(void *)one->handle;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
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
    pthread_mutex_lock(&lock);
    one = find_handle(handle);
    if (one != NULL) {
        *prop_p = one->prop;
    }
    pthread_mutex_unlock(&lock);
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
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&lock);
    one = find_handle(handle);
    if (one == NULL || one->prop.requestedHandleType != type) {
        error = hipErrorInvalidValue;
    } else {
        fd = dup(one->fd);
        error = fd < 0 ? hipErrorOutOfMemory : hipSuccess;
    }
    pthread_mutex_unlock(&lock);
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
        (size_t)st.st_size % granularity() != 0) {
        return fake_leave(hipErrorInvalidValue);
    }
    handle.bytes = (size_t)st.st_size;
    handle.prop.type = hipMemAllocationTypePinned;
    handle.prop.requestedHandleType = type;
    handle.prop.location.type = hipMemLocationTypeDevice;
    handle.prop.location.id = fake_device();
    handle.fd = fcntl(handle.fd, F_DUPFD_CLOEXEC, 0);
    if (handle.fd < 0) {
        return fake_leave(hipErrorOutOfMemory);
    }
    error = add_handle(&handle, handle_p);
    if (error != hipSuccess) {
        close(handle.fd);
    }
    return fake_leave(error);
}

/* ---- Mappings ---- */

/* The room that holds a range, if nothing is mapped in it; the lock is held. */
static struct fake_room *find_room(const char *at, size_t bytes)
{
    struct fake_room *room = rooms;

    while (room != NULL &&
           ((uintptr_t)at - (uintptr_t)room->start >= room->bytes ||
            bytes > room->bytes - (size_t)(at - room->start))) {
        room = room->next;
    }
    for (const struct fake_mapping *one = mappings; one != NULL;
         one = one->next) {
        if (one->at < at + bytes && at < one->at + one->bytes) {
            return NULL;
        }
    }
    return room;
}

/* The lock is held. */
static hipError_t map(char *at, struct fake_handle *handle)
{
    struct fake_room *room = find_room(at, handle->bytes);
    struct fake_range range = {.kind = FAKE_MAPPED,
                               .device = handle->prop.location.id,
                               .start = at,
                               .bytes = handle->bytes,
                               .ptr = at,
                               .fd = handle->fd};
    struct fake_mapping *one = malloc(sizeof *one);

    if (room == NULL || one == NULL) {
        free(one);
        return room == NULL ? hipErrorInvalidValue : hipErrorOutOfMemory;
    }
    if (mmap(at, handle->bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, handle->fd,
             0) == MAP_FAILED ||
        fake_range_add(&range) != hipSuccess) {
        free(one);
        return hipErrorOutOfMemory;
    }
    *one = (struct fake_mapping){mappings, at, handle->bytes, handle, room};
    mappings = one;
    handle->refs++;
    room->mappings++;
    return hipSuccess;
}

FAKE_EXPORT hipError_t hipMemMap(void *ptr, size_t bytes, size_t offset,
                                 hipMemGenericAllocationHandle_t handle,
                                 unsigned long long flags)
{
    hipError_t error = fake_enter(__func__);
    struct fake_handle *one;

    if (error == hipSuccess &&
        (offset != 0 || flags != 0 || (uintptr_t)ptr % granularity() != 0)) {
        error = hipErrorInvalidValue;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&lock);
    one = find_handle(handle);
    error = one == NULL || one->bytes != bytes ? hipErrorInvalidValue
                                               : map(ptr, one);
    pthread_mutex_unlock(&lock);
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipMemSetAccess(void *ptr, size_t bytes,
                                       const hipMemAccessDesc *access,
                                       size_t count)
{
    hipError_t error = fake_enter(__func__);
    const struct fake_mapping *one;

    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&lock);
    for (one = mappings; one != NULL && one->at != ptr; one = one->next) {
    }
    if (one == NULL || one->bytes != bytes || count == 0) {
        error = hipErrorInvalidValue;
    }
    for (size_t i = 0; i < count && error == hipSuccess; i++) {
        int device = one->handle->prop.location.id;

        if (access[i].flags != hipMemAccessFlagsProtReadWrite ||
            access[i].location.type != hipMemLocationTypeDevice ||
            (access[i].location.id != device &&
             !fake_linked(access[i].location.id, device))) {
            error = hipErrorInvalidDevice;
        }
    }
    if (error == hipSuccess &&
        mprotect(ptr, bytes, PROT_READ | PROT_WRITE) != 0) {
        error = hipErrorOutOfMemory;
    }
    pthread_mutex_unlock(&lock);
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipMemUnmap(void *ptr, size_t bytes)
{
    hipError_t error = fake_enter(__func__);
    struct fake_mapping **link = &mappings;
    struct fake_mapping *one;
    struct fake_range range;

    if (fake_range_find(ptr, &range)) {
        fake_wait_for_device(range.device);
    }
    pthread_mutex_lock(&lock);
    while (*link != NULL && (*link)->at != ptr) {
        link = &(*link)->next;
    }
    one = *link;
    if (one != NULL && one->bytes == bytes) {
        *link = one->next;
        (void)fake_range_remove(ptr, FAKE_MAPPED, &range);
        (void)mmap(ptr, bytes, PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
                   0);
        one->room->mappings--;
        put_handle(one->handle);
        free(one);
    } else {
        error = hipErrorInvalidValue;
    }
    pthread_mutex_unlock(&lock);
    return fake_leave(error);
}
