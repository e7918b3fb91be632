/* SPDX-License-Identifier: MIT
 *
 * Memory and addresses that go back to the runtime, later: giving them back
 * waits for all that runs on the GPU, such as another rank thread's kernel, and
 * that may wait for this rank. It does not wait for what runs on other GPUs,
 * though a rank thread's kernel there may write to a heap here.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <stdlib.h>

struct hip_waste {
    struct hip_waste *next;
    int device;
    uint64_t heap; /* the generation of that which it is of, or 0 */
    struct hip_thing thing;
};

static pthread_mutex_t waste_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hip_waste *waste; /* under the lock; the newest is the first */
/* Open backends of each GPU. Under the lock. */
static unsigned num_users[HIP_MAX_DEVICES];
/* Those with a kernel that could not be ended, never used again. Under the
 * lock. */
static struct hip_backend *abandoned;
/* Heaps of rank threads in use by others. Under the lock. */
static struct hip_import *borrowed;
/* Held while waste goes, since rooms must go after what is mapped in them. */
static pthread_mutex_t flush_lock = PTHREAD_MUTEX_INITIALIZER;

static void give_back(const struct hip_thing *thing)
{
    hipError_t error = hipSuccess;

    switch (thing->kind) {
    case HIP_MEMORY:
        error = hipFree(thing->ptr);
        break;
    case HIP_PINNED:
        error = hipHostFree(thing->ptr);
        break;
    case HIP_EXTENT:
        if (hipMemUnmap(thing->ptr, thing->bytes) != hipSuccess) {
            (void)hipGetLastError();
        }
        error = hipMemRelease(thing->handle);
        break;
    case HIP_ROOM:
        error = hipMemAddressFree(thing->ptr, thing->bytes);
        break;
    }
    if (error != hipSuccess) {
        (void)hipGetLastError();
    }
}

/* The lock is held. */
static bool is_borrowed(uint64_t heap)
{
    const struct hip_import *one = borrowed;

    while (one != NULL && one->borrowed != heap) {
        one = one->next_borrowed;
    }
    return one != NULL;
}

/* Whether something is of the device and, unless `bytes` is 0, mapped there,
 * and may go. */
static bool is_meant(const struct hip_waste *one, int device, const char *at,
                     size_t bytes)
{
    const char *start = one->thing.ptr;

    return one->device == device && !is_borrowed(one->heap) &&
           (bytes == 0 ||
            (one->thing.kind == HIP_EXTENT && start < at + bytes &&
             at < start + one->thing.bytes));
}

static bool flush(int device, const char *at, size_t bytes)
{
    struct hip_waste **link = &waste, *all = NULL;
    bool any;

    pthread_mutex_lock(&flush_lock);
    pthread_mutex_lock(&waste_lock);
    while (*link != NULL && abandoned == NULL) {
        struct hip_waste *one = *link;

        if (is_meant(one, device, at, bytes)) {
            *link = one->next;
            one->next = all;
            all = one;
        } else {
            link = &one->next;
        }
    }
    pthread_mutex_unlock(&waste_lock);
    any = all != NULL;
    while (all != NULL) {
        struct hip_waste *one = all;

        all = one->next;
        give_back(&one->thing);
        free(one);
    }
    pthread_mutex_unlock(&flush_lock);
    return any;
}

bool iris_i_hip_flush(const struct hip_backend *hip)
{
    return flush(hip->device, NULL, 0);
}

void iris_i_hip_flush_at(const struct hip_backend *hip, const void *at,
                         size_t bytes)
{
    (void)flush(hip->device, at, bytes);
}

void iris_i_hip_use_memory(struct hip_backend *hip)
{
    pthread_mutex_lock(&waste_lock);
    num_users[hip->device]++;
    pthread_mutex_unlock(&waste_lock);
}

void iris_i_hip_leave_memory(struct hip_backend *hip)
{
    bool last;

    pthread_mutex_lock(&waste_lock);
    last = --num_users[hip->device] == 0;
    pthread_mutex_unlock(&waste_lock);
    if (last) {
        (void)iris_i_hip_flush(hip);
    }
}

void iris_i_hip_borrow(struct hip_import *import, uint64_t generation)
{
    pthread_mutex_lock(&waste_lock);
    import->borrowed = generation;
    import->next_borrowed = borrowed;
    borrowed = import;
    pthread_mutex_unlock(&waste_lock);
}

void iris_i_hip_unborrow(struct hip_import *import)
{
    struct hip_import **link = &borrowed;
    const struct hip_waste *one;
    int device = -1;

    pthread_mutex_lock(&waste_lock);
    while (*link != import) {
        link = &(*link)->next_borrowed;
    }
    *link = import->next_borrowed;
    for (one = waste; one != NULL; one = one->next) {
        if (one->heap == import->borrowed && num_users[one->device] == 0) {
            device = one->device; /* nobody else comes by there */
        }
    }
    pthread_mutex_unlock(&waste_lock);
    if (device >= 0) {
        (void)flush(device, NULL, 0);
    }
}

void iris_i_hip_abandon(struct hip_backend *hip)
{
    pthread_mutex_lock(&waste_lock);
    if (!hip->abandoned) {
        hip->next_abandoned = abandoned;
        abandoned = hip;
    }
    hip->abandoned = true;
    pthread_mutex_unlock(&waste_lock);
}

bool iris_i_hip_keeps_all(void)
{
    bool keeps;

    pthread_mutex_lock(&waste_lock);
    keeps = abandoned != NULL;
    pthread_mutex_unlock(&waste_lock);
    return keeps;
}

void iris_i_hip_discard(const struct hip_backend *hip,
                        const struct hip_thing *thing)
{
    struct hip_waste *one;
    bool in_use;

    if (thing->ptr == NULL || iris_i_hip_keeps_all()) {
        return;
    }
    one = malloc(sizeof *one);
    pthread_mutex_lock(&waste_lock);
    in_use = is_borrowed(hip->heap_leaving);
    if (one != NULL && (in_use || num_users[hip->device] > 1)) {
        *one =
            (struct hip_waste){waste, hip->device, hip->heap_leaving, *thing};
        waste = one;
        pthread_mutex_unlock(&waste_lock);
        return;
    }
    pthread_mutex_unlock(&waste_lock);
    free(one);
    if (!in_use) { /* else there is no memory to note it: it stays */
        (void)iris_i_hip_flush(hip); /* what came before goes before */
        give_back(thing);
    }
}

/* ---- Pinned memory ---- */

/* Every context needs the same; of many that come and go while another stays,
 * the waste would have no end. */
hipError_t iris_i_hip_pin(const struct hip_backend *hip, size_t bytes,
                          unsigned flags, void **ptr_p)
{
    struct hip_waste **link = &waste;
    struct hip_waste *one;

    pthread_mutex_lock(&waste_lock);
    while (*link != NULL &&
           ((*link)->thing.kind != HIP_PINNED ||
            (*link)->thing.bytes != bytes || (*link)->device != hip->device)) {
        link = &(*link)->next;
    }
    one = *link;
    if (one != NULL) {
        *link = one->next;
    }
    pthread_mutex_unlock(&waste_lock);
    if (one == NULL) {
        return hipHostMalloc(ptr_p, bytes, flags);
    }
    *ptr_p = one->thing.ptr;
    free(one);
    return hipSuccess;
}

void iris_i_hip_unpin(const struct hip_backend *hip, void *ptr, size_t bytes)
{
    const struct hip_thing thing = {
        .kind = HIP_PINNED, .ptr = ptr, .bytes = bytes};

    iris_i_hip_discard(hip, &thing);
}
