/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's memory: device memory in unnamed files, and the table
 * of all that the runtime knows.
 */
#include "config.h"

#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* hipDeviceMallocUncached, of HIP since 5.7. */
#define DEVICE_MALLOC_UNCACHED 0x3

#define PAGE ((size_t)4096)
/* Memory begins at a multiple of this. */
#define LARGE_PAGE ((size_t)2 << 20)
/* How far into what holds it an allocation begins, in turn, since real ones are
 * cut from larger pieces. */
static const size_t shifts[] = {0, LARGE_PAGE, 65536};
/* Fills of this many bytes give pages back. */
#define LARGE ((size_t)1 << 20)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct fake_range *ranges;     /* all below under the lock */
static size_t used[FAKE_MAX_DEVICES]; /* bytes of memory */
static unsigned num_allocated;

/* ---- The table ---- */

hipError_t fake_range_add(const struct fake_range *range)
{
    struct fake_range *one = malloc(sizeof *one);

    if (one == NULL) {
        return hipErrorOutOfMemory;
    }
    *one = *range;
    pthread_mutex_lock(&lock);
    one->next = ranges;
    ranges = one;
    pthread_mutex_unlock(&lock);
    return hipSuccess;
}

bool fake_range_remove(const void *ptr, enum fake_kind kind,
                       struct fake_range *range_p)
{
    struct fake_range **link = &ranges;
    struct fake_range *one;

    pthread_mutex_lock(&lock);
    while (*link != NULL && ((*link)->ptr != ptr || (*link)->kind != kind)) {
        link = &(*link)->next;
    }
    one = *link;
    if (one != NULL) {
        *link = one->next;
        *range_p = *one;
    }
    pthread_mutex_unlock(&lock);
    free(one);
    return one != NULL;
}

