/* SPDX-License-Identifier: MIT
 *
 * What the parts of iris-trace share: figures of a trace, and reading one.
 */
#ifndef IRIS_TOOLS_TRACE_H
#define IRIS_TOOLS_TRACE_H

#include <stdint.h>
#include <stdio.h>

#include "trace/events.h"

/* ---- Figures ---- */

#define TRACE_BINS 512 /* 8 for each power of two of nanoseconds */
#define TRACE_TOP 20

/* Of all events with one name, or of all runs of one kernel. */
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
    size_t capacity;
};

struct trace_pair {
    uint64_t count;
    uint64_t bytes;
};

/* One of the longest waits. */
struct trace_wait {
    struct iris_event event;
};

struct trace_figures {
    struct iris_trace_file file;
    struct trace_rows events;
    struct trace_rows kernels;
    struct trace_pair *matrix; /* data from rank to rank */
    int num_ranks;
    struct trace_wait top[TRACE_TOP]; /* the longest first */
    int num_top;
    uint64_t num_events;
    uint64_t wait_ns;
    int64_t first_ns, last_ns;
};

/* Reads the file; with `more` calls that too, for each event. Complains on
 * stderr and returns -1 where it cannot. */
int trace_read(const char *path, struct trace_figures *figures_p,
               int (*more)(void *arg, const struct iris_event *event),
               void *arg);
void trace_free(struct trace_figures *figures);

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

/* ---- Options and parts ---- */

struct trace_options {
    const char *output; /* NULL: stdout */
    const char *bases;  /* prefix of heap-bases files */
    const char *format; /* of export */
    int rank;           /* -1: any */
    int quiet;          /* no progress */
    char **files;
    int num_files;
};

extern struct trace_options trace_options;

/* Each returns the exit status. */
int trace_summary(void);
int trace_resolve(void);
int trace_merge(void);
int trace_diff(void);
int trace_report(void);
int trace_export(void);

/* The file that --output names, or stdout; closed by trace_close(), which
 * returns the exit status and complains of a disk that is full. */
FILE *trace_open(void);
int trace_close(FILE *file);

#endif /* IRIS_TOOLS_TRACE_H */
