/* SPDX-License-Identifier: MIT
 *
 * The window behind the heap: what is mapped there of external memory.
 */
#ifndef IRIS_SRC_HEAP_HEAP_WINDOW_H
#define IRIS_SRC_HEAP_HEAP_WINDOW_H

#include <pthread.h>

#include "heap/heap_memory.h"

struct iris_alloc;

/* A part of an allocation of the program that is mapped in the window. Of one
 * allocation there may be several, and the same part more than once: it is
 * mapped once, as long as any is there. */
struct iris_external_range {
    struct iris_external_range *next;
    size_t start;       /* in the window, of the whole allocation */
    size_t offset;      /* in the window, of what was asked for */
    size_t bytes;       /* of that */
    const void *cookie; /* by which the allocation is known again */
    size_t name;
    int mark;
};

struct iris_heap_window {
    struct iris_heap_memory *memory;
    struct iris_alloc *alloc; /* NULL: there is no window */
    struct iris_external_range *ranges;
    size_t num_shared; /* so far; the same on every rank */
    pthread_mutex_t lock;
};

/* The caller closes it, also if this fails. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_window_open(struct iris_heap_window *window,
                                 struct iris_heap_memory *memory);

/* Forgets what is left; the backend unmaps it. */
void iris_i_window_close(struct iris_heap_window *window);

/* Adds what is mapped at record->start, gives it a name, and returns its
 * address. */
void *iris_i_window_add(struct iris_heap_window *window,
                        struct iris_external_range *record);

/* What external memory that begins at `ptr` is called, as
 * iris_i_heap_find_start() chooses, and its mark, not 0 if all that begins
 * there has one; -1: nothing begins there. Any thread. */
int iris_i_window_find(struct iris_heap_window *window, const void *ptr,
                       int newest, size_t *name_p);

/* What iris_i_heap_mark() does for external memory. */
int iris_i_window_mark(struct iris_heap_window *window, size_t name, int mark);

/* Where it is; it is there. */
void *iris_i_window_address(const struct iris_heap_window *window, size_t name);

/* Its end, after an agreement of all ranks about it. */
void iris_i_window_release(struct iris_heap_window *window, size_t name);

/* Bytes from `offset` in the window to the end of the external memory there; 0:
 * there is none. */
size_t iris_i_window_bytes_from(const struct iris_heap_window *window,
                                size_t offset);

#endif /* IRIS_SRC_HEAP_HEAP_WINDOW_H */
