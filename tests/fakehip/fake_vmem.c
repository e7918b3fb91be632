/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's reserved addresses, and memory mapped there. What HIP
 * does not promise to forgive is refused here.
 */
#include "config.h"

#include "fake_vmem.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Addresses begin at a multiple of this; that of larger ones is by chance. */
#define ROOM_ALIGNMENT ((size_t)65536)

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

static struct fake_room *rooms; /* all under fake_vmem_lock */
static struct fake_mapping *mappings;
static unsigned num_rooms;

void fake_count_vmem(struct fakehip_counts *counts_p)
{
    pthread_mutex_lock(&fake_vmem_lock);
    counts_p->handles += fake_handle_count();
    for (const struct fake_room *room = rooms; room != NULL;
         room = room->next) {
        counts_p->rooms++;
    }
    pthread_mutex_unlock(&fake_vmem_lock);
}

/* ---- Addresses ---- */

FAKE_EXPORT hipError_t hipMemAddressReserve(void **ptr_p, size_t bytes,
                                            size_t alignment, void *hint,
                                            unsigned long long flags)
{
    hipError_t error = fake_enter(__func__);
    struct fake_room *room;
    char *start;
    size_t skip, step = fake_granularity();

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
    pthread_mutex_lock(&fake_vmem_lock);
    skip = (LARGE_PAGE - (uintptr_t)start % LARGE_PAGE) % LARGE_PAGE;
    skip += num_rooms++ % 2 == 0    ? 0
            : step < ROOM_ALIGNMENT ? step
                                    : ROOM_ALIGNMENT;
    room->start = start + skip;
    room->bytes = bytes;
    room->next = rooms;
    rooms = room;
    pthread_mutex_unlock(&fake_vmem_lock);
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

    pthread_mutex_lock(&fake_vmem_lock);
    while (*link != NULL && (*link)->start != ptr) {
        link = &(*link)->next;
    }
    room = *link;
    if (room == NULL || room->bytes != bytes || room->mappings != 0) {
        pthread_mutex_unlock(&fake_vmem_lock);
        return fake_leave(hipErrorInvalidValue);
    }
    *link = room->next;
    pthread_mutex_unlock(&fake_vmem_lock);
    munmap(ptr, bytes);
    free(room);
    return fake_leave(error);
}

/* ---- Mappings ---- */

struct fake_handle *fake_handle_at(const void *ptr)
{
    const struct fake_mapping *one = mappings;

    while (one != NULL && (uintptr_t)ptr - (uintptr_t)one->at >= one->bytes) {
        one = one->next;
    }
    return one == NULL ? NULL : one->handle;
}

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

    if (error == hipSuccess && (offset != 0 || flags != 0 ||
                                (uintptr_t)ptr % fake_granularity() != 0)) {
        error = hipErrorInvalidValue;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&fake_vmem_lock);
    one = fake_handle_find(handle);
    error = one == NULL || one->bytes != bytes ? hipErrorInvalidValue
                                               : map(ptr, one);
    pthread_mutex_unlock(&fake_vmem_lock);
    return fake_leave(error);
}

/* The mapping that begins there; the lock is held. */
static struct fake_mapping *mapping_at(const char *at)
{
    struct fake_mapping *one = mappings;

    while (one != NULL && one->at != at) {
        one = one->next;
    }
    return one;
}

/* Whether nothing is mapped before it in its room; the lock is held. */
static bool is_first(const struct fake_mapping *what)
{
    for (const struct fake_mapping *one = mappings; one != NULL;
         one = one->next) {
        if (one->room == what->room && one->at < what->at) {
            return false;
        }
    }
    return true;
}

/* Whether the range is mapped, piece by piece, to its end; the lock is held. */
static bool is_mapped(const char *at, size_t bytes)
{
    const struct fake_mapping *one = mapping_at(at);

    if (one != NULL && fake_quirk("set-access-from-first") && !is_first(one)) {
        return false;
    }
    while (one != NULL && one->bytes < bytes) {
        bytes -= one->bytes;
        one = mapping_at(one->at + one->bytes);
    }
    return one != NULL && one->bytes == bytes;
}

FAKE_EXPORT hipError_t hipMemSetAccess(void *ptr, size_t bytes,
                                       const hipMemAccessDesc *access,
                                       size_t count)
{
    hipError_t error = fake_enter(__func__);

    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&fake_vmem_lock);
    if (count == 0 || !is_mapped(ptr, bytes)) {
        error = hipErrorInvalidValue;
    }
    for (size_t i = 0; i < count && error == hipSuccess; i++) {
        int device = mapping_at(ptr)->handle->prop.location.id;

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
    pthread_mutex_unlock(&fake_vmem_lock);
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
    pthread_mutex_lock(&fake_vmem_lock);
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
        fake_handle_put(one->handle);
        free(one);
    } else {
        error = hipErrorInvalidValue;
    }
    pthread_mutex_unlock(&fake_vmem_lock);
    return fake_leave(error);
}
