/* SPDX-License-Identifier: MIT
 *
 * The figures of a trace, read once from front to end.
 */
#ifndef IRIS_TOOLS_TRACE_FIGURES_H
#define IRIS_TOOLS_TRACE_FIGURES_H

#include "trace/trace.h"

#include <stdint.h>

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

struct trace_figures {
    struct iris_trace_file file;
    struct trace_rows events;
    struct trace_rows kernels;
    uint64_t *matrix; /* bytes of data from rank to rank */
    int num_ranks;
    struct iris_event top[TRACE_TOP]; /* waits, the longest first */
    int num_top;
    uint64_t num_events;
    uint64_t wait_ns;
    int64_t first_ns, last_ns;
};

/* Reads the file. Calls `more`, if it is not NULL, for each event and for both
 * ends of arrows (ph s and f). Returns -1 after printing a message. */
int trace_read(const char *path, struct trace_figures *figures_p,
               int (*more)(void *arg, const struct iris_event *event),
               void *arg);
void trace_free(struct trace_figures *figures);

/* The row with that name, or NULL. */
struct trace_row *trace_find(const struct trace_rows *rows, const char *name,
                             const char *cat);

/* The time below which `percent` of the events are, to an eighth. */
uint64_t trace_percentile(const struct trace_row *row, int percent);

/* Nanoseconds of what the file has: upstream's cycles are 10 ns. */
double trace_us(const struct trace_figures *figures, uint64_t ns);

/* Whether it is a kernel's run. */
int trace_is_run(const struct iris_event *event);

/* Whether it is a wait, of a kernel or on a stream. */
int trace_is_wait(const struct iris_event *event);

/* The rows by time, the longest first. */
void trace_sort(struct trace_rows *rows);

#endif /* IRIS_TOOLS_TRACE_FIGURES_H */
