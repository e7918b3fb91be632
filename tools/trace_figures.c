/* SPDX-License-Identifier: MIT
 *
 * The figures of a trace, read once from front to end.
 */
#include "config.h"

#include "trace_figures.h"
#include "base/base.h"
#include "trace_parts.h"
#include "trace_transfers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROWS 4096
#define MAX_RANKS 4096
#define PROGRESS_EVENTS 1000000

struct reading {
    struct trace_figures *figures;
    const char *path;
    int (*more)(void *arg, const struct iris_event *event);
    void *arg;
};

/* ---- Rows ---- */

struct trace_row *trace_find(const struct trace_rows *rows, const char *name,
                             const char *cat)
{
    for (size_t i = 0; i < rows->count; i++) {
        if (strcmp(rows->rows[i].name, name) == 0 &&
            strcmp(rows->rows[i].cat, cat) == 0) {
            return &rows->rows[i];
        }
    }
    return NULL;
}

/* Returns NULL without memory. */
static struct trace_row *row_of(struct trace_rows *rows, const char *name,
                                const char *cat)
{
    struct trace_row *row = trace_find(rows, name, cat);
    void *more;

    if (row != NULL || rows->count == MAX_ROWS) {
        /* the last one has all others */
        return row != NULL ? row : &rows->rows[MAX_ROWS - 1];
    }
    more = iris_i_grow(rows->rows, rows->count, sizeof *row);
    if (more == NULL) {
        return NULL;
    }
    rows->rows = more;
    row = &rows->rows[rows->count++];
    memset(row, 0, sizeof *row);
    snprintf(row->name, sizeof row->name, "%s", name);
    snprintf(row->cat, sizeof row->cat, "%s", cat);
    return row;
}

/* Eight bins for each power of two. */
static unsigned bin_of(uint64_t ns)
{
    unsigned log = 0;

    if (ns < 8) {
        return (unsigned)ns;
    }
    while (ns >> log >= 16) {
        log++;
    }
    return log * 8 + (unsigned)(ns >> log);
}

static uint64_t start_of(unsigned bin)
{
    return bin < 16 ? bin : (uint64_t)(bin % 8 + 8) << (bin / 8 - 1);
}

static int add_to(struct trace_rows *rows, const char *name, const char *cat,
                  const struct iris_event *event)
{
    struct trace_row *row = row_of(rows, name, cat);
    uint64_t ns = (uint64_t)event->dur_ns;

    if (row == NULL) {
        return -1;
    }
    row->count++;
    row->bytes += event->payload;
    row->ns += ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    row->bins[bin_of(ns)]++;
    return 0;
}

uint64_t trace_percentile(const struct trace_row *row, int percent)
{
    uint64_t wanted = (row->count * (uint64_t)percent + 99) / 100, seen = 0;

    for (unsigned bin = 0; bin < TRACE_BINS; bin++) {
        seen += row->bins[bin];
        if (seen >= wanted && seen > 0) {
            uint64_t ns = start_of(bin);

            return ns > row->max_ns ? row->max_ns : ns;
        }
    }
    return row->max_ns;
}

static int compare_rows(const void *left, const void *right)
{
    const struct trace_row *a = left, *b = right;

    return (b->ns > a->ns) - (b->ns < a->ns);
}

void trace_sort(struct trace_rows *rows)
{
    if (rows->count > 1) {
        qsort(rows->rows, rows->count, sizeof *rows->rows, compare_rows);
    }
}

/* ---- Ranks and waits ---- */

/* Makes space for both ranks; those beyond the limit are left out. */
static int grow_matrix(struct trace_figures *figures, int rank, int other)
{
    int num_ranks = (rank > other ? rank : other) + 1;
    uint64_t *matrix;

    if (num_ranks <= figures->num_ranks || num_ranks > MAX_RANKS) {
        return 0;
    }
    matrix = calloc((size_t)num_ranks * (size_t)num_ranks, sizeof *matrix);
    if (matrix == NULL) {
        return -1;
    }
    for (int i = 0; i < figures->num_ranks; i++) {
        memcpy(&matrix[i * num_ranks], &figures->matrix[i * figures->num_ranks],
               (size_t)figures->num_ranks * sizeof *matrix);
    }
    free(figures->matrix);
    figures->matrix = matrix;
    figures->num_ranks = num_ranks;
    return 0;
}

