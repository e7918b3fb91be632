/* SPDX-License-Identifier: MIT
 *
 * The heap allocator. It hands out offsets, keeps its whole state outside the
 * heap, and is deterministic: the same calls give the same offsets.
 */
#ifndef IRIS_SRC_HEAP_ALLOC_H
#define IRIS_SRC_HEAP_ALLOC_H

#include <stddef.h>

#include <iris/heap.h>

struct iris_alloc;

/* Manages offsets [0, bytes). One thread at a time may take and give; any
 * thread may make the other calls. The caller destroys it.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_alloc_create(size_t bytes, struct iris_alloc **alloc_p);
void iris_i_alloc_destroy(struct iris_alloc *alloc);

/* Finds `bytes` at a multiple of `alignment` (a power of two). Sizes and
 * offsets are rounded to IRIS_ALIGNMENT. Constant time.
 *
 *   IRIS_ERR_INVALID    bytes is 0, alignment is no power of two
 *   IRIS_ERR_NO_MEMORY  no free range that large, or no memory for the record;
 *                       the caller sets the message */
iris_status_t iris_i_alloc_take(struct iris_alloc *alloc, size_t bytes,
                                size_t alignment, size_t *offset_p);

/* Frees an allocation of iris_i_alloc_take(), joins free neighbours, and
 * returns the resulting free range. IRIS_ERR_INVALID: no live allocation starts
 * at `offset`. */
iris_status_t iris_i_alloc_give_joined(struct iris_alloc *alloc, size_t offset,
                                       size_t *start_p, size_t *bytes_p);

static inline iris_status_t iris_i_alloc_give(struct iris_alloc *alloc,
                                              size_t offset)
{
    size_t start, bytes;

    return iris_i_alloc_give_joined(alloc, offset, &start, &bytes);
}

/* Undoes the latest iris_i_alloc_take(), which returned `offset`, if no other
 * call has followed. Unlike iris_i_alloc_give(), it restores the previous state
 * exactly, so that later results do not depend on the take. */
void iris_i_alloc_untake(struct iris_alloc *alloc, size_t offset);

/* A mark for the allocator's user on a live allocation: 0 to 3, initially 0.
 * Sets it unless `mark` is negative, and returns it; -1: no allocation starts
 * at `offset`. Constant time. */
int iris_i_alloc_mark(struct iris_alloc *alloc, size_t offset, int mark);

/* The live allocation that contains `offset`: its start and size. For messages
 * and traces; may be slow. IRIS_ERR_INVALID: no allocation contains it. */
iris_status_t iris_i_alloc_find(struct iris_alloc *alloc, size_t offset,
                                size_t *start_p, size_t *bytes_p);

/* Calls `call` for each live allocation, in the order of their starts. `call`
 * must not use the allocator. */
void iris_i_alloc_each(struct iris_alloc *alloc,
                       void (*call)(void *arg, size_t start, size_t bytes),
                       void *arg);

/* The live allocation that contains `offset`, else the one that ends or begins
 * nearest to it. 0: nothing is allocated, or another call is changing them. May
 * be called from any thread, and from the handler of a fault outside the
 * allocator. */
int iris_i_alloc_nearest(struct iris_alloc *alloc, size_t offset,
                         size_t *start_p, size_t *bytes_p);

/* Fills used, free, largest_free, peak, metadata bytes and num_allocs. */
void iris_i_alloc_stats(struct iris_alloc *alloc,
                        struct iris_heap_stats *stats_p);

#endif /* IRIS_SRC_HEAP_ALLOC_H */
