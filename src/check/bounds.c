/* SPDX-License-Identifier: MIT
 *
 * The bounds checker. It keeps its own lists of ranges, since kernels' threads
 * check while the host allocates: the live ranges, and the latest freed ones.
 */
#include "config.h"

#include "check/internal.h"

#include "base/base.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUM_FREED 64

/* An allocation, with its requested size. bytes 0: unused. */
struct range {
    size_t start;
    size_t bytes;
};

struct iris_bounds {
    const struct iris_heap *heap;
    struct iris_observer observer;
    pthread_rwlock_t lock;
    /* Live ranges, sorted by start. */
    struct range *ranges IRIS_GUARDED_BY(lock);
    size_t count IRIS_GUARDED_BY(lock);
    struct range freed[NUM_FREED] IRIS_GUARDED_BY(lock); /* a ring */
    unsigned next_freed IRIS_GUARDED_BY(lock);
    /* There was no memory for a range: checks nothing any more. */
    bool blind IRIS_GUARDED_BY(lock);
};

/* ---- Allocations ---- */

/* Number of live ranges that start at or before `offset`. */
static size_t rank_of(const struct iris_bounds *bounds, size_t offset)
    IRIS_SHARES(bounds->lock)
{
    size_t low = 0, high = bounds->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (bounds->ranges[middle].start <= offset) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static void add_range(struct iris_bounds *bounds, struct range range)
    IRIS_REQUIRES(bounds->lock)
{
    size_t at = rank_of(bounds, range.start);

    if (!iris_i_reserve(&bounds->ranges, bounds->count,
                        sizeof *bounds->ranges)) {
        bounds->blind = true;
        return;
    }
    memmove(&bounds->ranges[at + 1], &bounds->ranges[at],
            (bounds->count - at) * sizeof *bounds->ranges);
    bounds->ranges[at] = range;
    bounds->count++;
    /* Forget freed ranges whose memory is used again. */
    for (size_t i = 0; i < NUM_FREED; i++) {
        if (bounds->freed[i].start < range.start + range.bytes &&
            range.start < bounds->freed[i].start + bounds->freed[i].bytes) {
            bounds->freed[i].bytes = 0;
        }
    }
}

static void remove_range(struct iris_bounds *bounds, size_t start)
    IRIS_REQUIRES(bounds->lock)
{
    size_t after = rank_of(bounds, start);

    if (after == 0 || bounds->ranges[after - 1].start != start) {
        return;
    }
    bounds->freed[bounds->next_freed++ % NUM_FREED] = bounds->ranges[after - 1];
    memmove(&bounds->ranges[after - 1], &bounds->ranges[after],
            (bounds->count - after) * sizeof *bounds->ranges);
    bounds->count--;
}

/* External memory is behind the heap, and not checked here. */
static void observe_host(void *self, const struct iris_host_event *event)
{
    struct iris_bounds *bounds = self;
    size_t offset = iris_i_heap_offset(&bounds->heap->memory, event->address);

    if ((event->op != IRIS_HOST_ALLOC && event->op != IRIS_HOST_FREE) ||
        !event->after || event->status != IRIS_OK ||
        offset >= iris_i_heap_bytes(&bounds->heap->memory)) {
        return;
    }
    pthread_rwlock_wrlock(&bounds->lock);
    if (event->op == IRIS_HOST_ALLOC) {
        add_range(bounds, (struct range){offset, event->bytes});
    } else {
        remove_range(bounds, offset);
    }
    pthread_rwlock_unlock(&bounds->lock);
}

/* ---- Accesses ---- */

#define WHY_BYTES 256

/* Describes the nearest allocation, among those around `at`: its position
 * relative to the access. */
static void describe_nearest(const struct iris_bounds *bounds, size_t offset,
                             size_t at, char why[WHY_BYTES])
    IRIS_SHARES(bounds->lock)
{
    const struct range *before = at > 0 ? &bounds->ranges[at - 1] : NULL;
    const struct range *after = at < bounds->count ? &bounds->ranges[at] : NULL;
    char name[IRIS_NAME_BYTES + 4];

    if (after != NULL &&
        (before == NULL ||
         after->start - offset < offset - before->start - before->bytes)) {
        snprintf(why, WHY_BYTES,
                 "heap offset %zu is not allocated; the nearest allocation, of "
                 "%zu bytes at heap offset %zu%s, begins %zu bytes after it",
                 offset, after->bytes, after->start,
                 iris_i_heap_describe(&bounds->heap->names, after->start, name),
                 after->start - offset);
    } else if (before != NULL) {
        snprintf(
            why, WHY_BYTES,
            "heap offset %zu is not allocated; the nearest allocation, of "
            "%zu bytes at heap offset %zu%s, ends %zu bytes before it",
            offset, before->bytes, before->start,
            iris_i_heap_describe(&bounds->heap->names, before->start, name),
            offset - before->start - before->bytes);
    } else {
        snprintf(why, WHY_BYTES,
                 "heap offset %zu is not allocated, nor is anything else; call "
                 "iris_malloc first",
                 offset);
    }
}

static bool was_freed(const struct iris_bounds *bounds, size_t offset,
                      char why[WHY_BYTES]) IRIS_SHARES(bounds->lock)
{
    for (size_t i = 0; i < NUM_FREED; i++) {
        const struct range *freed = &bounds->freed[i];

        if (offset - freed->start < freed->bytes) {
            snprintf(why, WHY_BYTES,
                     "that was freed: it is %zu bytes into a former allocation "
                     "of %zu bytes at heap offset %zu; call "
                     "iris_free after the last kernel that uses it",
                     offset - freed->start, freed->bytes, freed->start);
            return true;
        }
    }
    return false;
}

/* Whether [offset, offset + bytes) is inside one allocation; otherwise `why`
 * gets the reason. */
static bool is_allocated(struct iris_bounds *bounds, size_t offset,
                         size_t bytes, char why[WHY_BYTES])
    IRIS_SHARES(bounds->lock)
{
    size_t at = rank_of(bounds, offset);
    const struct range *range = at > 0 ? &bounds->ranges[at - 1] : NULL;
    size_t into = range != NULL ? offset - range->start : 0;
    char name[IRIS_NAME_BYTES + 4];

    if (range != NULL && into < range->bytes + IRIS_RED_ZONE_BYTES) {
        if (into <= range->bytes && bytes <= range->bytes - into) {
            return true;
        }
        snprintf(
            why, WHY_BYTES,
            "that is an overrun: it ends %zu bytes past the end of the "
            "allocation of %zu bytes at heap offset %zu%s; allocate more, "
            "or pass fewer",
            into + bytes - range->bytes, range->bytes, range->start,
            iris_i_heap_describe(&bounds->heap->names, range->start, name));
    } else if (!was_freed(bounds, offset, why)) {
        describe_nearest(bounds, offset, at, why);
    }
    return false;
}

/* Describes its position relative to the heap, unless it is far away. */
static void describe_outside(const struct iris_bounds *bounds,
                             const struct iris_cpu_event *event,
                             char why[WHY_BYTES])
{
    const struct iris_heap_memory *memory = &bounds->heap->memory;
    size_t bytes = iris_i_heap_bytes(memory);
    size_t past = iris_i_heap_offset(memory, event->address);
    bool before =
        (uintptr_t)event->address < (uintptr_t)iris_i_heap_base(memory);
    size_t distance = before ? -past : past - bytes;
    char where[64] = "";

    if (distance < bytes) {
        snprintf(where, sizeof where, " but %zu bytes %s it", distance,
                 before ? "before" : "past the end of");
    }
    snprintf(why, WHY_BYTES,
             "that is not on this rank's heap (%p, %zu bytes)%s; pass this "
             "rank's own pointer from iris_malloc",
             (void *)iris_i_heap_base(memory), bytes, where);
}

static bool is_right(struct iris_bounds *bounds,
                     const struct iris_cpu_event *event, char why[WHY_BYTES])
    IRIS_SHARES(bounds->lock)
{
    bool translated = iris_i_is_translated(event);
    size_t offset;
    int owner =
        iris_i_heap_owner(&bounds->heap->memory, event->address, &offset);

    if (owner < 0) {
        if (translated) {
            describe_outside(bounds, event, why);
        }
        return !translated;
    }
    if (translated && owner != bounds->heap->log->rank) {
        snprintf(why, WHY_BYTES,
                 "that is on rank %d's heap already (heap offset %zu), and "
                 "would be translated twice; pass this rank's own pointer, not "
                 "a pointer from iris_dev_as_remote or iris_as_remote",
                 owner, offset);
        return false;
    }
    if (iris_i_heap_is_own(&bounds->heap->names, offset)) {
        snprintf(why, WHY_BYTES,
                 "heap offset %zu is the library's own; pass a pointer from "
                 "iris_malloc",
                 offset);
        /* Allowed: these are words of the device barrier. */
        return event->inside != 0;
    }
    return is_allocated(bounds, offset, event->bytes, why);
}

static iris_status_t observe_device(void *self,
                                    const struct iris_cpu_event *event)
{
    struct iris_bounds *bounds = self;
    char why[WHY_BYTES];
    bool right;

    if (event->after || event->bytes == 0 ||
        (uint32_t)event->target_rank >=
            (uint32_t)bounds->heap->log->num_ranks) {
        return IRIS_OK;
    }
    pthread_rwlock_rdlock(&bounds->lock);
    right = bounds->blind || is_right(bounds, event, why);
    pthread_rwlock_unlock(&bounds->lock);
    return right ? IRIS_OK : iris_i_fail_access(event, IRIS_ERR_INVALID, why);
}

/* ---- Creating and destroying ---- */

size_t iris_i_bounds_red_zone(const struct iris_settings *settings)
{
    return settings->check.number == IRIS_CHOICE_CHECK_BOUNDS
               ? IRIS_RED_ZONE_BYTES
               : 0;
}

iris_status_t iris_i_bounds_create(const struct iris_heap *heap,
                                   struct iris_bounds **bounds_p)
{
    struct iris_bounds *bounds = calloc(1, sizeof *bounds);
    iris_status_t status;

    if (bounds == NULL) {
        return iris_i_fail(heap->log, IRIS_ERR_NO_MEMORY,
                           "no memory to check bounds");
    }
    bounds->heap = heap;
    bounds->observer.device = observe_device;
    bounds->observer.host = observe_host;
    bounds->observer.self = bounds;
    pthread_rwlock_init(&bounds->lock, NULL);
    status = iris_i_hooks_add(heap->hooks, &bounds->observer);
    if (status != IRIS_OK) {
        pthread_rwlock_destroy(&bounds->lock);
        free(bounds);
        return status;
    }
    *bounds_p = bounds;
    return IRIS_OK;
}

void iris_i_bounds_destroy(struct iris_bounds *bounds)
{
    if (bounds == NULL) {
        return;
    }
    iris_i_hooks_remove(bounds->heap->hooks, &bounds->observer);
    pthread_rwlock_destroy(&bounds->lock);
    free(bounds->ranges);
    free(bounds);
}
