/* SPDX-License-Identifier: MIT
 *
 * Addresses on the symmetric heap: translation on the host, whether a call may
 * touch a range, and what is allocated there, by name.
 */
#ifndef IRIS_SRC_HEAP_HEAP_ADDRESS_H
#define IRIS_SRC_HEAP_HEAP_ADDRESS_H

#include "heap/heap_parts.h"

/* Bytes from `ptr` to the end of this rank's heap, or of the external memory it
 * is in; 0: it is in neither. */
size_t iris_i_heap_bytes_from(const struct iris_heap *heap, const void *ptr);

/* What a live allocation of the program's is called, by one name on all ranks:
 * its heap offset; of external memory, which may be shared more than once at
 * one address, a number behind all of these that never comes again.
 *
 * The one that begins at `ptr` and has not been released before; of several the
 * newest or the oldest. Ranks release the oldest first, each at a time of its
 * own, so the newest is the same for all. `call` is for messages. Any thread.
 * IRIS_ERR_INVALID */
iris_status_t iris_i_heap_find_start(struct iris_heap *heap, const char *call,
                                     const void *ptr, int newest,
                                     size_t *name_p);

/* Sets the mark of an allocation, unless it is negative, and returns it; -1:
 * there is none of that name. Any thread. */
int iris_i_heap_mark(struct iris_heap *heap, size_t name, int mark);

/* Where `rank` keeps `ptr`, of this rank's heap. `call` is for messages.
 * IRIS_ERR_INVALID (rank out of range, ptr not on the heap),
 * IRIS_ERR_UNREACHABLE */
iris_status_t iris_i_heap_translate(const struct iris_heap *heap,
                                    const char *call, const void *ptr, int rank,
                                    void **remote_p);

/* The other way: what on this rank's heap is at the place of `ptr` on `rank`'s.
 * Statuses as above. */
iris_status_t iris_i_heap_untranslate(const struct iris_heap *heap,
                                      const char *call, const void *ptr,
                                      int rank, void **own_p);

/* Whether the job has such a rank and only this rank's proxy reaches it. */
int iris_i_heap_is_by_proxy(const struct iris_heap *heap, int rank);

/* IRIS_ERR_UNREACHABLE if the rank's heap is not mapped here. */
iris_status_t iris_i_heap_check_reachable(const struct iris_heap *heap,
                                          const char *call, int rank);

/* Fills *place_p, or returns 0: the address is on no rank's heap. For messages
 * about a kernel's fault, from its handler: heaps have their allocations in the
 * same places. The heap is connected. */
int iris_i_heap_locate(const struct iris_heap *heap, const void *address,
                       struct iris_location *place_p);

/* A range of memory that a call is to read or write. */
struct iris_heap_range {
    const char *call; /* the public function */
    const char *name; /* of its argument */
    const void *ptr;
    size_t bytes; /* not 0 */
    int writes;
};

/* IRIS_ERR_INVALID: the range is no memory. It may begin in or at the end of a
 * rank's heap, and then all of it has to be within that heap, committed and, if
 * it is written, not the library's own. Else it may not run into a heap. */
iris_status_t iris_i_heap_check_range(const struct iris_heap *heap,
                                      const struct iris_heap_range *range);

#endif /* IRIS_SRC_HEAP_HEAP_ADDRESS_H */
