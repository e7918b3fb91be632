/* SPDX-License-Identifier: MIT
 *
 * Declarations that the files of iris trace share. iris sim reads traces, too.
 */
#ifndef IRIS_TOOLS_TRACE_H
#define IRIS_TOOLS_TRACE_H

#include "trace/trace.h"

#include <stdint.h>

/* ---- Options ---- */

struct trace_options {
    const char *output; /* NULL: stdout */
    const char *bases;  /* prefix of heap-bases files; NULL: the default */
    int rank;           /* -1: any */
    int quiet;          /* no progress */
};

extern struct trace_options trace_options;

/* Return the exit status. */
int trace_resolve(char **files, int num_files);
int trace_report(char **files, int num_files);
int trace_order(char **files, int num_files);

/* ---- Memory ---- */

struct trace_allocation {
    uint64_t offset;
    uint64_t bytes;
    int is_freed;
    int64_t born_ns, died_ns; /* in the trace's times */
    uint64_t most_end;        /* the latest end in the list up to this one */
    char name[64];
};

/* One rank's memory. */
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
    size_t count;
};

/* ---- Figures ---- */

#define TRACE_BINS 512 /* 8 for each power of two of nanoseconds */
#define TRACE_TOP 20

/* The totals of all events with one name, or of all runs of one kernel. */
struct trace_row {
    char name[64];
    char cat[16];
    uint64_t count;
    uint64_t bytes;
    uint64_t ns;
    uint64_t max_ns;
    uint32_t bins[TRACE_BINS];
};

struct trace_rows {
    struct trace_row *rows;
    size_t count;
};

/* The name of a track. */
struct trace_name {
    int pid;
    char tid[32];
    char name[64];
};

struct trace_figures {
    struct iris_trace_file file; /* of all files */
    struct trace_rows events;
    struct trace_rows kernels;
    uint64_t *matrix; /* bytes of data from rank to rank */
    int num_ranks;
    struct iris_event top[TRACE_TOP]; /* waits, the longest first */
    int num_top;
    uint64_t num_events;
    uint64_t wait_ns;
    int64_t first_ns, last_ns;
    struct trace_spaces spaces;
    struct trace_name *names;
    size_t num_names;
};

/* Reads the file. Calls `more`, if it is not NULL, for each event and for both
 * ends of arrows (ph s and f). Returns -1 after printing a message. */
int trace_read(const char *path, struct trace_figures *figures_p,
               int (*more)(void *arg, const struct iris_event *event),
               void *arg);
void trace_free(struct trace_figures *figures);

/* Says that there is no memory. Returns -1. */
int trace_fail_memory(void);

/* The row with that name, or NULL. */
struct trace_row *trace_find(const struct trace_rows *rows, const char *name,
                             const char *cat);

/* The time below which `percent` of the events are, to an eighth. */
uint64_t trace_percentile(const struct trace_row *row, int percent);

/* Nanoseconds of what the file has: upstream's cycles are 10 ns. */
double trace_us(const struct trace_figures *figures, uint64_t ns);

/* Takes the first range off a list of ranks such as "0-3,6". Returns the rest, or
 * NULL if there is no range. */
const char *trace_next_range(const char *text, long *first_p, long *last_p);

/* Whether it is a kernel's run. */
int trace_is_run(const struct iris_event *event);

/* Whether it is a wait, of a kernel or on a stream. */
int trace_is_wait(const struct iris_event *event);

/* The rows by time, the longest first. */
void trace_sort(struct trace_rows *rows);

/* ---- Transfers ---- */

/* Data that went one way. Loads and gets bring it from the target to the
 * calling rank. All other operations take it to the target. */
struct iris_transfer_of {
    int from, to;
    uint64_t bytes;
};

/* Calls `each` for every transfer of the event, including transfers of a rank
 * with itself. A wait transfers nothing. A collective's event represents its
 * own rank's sends in a direct exchange:
 * - its part to each other member;
 * - twice for an all_reduce (a reduce_scatter and an all_gather);
 * - for a broadcast, sends of the root only;
 * - for a reduce, all elements to the root. A collective of messages lists its
 *   sends. Returns 0, or the value of `each` if that is not 0. */
int iris_i_transfers(const struct iris_event *event,
                     int (*each)(void *arg,
                                 const struct iris_transfer_of *transfer),
                     void *arg);

int iris_i_is_collective(const struct iris_event *event);

/* Whether the event is a collective that lists its sends and receives: gather,
 * scatter, all_gatherv, all_to_allv, send, recv, send_recv. */
int iris_i_is_messages(const struct iris_event *event);

/* Reads the first message of the event's `sends` or `receives`. Returns the
 * rest of the text, or NULL without a message. */
const char *iris_i_next_message(const char *text, int *rank_p,
                                uint64_t *bytes_p);

/* Whether the calling rank waits for the data: loads and gets. */
int iris_i_is_fetch(const struct iris_event *event);

/* ---- Addresses ---- */

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

/* Replaces the memory by that of a trace, if `prefix` is one's name, or by the
 * files PREFIX_rank_N_heap_bases.json of all ranks N. Returns 0, or -1 after
 * printing a message. */
int trace_spaces_take(struct trace_spaces *spaces, const char *prefix);

/* Takes metadata of a trace. Sort after the last one. Returns -1 without
 * memory. */
int trace_spaces_add(struct trace_spaces *spaces,
                     const struct iris_event *event);
void trace_spaces_sort(struct trace_spaces *spaces);

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
 * the heap. If asked, also writes which of its words that was, as in ready[3],
 * or the offset in it. Returns 0 if neither is known. */
#define TRACE_LABEL 96
int trace_label(const struct trace_spaces *spaces,
                const struct iris_trace_file *file,
                const struct iris_event *event, int with_offset,
                char label_p[TRACE_LABEL]);

/* ---- trace_barriers.c ---- */

/* One barrier of a group, on all its members. */
struct trace_meeting {
    int count; /* members on which the trace has it */
    int last;  /* the rank that came last, then */
    int64_t first_ns, last_ns;
    int64_t end_ns; /* the first member left it then */
};

struct trace_group;

struct trace_barriers {
    struct trace_group *groups;
    size_t num_groups;
};

/* All events are added, in the order of the files; then, after a rewind, each
 * event finds its barrier, in the same order. NULL: it belongs to none, or the
 * trace lacks some. -1: no memory. */
int trace_barriers_add(struct trace_barriers *barriers,
                       const struct iris_event *event);
void trace_barriers_rewind(struct trace_barriers *barriers);
const struct trace_meeting *trace_barriers_next(struct trace_barriers *barriers,
                                                const struct iris_event *event);
void trace_barriers_free(struct trace_barriers *barriers);

#endif /* IRIS_TOOLS_TRACE_H */
