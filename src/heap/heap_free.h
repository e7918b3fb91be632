/* SPDX-License-Identifier: MIT
 *
 * Freeing: iris_free(), and deferred frees. A rank releases an allocation at
 * its own time; the allocation is freed when every rank has released it.
 */
#ifndef IRIS_SRC_HEAP_HEAP_FREE_H
#define IRIS_SRC_HEAP_HEAP_FREE_H

#include "heap/heap_parts.h"

/* Frees an allocation of iris_i_heap_allocate() or iris_i_external_share() on
 * every rank. Whole pieces of memory go back to the system. `checked`: the
 * status of the caller's own checks. */
iris_status_t iris_i_heap_release(struct iris_heap *heap, void *ptr,
                                  iris_status_t checked);

/* Frees the allocation at a heap offset, with its memory, on this rank. */
void iris_i_heap_give(struct iris_heap *heap, size_t offset);

/* Whether this rank's streams have done all work that was enqueued before the
 * last call with `anew` set, including this call. Never waits. */
static inline int iris_i_heap_is_idle(const struct iris_heap *heap, int anew)
{
    return heap->fence.query(heap->fence.arg, anew);
}

/* The part about deferred frees in a rank's post of a collective call. */
struct iris_deferred_post {
    uint64_t count; /* released, and no longer used by its streams */
    uint64_t fresh; /* among these, not yet compared with the other ranks' */
};

/* The steps that follow one collective call of all ranks; the same on all. */
struct iris_deferred_plan {
    struct iris_deferred_post post; /* this rank's */
    int waits;    /* waits for streams: there is nothing else to free, or
                   * memory is short */
    int lister;   /* the rank that lists its releases; -1: nothing follows */
    size_t count; /* number of names in the list */
};

/* Releases an allocation. Any thread; never blocks. IRIS_ERR_INVALID,
 * IRIS_ERR_STATE (the heap is closed), IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_deferred_add(struct iris_heap *heap, void *ptr);

/* Before a collective call of all ranks: makes its plan and the payload of its
 * post, without waiting. The second function is for a call that follows a
 * failed allocation; `full` if this rank was out of memory. */
void iris_i_deferred_post(struct iris_heap *heap, struct iris_call *call,
                          struct iris_deferred_plan *plan);
void iris_i_deferred_post_failure(struct iris_heap *heap, int full,
                                  struct iris_call *call,
                                  struct iris_deferred_plan *plan);

/* After all ranks have agreed on that call, before the next agreement. Every
 * payload of the call begins with a struct iris_deferred_post. */
void iris_i_deferred_judge(const struct iris_heap *heap,
                           struct iris_deferred_plan *plan);

/* The steps that follow, collectively: frees the allocations that all ranks
 * have released, and returns their number. The next call reports errors that
 * occur here. */
size_t iris_i_deferred_follow(struct iris_heap *heap,
                              const struct iris_deferred_plan *plan);

/* Collective: waits until this rank's streams no longer use its released
 * allocations, then frees those that all ranks have released. */
iris_status_t iris_i_deferred_free(struct iris_heap *heap, size_t *freed_p);

/* Refuses releases from now on. */
void iris_i_deferred_close(struct iris_heap *heap);

#endif /* IRIS_SRC_HEAP_HEAP_FREE_H */
