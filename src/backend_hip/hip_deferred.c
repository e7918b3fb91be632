/* SPDX-License-Identifier: MIT
 *
 * Deferred free: memory and addresses go back to the runtime when nobody else
 * uses the GPU. Giving them back waits for all that runs there, such as another
 * rank thread's kernel, and that may wait for this rank. It does not wait for
 * what runs on other GPUs, though a rank thread's kernel there may write to a
 * heap here.
 */
#include "config.h"

#include "backend_hip/hip_deferred.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct deferred {
    struct deferred *next;
    int device;
    bool of_heap; /* that is gone; rank threads may have imported it */
    struct hip_memory memory;
};

static pthread_mutex_t deferred_lock = PTHREAD_MUTEX_INITIALIZER;
/* All under the lock. The newest is the first. */
static struct deferred *deferred;
/* But for the streams, which have a lock of their own. */
static struct hip_gpu gpus[HIP_MAX_DEVICES];
/* One has a kernel that could not be ended; may be read without. */
static atomic_bool any_stuck;
/* Imports of rank threads' heaps, which keep all heaps from being freed. */
static int num_imports;
/* Held while memory goes, since addresses go after what is mapped there. */
static pthread_mutex_t freeing_lock = PTHREAD_MUTEX_INITIALIZER;

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

/* Whether it is of the device (-1: of one that nobody uses, where nobody else
 * comes by) and, unless `bytes` is 0, mapped there, and may go. The lock is
 * held. */
static bool is_meant(const struct deferred *one, int device, const char *at,
                     size_t bytes)
{
    const char *start = one->memory.ptr;

    return (device < 0 ? gpus[one->device].num_users == 0
                       : one->device == device) &&
           (num_imports == 0 || !one->of_heap) &&
           (bytes == 0 ||
            (one->memory.kind == HIP_RANGE && start < at + bytes &&
             at < start + one->memory.bytes));
}

/* In the order they came, which is the reverse of the list's. */
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

/* A forked child has none of its parent's memory or contexts; the lock is
 * held. */
static void forget_parent(void)
{
    static pid_t owner;

    if (owner == getpid()) {
        return;
    }
    owner = getpid();
    memset(gpus, 0, sizeof gpus);
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
        defer = in_use; /* without memory to note it, it stays */
    }
    pthread_mutex_unlock(&deferred_lock);
    free(one);
    if (!defer) { /* what came before goes before */
        (void)iris_i_hip_free_deferred(hip->device, NULL, 0);
        free_now(memory);
    }
}

/* ---- Pinned memory ---- */

/* Every context needs the same; of many that come and go while another stays,
 * what is deferred would have no end. */
hipError_t iris_i_hip_pin(struct hip_backend *hip)
{
    struct deferred **link = &deferred, *one;
    void *pinned = NULL;
    hipError_t error = hipSuccess;

    pthread_mutex_lock(&deferred_lock);
    while ((one = *link) != NULL &&
           (any_stuck || one->memory.kind != HIP_PINNED ||
            one->device != hip->device)) {
        link = &one->next;
    }
    if (one != NULL) {
        *link = one->next;
        pinned = one->memory.ptr;
    }
    pthread_mutex_unlock(&deferred_lock);
    free(one);
    if (pinned == NULL) {
        error = hipHostMalloc(&pinned, sizeof(struct hip_pinned),
                              hipHostMallocMapped | hipHostMallocCoherent |
                                  hipHostMallocPortable);
    }
    hip->pinned = error == hipSuccess ? pinned : NULL;
    return error;
}
