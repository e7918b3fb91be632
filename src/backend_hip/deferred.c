/* SPDX-License-Identifier: MIT
 *
 * Deferred free: memory and addresses go back to the runtime when no other
 * context uses the GPU. Freeing waits for all work on that GPU, such as another
 * rank thread's kernel, and that kernel may wait for this rank. It does not
 * wait for work on other GPUs, although a rank thread's kernel there may write
 * to a heap here.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct deferred {
    struct deferred *next;
    int device;
    bool of_heap; /* from a freed heap, which rank threads may have imported */
    struct hip_memory memory;
};

static pthread_mutex_t deferred_lock = PTHREAD_MUTEX_INITIALIZER;
/* The newest is the first. */
static struct deferred *deferred IRIS_GUARDED_BY(deferred_lock);
/* Guarded by the same lock, except the streams, which have their own. */
static struct hip_gpu gpus[HIP_MAX_DEVICES];
/* Some GPU has a kernel that could not be ended; may be read without the
 * lock. */
static atomic_bool any_stuck;
/* Number of imports of rank threads' heaps. While there are any, no heap is
 * freed. */
static int num_imports IRIS_GUARDED_BY(deferred_lock);
/* Held while memory is freed: addresses are freed after the memory mapped
 * there. */
static pthread_mutex_t freeing_lock IRIS_ACQUIRED_BEFORE(deferred_lock) =
    PTHREAD_MUTEX_INITIALIZER;

static void free_now(const struct hip_memory *memory)
{
    switch (memory->kind) {
    case HIP_DEVICE:
        (void)hipFree(memory->ptr);
        break;
    case HIP_PINNED:
        (void)hipHostFree(memory->ptr);
        break;
    case HIP_RANGE:
        (void)hipMemUnmap(memory->ptr, memory->bytes);
        (void)hipMemRelease(memory->handle);
        break;
    case HIP_ADDRESSES:
        (void)hipMemAddressFree(memory->ptr, memory->bytes);
        break;
    }
}

/* Whether it can be freed and matches: it belongs to the device (-1: to any
 * without users, which may never get another user) and, unless `bytes` is 0, is
 * mapped there. */
static bool is_meant(const struct deferred *one, int device, const char *at,
                     size_t bytes) IRIS_REQUIRES(deferred_lock)
{
    const char *start = one->memory.ptr;

    return (device < 0 ? gpus[one->device].num_users == 0
                       : one->device == device) &&
           (num_imports == 0 || !one->of_heap) &&
           (bytes == 0 ||
            (one->memory.kind == HIP_RANGE && start < at + bytes &&
             at < start + one->memory.bytes));
}

/* Frees in the order of arrival, which is the reverse of the list's. */
bool iris_i_hip_free_deferred(int device, const void *at, size_t bytes)
{
    struct deferred **link = &deferred, *all = NULL, *one;
    bool any;

    pthread_mutex_lock(&freeing_lock);
    pthread_mutex_lock(&deferred_lock);
    while (*link != NULL && !any_stuck) {
        one = *link;
        if (is_meant(one, device, at, bytes)) {
            *link = one->next;
            one->next = all;
            all = one;
        } else {
            link = &one->next;
        }
    }
    pthread_mutex_unlock(&deferred_lock);
    any = all != NULL;
    while ((one = all) != NULL) {
        all = one->next;
        free_now(&one->memory);
        free(one);
    }
    pthread_mutex_unlock(&freeing_lock);
    return any;
}

bool iris_i_hip_make_room(int device, size_t bytes)
{
    size_t found = 0, free_bytes = 0, total_bytes = 0;

    (void)hipMemGetInfo(&free_bytes, &total_bytes);
    pthread_mutex_lock(&deferred_lock);
    for (const struct deferred *one = deferred; one != NULL; one = one->next) {
        if ((one->memory.kind == HIP_DEVICE || one->memory.kind == HIP_RANGE) &&
            is_meant(one, device, NULL, 0)) {
            found += one->memory.bytes;
        }
    }
    pthread_mutex_unlock(&deferred_lock);
    return found != 0 && found + free_bytes >= bytes &&
           iris_i_hip_free_deferred(device, NULL, 0);
}

