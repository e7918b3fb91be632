/* SPDX-License-Identifier: MIT
 *
 * Freeing: iris_free(), and deferred frees of what a rank has released at a time
 * of its own, which go when every rank has released them.
 */
#ifndef IRIS_SRC_HEAP_HEAP_FREE_H
#define IRIS_SRC_HEAP_HEAP_FREE_H

#include "heap/heap_parts.h"

/* Frees an allocation on every rank: what iris_i_heap_allocate() or
 * iris_i_external_share() gave. Whole pieces of memory go back to the
 * system. `checked`: what the caller found wrong with it already. */
iris_status_t iris_i_heap_release(struct iris_heap *heap, void *ptr,
                                  iris_status_t checked);

/* Gives back what is allocated at a heap offset, with its memory, on this rank.
 */
void iris_i_heap_give(struct iris_heap *heap, size_t offset);

/* Whether this rank's streams have done what they had been given by the last
 * call with `anew`, which is now if it is set. Never waits. */
static inline int iris_i_heap_is_idle(const struct iris_heap *heap, int anew)
{
    return heap->fence.query(heap->fence.arg, anew);
}

/* What the post of a collective call says of this rank's deferred frees. */
struct iris_deferred_post {
    uint64_t count; /* released, and its streams are done with them */
    uint64_t fresh; /* of these, not compared with the other ranks' yet */
};

/* What follows on one collective call of all ranks; the same on all. */
struct iris_deferred_plan {
    struct iris_deferred_post post; /* this rank's */
    int waits;    /* for streams: this is all there is, or there is no memory */
    int lister;   /* who says what it has released; -1: nothing follows */
    size_t count; /* how many these are */
};

/* Releases an allocation. Any thread; never blocks. IRIS_ERR_INVALID,
 * IRIS_ERR_STATE (the heap is closed), IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_deferred_add(struct iris_heap *heap, void *ptr);

/* Before a collective call of all ranks: makes its plan and, without waiting,
 * the payload of its post. The second: of one that comes because an allocation
 * failed, on this rank for lack of memory if `full`. */
void iris_i_deferred_post(struct iris_heap *heap, struct iris_call *call,
                          struct iris_deferred_plan *plan);
void iris_i_deferred_post_failure(struct iris_heap *heap, int full,
                                  struct iris_call *call,
                                  struct iris_deferred_plan *plan);

/* When all have agreed on that call, before the next agreement. Any payload of
 * the call begins with a struct iris_deferred_post. */
void iris_i_deferred_judge(const struct iris_heap *heap,
                           struct iris_deferred_plan *plan);

/* What follows, collectively: frees what all ranks have released, and says how
 * many that were. What goes wrong here is for the next call to report. */
size_t iris_i_deferred_follow(struct iris_heap *heap,
                              const struct iris_deferred_plan *plan);

/* Collective: waits until this rank's streams are done with what it has
 * released, then frees what all have. */
iris_status_t iris_i_deferred_free(struct iris_heap *heap, size_t *freed_p);

/* From now on nothing can be released. */
void iris_i_deferred_close(struct iris_heap *heap);

#endif /* IRIS_SRC_HEAP_HEAP_FREE_H */
