/* SPDX-License-Identifier: MIT
 *
 * What an address was: the files of heap bases and allocations of a program.
 */
#ifndef IRIS_TOOLS_TRACE_PLACES_H
#define IRIS_TOOLS_TRACE_PLACES_H

#include <stddef.h>
#include <stdint.h>

struct trace_allocation {
    uint64_t offset;
    uint64_t bytes;
    int is_freed;
    int64_t born_ns, died_ns; /* in the trace's times; see TRACE_ALWAYS */
    uint64_t most_end;        /* of this one and all before it in the list */
    char name[64];
};
#define TRACE_ALWAYS \
    ((int64_t)1 << 62) /* no birth or death is known: +- this */

/* One rank's files. */
struct trace_space {
    int rank;
    uint64_t *bases;
    size_t num_bases;
    uint64_t heap_bytes; /* 0: not known */
    uint64_t reserved_bytes;
    struct trace_allocation *allocations;
    size_t num_allocations;
};

struct trace_spaces {
    struct trace_space *spaces;
    int count;
};

/* When an address was used, and how exact that is; for lists: not known. */
struct trace_moment {
    int is_known;
    int64_t ns;
    int64_t error_ns;
};

/* Whose heap an address is on. */
struct trace_place {
    int rank;
    uint64_t offset;
    const struct trace_allocation *allocation; /* NULL: none is known there */
    const struct trace_allocation
        *other;     /* that may have been alive then, as well */
    int num_others; /* that have had the place, where the time is not known */
    int is_own;     /* the library's */
};

/* Reads the files of all ranks that --bases names. 0; -1, having complained. */
int trace_spaces_read(struct trace_spaces *spaces);
void trace_spaces_free(struct trace_spaces *spaces);

/* Whether the address is on a heap as this rank has them mapped. Without the
 * size of heaps the nearest base below it counts. Allocations are at the same
 * offsets on all ranks. */
int trace_find_place(const struct trace_space *space, uint64_t address,
                     const struct trace_moment *moment,
                     struct trace_place *place_p);

#endif /* IRIS_TOOLS_TRACE_PLACES_H */