/* A forked child does not have its parent's memory and contexts. */
static void forget_parent(void) IRIS_REQUIRES(deferred_lock)
{
    static pid_t owner;

    if (owner == getpid()) {
        return;
    }
    owner = getpid();
    memset(gpus, 0, sizeof gpus);
    for (int i = 0; i < HIP_MAX_DEVICES; i++) {
        pthread_mutex_init(&gpus[i].making_lock, NULL);
    }
    deferred = NULL;
    num_imports = 0;
    any_stuck = false;
}

void iris_i_hip_memory_join(struct hip_backend *hip)
{
    pthread_mutex_lock(&deferred_lock);
    forget_parent();
    hip->gpu = &gpus[hip->device];
    hip->num_contexts = ++hip->gpu->num_users;
    pthread_mutex_unlock(&deferred_lock);
}

bool iris_i_hip_memory_leave(const struct hip_backend *hip)
{
    bool last;

    pthread_mutex_lock(&deferred_lock);
    last = --hip->gpu->num_users == 0;
    pthread_mutex_unlock(&deferred_lock);
    if (last) {
        (void)iris_i_hip_free_deferred(hip->device, NULL, 0);
    }
    return last;
}

void iris_i_hip_import_local(int count)
{
    pthread_mutex_lock(&deferred_lock);
    num_imports += count;
    pthread_mutex_unlock(&deferred_lock);
    if (count < 0) {
        (void)iris_i_hip_free_deferred(-1, NULL, 0);
    }
}

/* ---- Kernels that could not be ended ---- */

void iris_i_hip_stick(struct hip_backend *hip)
{
    pthread_mutex_lock(&deferred_lock);
    any_stuck = hip->stuck = true;
    pthread_mutex_unlock(&deferred_lock);
}

bool iris_i_hip_any_stuck(void)
{
    return any_stuck;
}

/* ---- Giving back ---- */

void iris_i_hip_free_later(const struct hip_backend *hip,
                           const struct hip_memory *memory)
{
    struct deferred *one;
    bool in_use, defer;

    if (memory->ptr == NULL) {
        return;
    }
    one = malloc(sizeof *one);
    pthread_mutex_lock(&deferred_lock);
    in_use = any_stuck || (num_imports != 0 && hip->heap_freed);
    defer = in_use || hip->gpu->num_users > 1;
    if (one != NULL && defer) {
        *one =
            (struct deferred){deferred, hip->device, hip->heap_freed, *memory};
        deferred = one;
        one = NULL;
    } else {
        defer = in_use; /* without memory for the record, it is not freed */
    }
    pthread_mutex_unlock(&deferred_lock);
    free(one);
    if (!defer) { /* earlier ones are freed first */
        (void)iris_i_hip_free_deferred(hip->device, NULL, 0);
        free_now(memory);
    }
}

/* ---- Pinned memory ---- */

/* Every context needs the same amounts. If many contexts come and go while
 * another stays, deferred memory would grow without limit; so it is reused. */
hipError_t iris_i_hip_pin(const struct hip_backend *hip, size_t bytes,
                          void **pinned_p)
{
    struct deferred **link = &deferred, *one;
    void *pinned = NULL;
    hipError_t error = hipSuccess;

    pthread_mutex_lock(&deferred_lock);
    while ((one = *link) != NULL &&
           (any_stuck || one->memory.kind != HIP_PINNED ||
            one->memory.bytes != bytes || one->device != hip->device)) {
        link = &one->next;
    }
    if (one != NULL) {
        *link = one->next;
        pinned = one->memory.ptr;
    }
    pthread_mutex_unlock(&deferred_lock);
    free(one);
    if (pinned == NULL) {
        error = hipHostMalloc(&pinned, bytes,
                              hipHostMallocMapped | hipHostMallocCoherent |
                                  hipHostMallocPortable);
    }
    *pinned_p = error == hipSuccess ? pinned : NULL;
    return error;
}
