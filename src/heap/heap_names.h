/* SPDX-License-Identifier: MIT
 *
 * The allocations on the heap: the allocator, and each allocation's name and
 * lifetime.
 */
#ifndef IRIS_SRC_HEAP_HEAP_NAMES_H
#define IRIS_SRC_HEAP_HEAP_NAMES_H

#include <pthread.h>

#include "heap/alloc.h"
#include "heap/heap_memory.h"

#define IRIS_NAME_BYTES 48

struct iris_heap_names {
    const struct iris_heap_memory *memory; /* the memory whose offsets are
                                            * handed out */
    struct iris_alloc *alloc;
    size_t reserved_bytes;         /* the library's own bytes, at offset 0 */
    size_t red_zone_bytes;         /* bytes left free behind each allocation */
    struct iris_heap_lives *lives; /* lifetimes of allocations; NULL: none
                                    * yet */
    struct iris_heap_freed *freed; /* freed allocations; NULL: none */
    pthread_mutex_t lock;          /* protects lives and freed */
};

/* Sets up the allocator. Its first range is the library's own. The caller
 * closes it even if this fails. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_names_open(struct iris_heap_names *names,
                                     const struct iris_heap_memory *memory);
void iris_i_heap_names_close(struct iris_heap_names *names);

/* Whether the program's memory can be at this offset of the heap. */
static inline int iris_i_heap_is_own(const struct iris_heap_names *names,
                                     size_t offset)
{
    return offset < names->reserved_bytes;
}

/* Finds the program's live allocation that contains `offset`. Returns 1, or 0 if
 * no such allocation exists. */
int iris_i_heap_find(const struct iris_heap_names *names, size_t offset,
                     size_t *start_p, size_t *bytes_p);

/* Names the allocation that contains `ptr`. NULL or an empty name removes the
 * name. IRIS_ERR_INVALID, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_heap_set_name(struct iris_heap_names *names,
                                   const void *ptr, const char *text);

/* ' "inbox"', for messages, or an empty text. Returns `text`. */
const char *iris_i_heap_describe(const struct iris_heap_names *names,
                                 size_t start, char text[IRIS_NAME_BYTES + 4]);

/* Record that all ranks have agreed on the allocation at `start`; record that
 * it is about to be freed. */
void iris_i_heap_note_alloc(struct iris_heap_names *names, size_t start);
void iris_i_heap_note_free(struct iris_heap_names *names, size_t start);

/* Writes <prefix>_rank_<r>_heap_bases.json, completely or not at all. The bytes
 * are those of Python's json.dump(..., indent=2). */
iris_status_t iris_i_bases_write(const struct iris_heap_memory *memory,
                                 const char *prefix);

/* Writes the live allocations and the latest freed ones to the file, completely
 * or not at all. Times count from `start_ns` of this host. */
iris_status_t iris_i_allocations_write(struct iris_heap_names *names,
                                       const char *path, int64_t start_ns);

#endif /* IRIS_SRC_HEAP_HEAP_NAMES_H */