bool fake_range_find(const void *ptr, struct fake_range *range_p)
{
    const struct fake_range *one;

    pthread_mutex_lock(&lock);
    for (one = ranges; one != NULL; one = one->next) {
        if ((uintptr_t)ptr - (uintptr_t)one->ptr <
            one->bytes - (size_t)(one->ptr - one->start)) {
            *range_p = *one;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return one != NULL;
}

void fakehip_count(struct fakehip_counts *counts_p)
{
    const struct fake_range *one;

    memset(counts_p, 0, sizeof *counts_p);
    fake_count_streams(counts_p);
    fake_count_vmem(counts_p);
    pthread_mutex_lock(&lock);
    for (one = ranges; one != NULL; one = one->next) {
        if (one->kind == FAKE_IMPORT) {
            counts_p->imports++;
        } else {
            counts_p->allocations++;
        }
    }
    pthread_mutex_unlock(&lock);
}

/* ---- Memory as files ---- */

hipError_t fake_memory_create(size_t bytes, int *fd_p)
{
    int fd = memfd_create("fakehip", MFD_CLOEXEC);

    if (fd < 0) {
        return hipErrorOutOfMemory;
    }
    if (ftruncate(fd, (off_t)bytes) != 0) {
        close(fd);
        return hipErrorOutOfMemory;
    }
    *fd_p = fd;
    return hipSuccess;
}

hipError_t fake_memory_map(int fd, size_t bytes, char **start_p)
{
    char *room = mmap(NULL, bytes + LARGE_PAGE, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t skip;

    if (room == MAP_FAILED) {
        return hipErrorOutOfMemory;
    }
    bytes = (bytes + PAGE - 1) / PAGE * PAGE;
    skip = (LARGE_PAGE - (uintptr_t)room % LARGE_PAGE) % LARGE_PAGE;
    if (mmap(room + skip, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             fd, 0) == MAP_FAILED) {
        munmap(room, bytes + LARGE_PAGE);
        return hipErrorOutOfMemory;
    }
    if (skip > 0) {
        munmap(room, skip);
    }
    if (skip < LARGE_PAGE) {
        munmap(room + skip + bytes, LARGE_PAGE - skip);
    }
    *start_p = room + skip;
    return hipSuccess;
}

void fake_fill(void *dst, int value, size_t bytes)
{
    char *from = dst, *to = from + bytes;
    struct fake_range range;

    if (value == 0 && bytes >= LARGE && fake_range_find(dst, &range) &&
        range.fd >= 0) {
        char *first = from + (PAGE - (uintptr_t)from % PAGE) % PAGE;
        char *end = to - (uintptr_t)to % PAGE;

        if (fallocate(range.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                      first - range.start, end - first) == 0) {
            memset(from, 0, (size_t)(first - from));
            memset(end, 0, (size_t)(to - end));
            return;
        }
    }
    memset(dst, value, bytes);
}

/* ---- Device memory ---- */

static size_t memory_of_device(void)
{
    return (size_t)fake_setting("FAKEHIP_MEMORY", 64LL << 30);
}

bool fake_memory_take(int device, size_t bytes)
{
    bool fits;

    pthread_mutex_lock(&lock);
    fits = bytes <= memory_of_device() &&
           used[device] + bytes <= memory_of_device();
    if (fits) {
        used[device] += bytes;
    }
    pthread_mutex_unlock(&lock);
    return fits;
}

/* Takes the bytes off the device's, and says where in them to begin. */
static bool take(int device, size_t bytes, size_t *shift_p)
{
    pthread_mutex_lock(&lock);
    *shift_p = shifts[num_allocated++ % (sizeof shifts / sizeof *shifts)];
    pthread_mutex_unlock(&lock);
    return bytes <= memory_of_device() &&
           fake_memory_take(device, bytes + *shift_p);
}

void fake_memory_give(int device, size_t bytes)
{
    pthread_mutex_lock(&lock);
    used[device] -= bytes;
    pthread_mutex_unlock(&lock);
}

static hipError_t allocate(size_t bytes, struct fake_range *range)
{
    hipError_t error = fake_memory_create(range->bytes, &range->fd);

    (void)bytes;
    if (error != hipSuccess) {
        return error;
    }
    error = fake_memory_map(range->fd, range->bytes, &range->start);
    if (error != hipSuccess) {
        close(range->fd);
        return error;
    }
    range->ptr = range->start + (range->bytes - bytes);
    error = fake_range_add(range);
    if (error != hipSuccess) {
        munmap(range->start, range->bytes);
        close(range->fd);
    }
    return error;
}

FAKE_EXPORT hipError_t hipExtMallocWithFlags(void **ptr_p, size_t bytes,
                                             unsigned flags)
{
    struct fake_range range = {.kind = FAKE_MEMORY, .device = fake_device()};
    hipError_t error = fake_enter(__func__);
    size_t shift;

    if (error == hipSuccess) {
        error = fake_refuse_capture();
    }
    if (error == hipSuccess &&
        (bytes == 0 || (flags != hipDeviceMallocFinegrained &&
                        flags != DEVICE_MALLOC_UNCACHED))) {
        error = hipErrorInvalidValue;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    if (!take(range.device, bytes, &shift)) {
        return fake_leave(hipErrorOutOfMemory);
    }
    range.bytes = bytes + shift;
    error = allocate(bytes, &range);
    if (error != hipSuccess) {
        fake_memory_give(range.device, range.bytes);
        return fake_leave(error);
    }
    *ptr_p = range.ptr;
    return hipSuccess;
}

FAKE_EXPORT hipError_t hipFree(void *ptr)
{
    hipError_t error = fake_enter(__func__);
    struct fake_range range;

    if (error == hipSuccess && fake_refuse_capture() != hipSuccess) {
        return fake_leave(hipErrorStreamCaptureUnsupported);
    }
    if (ptr == NULL) {
        return fake_leave(error);
    }
    if (!fake_range_find(ptr, &range) || range.kind != FAKE_MEMORY ||
        range.ptr != ptr) {
        return fake_leave(hipErrorInvalidValue);
    }
    fake_wait_for_device(range.device);
    if (!fake_range_remove(ptr, FAKE_MEMORY, &range)) {
        return fake_leave(hipErrorInvalidValue);
    }
    munmap(range.start, range.bytes);
    close(range.fd);
    fake_memory_give(range.device, range.bytes);
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipMemGetInfo(size_t *free_p, size_t *total_p)
{
    hipError_t error = fake_enter(__func__);

    if (error == hipSuccess) {
        pthread_mutex_lock(&lock);
        *total_p = memory_of_device();
        *free_p = *total_p - used[fake_device()];
        pthread_mutex_unlock(&lock);
    }
    return fake_leave(error);
}

/* ---- Host memory ---- */

FAKE_EXPORT hipError_t hipHostMalloc(void **ptr_p, size_t bytes, unsigned flags)
{
    struct fake_range range = {
        .kind = FAKE_PINNED, .device = fake_device(), .bytes = bytes, .fd = -1};
    hipError_t error = fake_enter(__func__);

    (void)flags;
    if (error == hipSuccess) {
        error = fake_refuse_capture();
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    range.start = aligned_alloc(PAGE, (bytes + PAGE - 1) / PAGE * PAGE);
    range.ptr = range.start;
    error = range.start == NULL ? hipErrorOutOfMemory : fake_range_add(&range);
    if (error != hipSuccess) {
        free(range.start);
        return fake_leave(error);
    }
    *ptr_p = range.ptr;
    return hipSuccess;
}

FAKE_EXPORT hipError_t hipHostFree(void *ptr)
{
    hipError_t error = fake_enter(__func__);
    struct fake_range range;

    if (ptr == NULL) {
        return fake_leave(error);
    }
    if (!fake_range_find(ptr, &range) || range.kind != FAKE_PINNED) {
        return fake_leave(hipErrorInvalidValue);
    }
    fake_wait_for_device(range.device);
    if (!fake_range_remove(ptr, FAKE_PINNED, &range)) {
        return fake_leave(hipErrorInvalidValue);
    }
    free(range.start);
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipHostGetDevicePointer(void **device_p, void *host,
                                               unsigned flags)
{
    hipError_t error = fake_enter(__func__);
    struct fake_range range;

    (void)flags;
    if (error == hipSuccess &&
        (!fake_range_find(host, &range) || range.kind != FAKE_PINNED)) {
        error = hipErrorInvalidValue;
    }
    if (error == hipSuccess) {
        *device_p = host;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipPointerGetAttributes(hipPointerAttribute_t *what,
                                               const void *ptr)
{
    hipError_t error = fake_enter(__func__);
    struct fake_range range;

    if (error == hipSuccess && !fake_range_find(ptr, &range)) {
        error = hipErrorInvalidValue;
    }
    if (error == hipSuccess) {
        *what = (hipPointerAttribute_t){
            .memoryType = range.kind == FAKE_PINNED ? hipMemoryTypeHost
                                                    : hipMemoryTypeDevice,
            .device = range.device,
        };
        if (range.kind == FAKE_PINNED ||
            fake_linked(fake_device(), range.device)) {
            what->devicePointer = (void *)(uintptr_t)ptr;
        }
        what->hostPointer =
            range.kind == FAKE_PINNED ? what->devicePointer : NULL;
    }
    return fake_leave(error);
}

/* ---- A program's own, for tests that are not compiled for HIP ---- */

static hipError_t map_own(void *ptr, size_t bytes,
                          const hipMemAllocationProp *prop)
{
    hipMemAccessDesc access = {.location = prop->location,
                               .flags = hipMemAccessFlagsProtReadWrite};
    hipMemGenericAllocationHandle_t handle;
    hipError_t error = hipMemCreate(&handle, bytes, prop, 0);

    if (error != hipSuccess) {
        return error;
    }
    error = hipMemMap(ptr, bytes, 0, handle, 0);
    (void)hipMemRelease(handle); /* the mapping holds on to it */
    if (error == hipSuccess) {
        error = hipMemSetAccess(ptr, bytes, &access, 1);
    }
    return error;
}

int fakehip_map(int device, size_t bytes, int exportable, void **ptr_p)
{
    hipMemAllocationProp prop = {
        .type = hipMemAllocationTypePinned,
        .requestedHandleType = exportable ? hipMemHandleTypePosixFileDescriptor
                                          : hipMemHandleTypeNone,
        .location = {.type = hipMemLocationTypeDevice, .id = device}};
    size_t granularity;
    void *raw;
    hipError_t error;

    (void)hipMemGetAllocationGranularity(
        &granularity, &prop, hipMemAllocationGranularityRecommended);
    do { /* the runtime aligns every other one */
        error = hipMemAddressReserve(&raw, bytes, granularity, NULL, 0);
        if (error == hipSuccess && (uintptr_t)raw % granularity == 0) {
            *ptr_p = raw;
            return (int)map_own(raw, bytes, &prop);
        }
    } while (error == hipSuccess && hipMemAddressFree(raw, bytes) == 0);
    return (int)error;
}

void fakehip_unmap(void *ptr, size_t bytes)
{
    (void)hipMemUnmap(ptr, bytes);
    (void)hipMemAddressFree(ptr, bytes);
}