static int add_transfer(void *arg, const struct iris_transfer_of *transfer)
{
    struct trace_figures *figures = arg;
    int from = transfer->from, to = transfer->to;
    int ret = grow_matrix(figures, from, to);

    if (ret == 0 && from < figures->num_ranks && to < figures->num_ranks) {
        figures->matrix[from * figures->num_ranks + to] += transfer->bytes;
    }
    return ret;
}

int trace_is_run(const struct iris_event *event)
{
    return strcmp(event->cat, "iris_kernel") == 0;
}

int trace_is_wait(const struct iris_event *event)
{
    return strcmp(event->name, "wait") == 0 ||
           strcmp(event->name, "barrier") == 0;
}

static void add_wait(struct trace_figures *figures,
                     const struct iris_event *event)
{
    int at = figures->num_top;

    figures->wait_ns += (uint64_t)event->dur_ns;
    while (at > 0 && figures->top[at - 1].dur_ns < event->dur_ns) {
        at--;
    }
    if (at == TRACE_TOP) {
        return;
    }
    figures->num_top += figures->num_top < TRACE_TOP;
    memmove(&figures->top[at + 1], &figures->top[at],
            (size_t)(figures->num_top - at - 1) * sizeof figures->top[0]);
    figures->top[at] = *event;
    figures->top[at].raw = NULL;
}

/* ---- Reading ---- */

static int take_event(void *arg, const struct iris_event *event)
{
    struct reading *reading = arg;
    struct trace_figures *figures = reading->figures;
    int ret = 0;

    if (event->ph == 's' || event->ph == 'f') {
        return reading->more != NULL ? reading->more(reading->arg, event) : 0;
    }
    if (event->ph != 'X' && event->ph != 'i') {
        return 0;
    }
    figures->num_events++;
    if (figures->num_events % PROGRESS_EVENTS == 0 && !trace_options.quiet &&
        isatty(2)) {
        fprintf(stderr, "\r%s: %llu million events", reading->path,
                (unsigned long long)(figures->num_events / PROGRESS_EVENTS));
    }
    if (event->ts_ns < figures->first_ns) {
        figures->first_ns = event->ts_ns;
    }
    if (event->ts_ns + event->dur_ns > figures->last_ns) {
        figures->last_ns = event->ts_ns + event->dur_ns;
    }
    ret = add_to(&figures->events, event->name, event->cat, event);
    if (trace_is_run(event)) {
        ret |= add_to(&figures->kernels, event->kernel, "run", event);
    } else if (event->kernel[0] != '\0' && strcmp(event->cat, "iris") == 0 &&
               trace_is_wait(event)) {
        ret |= add_to(&figures->kernels, event->kernel, "wait", event);
    }
    if (event->pid >= 0 && event->pid < MAX_RANKS) {
        ret |= grow_matrix(figures, event->pid, event->target_rank);
        ret |= iris_i_transfers(event, add_transfer, figures);
    }
    if (trace_is_wait(event)) {
        add_wait(figures, event);
    }
    if (ret != 0) {
        fprintf(stderr, "iris trace: no memory\n");
        return -1;
    }
    return reading->more != NULL ? reading->more(reading->arg, event) : 0;
}

int trace_read(const char *path, struct trace_figures *figures_p,
               int (*more)(void *arg, const struct iris_event *event),
               void *arg)
{
    struct reading reading = {figures_p, path, more, arg};
    struct iris_json *json = malloc(sizeof *json);
    struct iris_trace_file file = {0};
    int ret = json == NULL ? -1 : iris_i_json_open(json, path);

    if (ret == 0) {
        ret = iris_i_events_read(json, &file, take_event, &reading);
        iris_i_json_close(json);
    }
    if (figures_p->num_events >= PROGRESS_EVENTS && !trace_options.quiet &&
        isatty(2)) {
        fprintf(stderr, "\n");
    }
    if (ret != 0 && json != NULL && json->error[0] != '\0') {
        fprintf(stderr, "iris trace: %s\n", json->error);
    }
    free(json);
    figures_p->file = file;
    return ret;
}

void trace_free(struct trace_figures *figures)
{
    free(figures->events.rows);
    free(figures->kernels.rows);
    free(figures->matrix);
}

double trace_us(const struct trace_figures *figures, uint64_t ns)
{
    return (double)ns / (figures->file.ticks ? 100000.0 : 1000.0);
}
