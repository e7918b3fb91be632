/* SPDX-License-Identifier: MIT
 *
 * Addresses on the symmetric heap: translation on the host, checks of a call's
 * memory ranges, and the names of allocations.
 */
#ifndef IRIS_SRC_HEAP_HEAP_ADDRESS_H
#define IRIS_SRC_HEAP_HEAP_ADDRESS_H

#include "heap/heap_parts.h"

/* Bytes from `ptr` to the end of this rank's heap or of the external memory
 * around it; 0: `ptr` is in neither. */
size_t iris_i_heap_bytes_from(const struct iris_heap *heap, const void *ptr);

/* The name of a live allocation of the program, which is the same on all ranks.
 * For heap memory, it is the heap offset. For external memory, which may be
 * shared more than once at one address, it is a larger number that is never
 * used again.
 *
 * Finds the allocation that begins at `ptr` and has not been released yet. If
 * there are several, it finds the newest or the oldest. Ranks release the
 * oldest first, each at its own time, so the newest is the same for all. `call`
 * is for messages. Any thread. IRIS_ERR_INVALID */
iris_status_t iris_i_heap_find_start(struct iris_heap *heap, const char *call,
                                     const void *ptr, int newest,
                                     size_t *name_p);

/* Sets the mark of an allocation, unless it is negative, and returns it; -1:
 * there is no allocation of that name. Any thread. */
int iris_i_heap_mark(struct iris_heap *heap, size_t name, int mark);

/* Address of the memory on `rank` that corresponds to `ptr` on this rank's
 * heap. `call` is for messages. IRIS_ERR_INVALID (rank out of range, ptr not on
 * the heap), IRIS_ERR_UNREACHABLE */
iris_status_t iris_i_heap_translate(const struct iris_heap *heap,
                                    const char *call, const void *ptr, int rank,
                                    void **remote_p);

/* The reverse: the address on this rank's heap that corresponds to `ptr` on
 * `rank`'s. Same statuses. */
iris_status_t iris_i_heap_untranslate(const struct iris_heap *heap,
                                      const char *call, const void *ptr,
                                      int rank, void **own_p);

/* Whether the rank exists and only this rank's proxy reaches it. */
int iris_i_heap_is_by_proxy(const struct iris_heap *heap, int rank);

/* IRIS_ERR_INVALID if the job has no such rank. */
iris_status_t iris_i_heap_check_rank(const struct iris_heap *heap, int rank);

/* IRIS_ERR_UNREACHABLE if the rank's heap is not mapped here. */
iris_status_t iris_i_heap_check_reachable(const struct iris_heap *heap,
                                          const char *call, int rank);

/* Fills *place_p, or returns 0 if the address is on no rank's heap. For
 * messages about a kernel's fault, called from the fault handler: all heaps
 * have their allocations at the same offsets. The heap is connected. */
int iris_i_heap_locate(const struct iris_heap *heap, const void *address,
                       struct iris_location *place_p);

/* A range of memory that a call will read or write. */
struct iris_heap_range {
    const char *call; /* the public function */
    const char *name; /* name of the argument */
    const void *ptr;
    size_t bytes; /* not 0 */
    int writes;
    int by_kernel; /* a kernel accesses it, and not a copy engine */
};

/* IRIS_ERR_INVALID: the range is not valid memory.
 * - If the range begins in or at the end of a rank's heap, all of it has to be
 *   within that heap and committed. If it is written, it must not be the
 *   library's own memory.
 * - Otherwise it must not run into a heap.
 * - If a kernel accesses memory outside of heaps, it must be able to. */
iris_status_t iris_i_heap_check_range(const struct iris_heap *heap,
                                      const struct iris_heap_range *range);

#endif /* IRIS_SRC_HEAP_HEAP_ADDRESS_H */
