/* SPDX-License-Identifier: MIT
 *
 * Finds the allocation of an address, from a program's files of heap bases and
 * allocations.
 */
#ifndef IRIS_TOOLS_TRACE_PLACES_H
#define IRIS_TOOLS_TRACE_PLACES_H

#include "trace/trace.h"

#include <stddef.h>
#include <stdint.h>

struct trace_allocation {
    uint64_t offset;
    uint64_t bytes;
    int is_freed;
    int64_t born_ns, died_ns; /* in the trace's times; see TRACE_ALWAYS */
    uint64_t most_end;        /* the latest end in the list up to this one */
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

/* The heap that contains an address, and the place in it. */
struct trace_place {
    int rank;
    uint64_t offset;
    const struct trace_allocation *allocation; /* NULL: none is known there */
    const struct trace_allocation
        *other;     /* that may have been alive then, as well */
    int num_others; /* that have had the place, where the time is not known */
    int is_own;     /* the library's */
};

/* Reads the files PREFIX_rank_N_heap_bases.json and
 * PREFIX_rank_N_allocations.json of all ranks N. Without the first file of rank
 * 0 the result has no spaces. Returns 0, or -1 after printing a message. */
int trace_spaces_read(struct trace_spaces *spaces, const char *prefix);

/* Returns -1 after printing a message if `spaces` is empty. */
int trace_spaces_need(const struct trace_spaces *spaces, const char *prefix);
void trace_spaces_free(struct trace_spaces *spaces);

/* Whether the address is on a heap, as this rank has mapped them. If the size
 * of heaps is unknown, the nearest base below it counts. Allocations are at the
 * same offsets on all ranks. */
int trace_find_place(const struct trace_space *space, uint64_t address,
                     const struct trace_moment *moment,
                     struct trace_place *place_p);

/* Finds the place of an operation's address: on its rank's own heap, for the
 * memory of its target. Returns the space of its rank, or NULL if the address
 * is on no heap or the rank has no file. */
const struct trace_space *trace_place_of(const struct trace_spaces *spaces,
                                         const struct iris_trace_file *file,
                                         const struct iris_event *event,
                                         struct trace_moment *moment_p,
                                         struct trace_place *place_p);

/* Writes the name of the allocation that an operation accessed, or its place on
 * the heap. If asked, also writes the offset in it. Returns 0 if neither is
 * known. */
#define TRACE_LABEL 96
int trace_label(const struct trace_spaces *spaces,
                const struct iris_trace_file *file,
                const struct iris_event *event, int with_offset,
                char label_p[TRACE_LABEL]);

#endif /* IRIS_TOOLS_TRACE_PLACES_H */
