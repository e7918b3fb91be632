/* SPDX-License-Identifier: MIT
 *
 * The window behind the heap, in which external memory is mapped.
 */
#ifndef IRIS_SRC_HEAP_HEAP_WINDOW_H
#define IRIS_SRC_HEAP_HEAP_WINDOW_H

#include <pthread.h>

#include "heap/heap_memory.h"

struct iris_alloc;

/* A part of an allocation of the program that is mapped in the window. There
 * may be several parts of one allocation, and the same part more than once. The
 * allocation is mapped once, as long as any part remains. */
struct iris_external_range {
    struct iris_external_range *next;
    size_t start;       /* offset of the whole allocation in the window */
    size_t offset;      /* offset of the requested part in the window */
    size_t bytes;       /* of that */
    const void *cookie; /* identifies the allocation */
    size_t name;
    int mark;
};

struct iris_heap_window {
    struct iris_heap_memory *memory;
    struct iris_alloc *alloc; /* NULL: there is no window */
    struct iris_external_range *ranges;
    size_t num_shared; /* number of shared parts so far; the same on every
                        * rank */
    pthread_mutex_t lock;
};

/* The caller closes it even if this fails. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_window_open(struct iris_heap_window *window,
                                 struct iris_heap_memory *memory);

/* Drops the remaining records; the backend unmaps the memory. */
void iris_i_window_close(struct iris_heap_window *window);

/* Adds the mapping at record->start, gives it a name, and returns its
 * address. */
void *iris_i_window_add(struct iris_heap_window *window,
                        struct iris_external_range *record);

/* The name of external memory that begins at `ptr`, chosen as in
 * iris_i_heap_find_start(), and its mark. The mark is 0 unless all parts that
 * begin there have one. -1: nothing begins there. Any thread. */
int iris_i_window_find(struct iris_heap_window *window, const void *ptr,
                       int newest, size_t *name_p);

/* iris_i_heap_mark() for external memory. */
int iris_i_window_mark(struct iris_heap_window *window, size_t name, int mark);

/* The address of existing external memory. */
void *iris_i_window_address(const struct iris_heap_window *window, size_t name);

/* Removes it, after all ranks have agreed on that. */
void iris_i_window_release(struct iris_heap_window *window, size_t name);

/* Bytes from `offset` in the window to the end of the external memory there; 0:
 * there is none. */
size_t iris_i_window_bytes_from(const struct iris_heap_window *window,
                                size_t offset);

#endif /* IRIS_SRC_HEAP_HEAP_WINDOW_H */
