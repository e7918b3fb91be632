/* SPDX-License-Identifier: MIT
 *
 * iris trace: reads traces that iris_trace_export() or upstream Iris wrote, from
 * front to end, with little memory. This file has the options, the figures of a
 * trace, the transfers of its events, and summary, diff and merge.
 *
 * trace_read() calls back for each event; the event and its strings live until
 * the callback returns. Figures are added up over several files.
 */
#include "config.h"

#include "iris.h"
#include "trace.h"
#include "base/base.h"

#include <errno.h>
#include <limits.h>
#include <stdint.h>
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
static struct trace_row *find_or_add_row(struct trace_rows *rows,
                                         const char *name, const char *cat)
{
    struct trace_row *row = trace_find(rows, name, cat);

    if (row != NULL || rows->count == MAX_ROWS) {
        /* the last one has all others */
        return row != NULL ? row : &rows->rows[MAX_ROWS - 1];
    }
    row = iris_i_grow(&rows->rows, &rows->count, sizeof *row);
    if (row != NULL) {
        snprintf(row->name, sizeof row->name, "%s", name);
        snprintf(row->cat, sizeof row->cat, "%s", cat);
    }
    return row;
}

/* Eight bins for each power of two. */
static unsigned find_bin(uint64_t ns)
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

static uint64_t find_bin_start(unsigned bin)
{
    return bin < 16 ? bin : (uint64_t)(bin % 8 + 8) << (bin / 8 - 1);
}

static int add_event(struct trace_rows *rows, const char *name, const char *cat,
                     const struct iris_event *event)
{
    struct trace_row *row = find_or_add_row(rows, name, cat);
    uint64_t ns = (uint64_t)event->dur_ns;

    if (row == NULL) {
        return -1;
    }
    row->count++;
    row->bytes += event->payload;
    row->ns += ns;
    row->max_ns = ns > row->max_ns ? ns : row->max_ns;
    row->bins[find_bin(ns)]++;
    return 0;
}

uint64_t trace_percentile(const struct trace_row *row, int percent)
{
    uint64_t wanted = (row->count * (uint64_t)percent + 99) / 100, seen = 0;

    for (unsigned bin = 0; bin < TRACE_BINS; bin++) {
        seen += row->bins[bin];
        if (seen >= wanted && seen > 0) {
            uint64_t ns = find_bin_start(bin);

            return ns > row->max_ns ? row->max_ns : ns;
        }
    }
    return row->max_ns;
}

static int compare_rows(const void *left, const void *right)
{
    const struct trace_row *a = left, *b = right;

    return IRIS_COMPARE(b->ns, a->ns);
}

void trace_sort(struct trace_rows *rows)
{
    iris_i_sort(rows->rows, rows->count, sizeof *rows->rows, compare_rows);
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

static void add_long_wait(struct trace_figures *figures,
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

int trace_fail_memory(void)
{
    fprintf(stderr, "iris trace: no memory\n");
    return -1;
}

/* Names of tracks, and memory. */
static int take_metadata(struct trace_figures *figures,
                         const struct iris_event *event)
{
    struct trace_name *name;

    if (strcmp(event->name, "thread_name") != 0) {
        return trace_spaces_add(&figures->spaces, event) != 0
                   ? trace_fail_memory()
                   : 0;
    }
    name = iris_i_grow(&figures->names, &figures->num_names, sizeof *name);
    if (name == NULL) {
        return trace_fail_memory();
    }
    name->pid = event->pid;
    memcpy(name->tid, event->tid, sizeof name->tid);
    memcpy(name->name, event->label, sizeof name->name);
    return 0;
}

static int take_event(void *arg, const struct iris_event *event)
{
    struct reading *reading = arg;
    struct trace_figures *figures = reading->figures;
    int ret = 0;

    if (event->ph == 's' || event->ph == 'f') {
        return reading->more != NULL ? reading->more(reading->arg, event) : 0;
    }
    if (event->ph == 'M') {
        return take_metadata(figures, event);
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
    ret = add_event(&figures->events, event->name, event->cat, event);
    if (trace_is_run(event)) {
        ret |= add_event(&figures->kernels, event->kernel, "run", event);
    } else if (event->kernel[0] != '\0' && strcmp(event->cat, "iris") == 0 &&
               trace_is_wait(event)) {
        ret |= add_event(&figures->kernels, event->kernel, "wait", event);
    }
    if (event->pid >= 0 && event->pid < MAX_RANKS) {
        ret |= grow_matrix(figures, event->pid, event->target_rank);
        ret |= iris_i_transfers(event, add_transfer, figures);
    }
    if (trace_is_wait(event)) {
        add_long_wait(figures, event);
    }
    if (ret != 0) {
        return trace_fail_memory();
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
    trace_spaces_sort(&figures_p->spaces);
    figures_p->file = file;
    return ret;
}

void trace_free(struct trace_figures *figures)
{
    free(figures->events.rows);
    free(figures->kernels.rows);
    free(figures->matrix);
    free(figures->names);
    trace_spaces_free(&figures->spaces);
}

double trace_us(const struct trace_figures *figures, uint64_t ns)
{
    return (double)ns / (figures->file.ticks ? 100000.0 : 1000.0);
}

/* ---- Transfers ---- */

static int is_any(const char *name, const char *const *names)
{
    while (*names != NULL && strcmp(name, *names) != 0) {
        names++;
    }
    return *names != NULL;
}

int iris_i_is_fetch(const struct iris_event *event)
{
    static const char *const names[] = {"load", "get", "get on stream",
                                        "host broadcast", NULL};

    return is_any(event->name, names);
}

int iris_i_is_collective(const struct iris_event *event)
{
    return event->members[0] != '\0' && event->kernel[0] != '\0';
}

static int moves_nothing(const struct iris_event *event)
{
    static const char *const names[] = {"wait", "wait on stream", "barrier",
                                        "workgroup collective", NULL};

    return event->target_rank < 0 || event->pid < 0 ||
           is_any(event->name, names);
}

/* ---- Collectives ---- */

struct members {
    int own; /* the event's rank's place; -1: it is no member */
    int count;
    int ranks[MAX_RANKS];
};

const char *trace_next_range(const char *text, long *first_p, long *last_p)
{
    char *end;

    *first_p = *last_p = strtol(text, &end, 10);
    if (end == text) {
        return NULL;
    }
    if (*end == '-') {
        *last_p = strtol(end + 1, &end, 10);
    }
    return end + (*end == ',');
}

/* Larger numbers are no ranks. */
static void read_members(const struct iris_event *event,
                         struct members *members_p)
{
    const char *text = event->members;
    long first, last;

    members_p->own = -1;
    members_p->count = 0;
    while ((text = trace_next_range(text, &first, &last)) != NULL &&
           members_p->count < MAX_RANKS) {
        last = last < MAX_RANKS ? last : MAX_RANKS - 1;
        for (; first >= 0 && first <= last && members_p->count < MAX_RANKS;
             first++) {
            members_p->own =
                first == event->pid ? members_p->count : members_p->own;
            members_p->ranks[members_p->count++] = (int)first;
        }
    }
}

/* Bytes of the part that is the member's. */
static uint64_t find_share(uint64_t bytes, int count, int member)
{
    return bytes / (uint64_t)count +
           ((uint64_t)member < bytes % (uint64_t)count);
}

static uint64_t sent_to(const struct iris_event *event,
                        const struct members *members, int to)
{
    if (strcmp(event->kernel, "iris_reduce") == 0) {
        return members->ranks[to] == event->target_rank ? event->payload : 0;
    }
    if (strcmp(event->kernel, "iris_all_reduce") == 0) {
        return find_share(event->payload, members->count, to) +
               find_share(event->payload, members->count, members->own);
    }
    return strcmp(event->kernel, "iris_ccl_broadcast") == 0 &&
                   event->target_rank != event->pid
               ? 0
               : event->payload;
}

int iris_i_is_messages(const struct iris_event *event)
{
    static const char *const kernels[] = {
        "iris_gather", "iris_scatter", "iris_all_gatherv", "iris_all_to_allv",
        "iris_send",   "iris_recv",    "iris_send_recv",   NULL};

    return event->members[0] != '\0' && is_any(event->kernel, kernels);
}

const char *iris_i_next_message(const char *text, int *rank_p,
                                uint64_t *bytes_p)
{
    unsigned long long bytes;
    int rank, length = 0;

    if (sscanf(text, "%d:%llu%n", &rank, &bytes, &length) != 2 || rank < 0 ||
        rank >= MAX_RANKS) {
        return NULL;
    }
    *rank_p = rank;
    *bytes_p = bytes;
    return text + length + (text[length] == ',');
}

static int visit_messages(const struct iris_event *event,
                          int (*each)(void *arg,
                                      const struct iris_transfer_of *transfer),
                          void *arg)
{
    struct iris_transfer_of one = {.from = event->pid};
    const char *text = event->sends;
    int ret = 0;

    while (ret == 0 &&
           (text = iris_i_next_message(text, &one.to, &one.bytes)) != NULL) {
        ret = each(arg, &one);
    }
    return ret;
}

static int visit_collective(
    const struct iris_event *event,
    int (*each)(void *arg, const struct iris_transfer_of *transfer), void *arg)
{
    struct members *members = malloc(sizeof *members);
    int ret = 0;

    if (members == NULL) {
        return -1;
    }
    read_members(event, members);
    for (int i = 0; ret == 0 && members->own >= 0 && i < members->count; i++) {
        const struct iris_transfer_of one = {event->pid, members->ranks[i],
                                             sent_to(event, members, i)};

        if (i != members->own && one.bytes != 0) {
            ret = each(arg, &one);
        }
    }
    free(members);
    return ret;
}

int iris_i_transfers(const struct iris_event *event,
                     int (*each)(void *arg,
                                 const struct iris_transfer_of *transfer),
                     void *arg)
{
    struct iris_transfer_of one = {event->pid, event->target_rank,
                                   event->payload};

    if (event->ph != 'X' && event->ph != 'i') {
        return 0;
    }
    if (iris_i_is_messages(event)) {
        return visit_messages(event, each, arg);
    }
    if (iris_i_is_collective(event)) {
        return visit_collective(event, each, arg);
    }
    if (moves_nothing(event)) {
        return 0;
    }
    if (iris_i_is_fetch(event)) {
        one.from = event->target_rank;
        one.to = event->pid;
    }
    return each(arg, &one);
}

/* ---- Summary and difference ---- */

#define MATRIX_RANKS 16 /* a larger one is no table any more */

static void print_rows(const struct trace_figures *figures,
                       const struct trace_rows *rows, const char *title)
{
    printf("\n%-28s %10s %14s %12s %9s %9s %9s %10s\n", title, "count", "bytes",
           "total us", "p50 us", "p90 us", "p99 us", "max us");
    for (size_t i = 0; i < rows->count; i++) {
        const struct trace_row *row = &rows->rows[i];
        char name[96];

        snprintf(name, sizeof name, "%s%s%s", row->name,
                 strcmp(row->cat, "iris") == 0 ? "" : "  ",
                 strcmp(row->cat, "iris") == 0 ? "" : row->cat);
        printf("%-28s %10llu %14llu %12.1f %9.2f %9.2f %9.2f %10.2f\n", name,
               (unsigned long long)row->count, (unsigned long long)row->bytes,
               trace_us(figures, row->ns),
               trace_us(figures, trace_percentile(row, 50)),
               trace_us(figures, trace_percentile(row, 90)),
               trace_us(figures, trace_percentile(row, 99)),
               trace_us(figures, row->max_ns));
    }
}

static void print_matrix(const struct trace_figures *figures)
{
    int shown =
        figures->num_ranks < MATRIX_RANKS ? figures->num_ranks : MATRIX_RANKS;

    printf(
        "\nbytes of data that went from the rank at the left to the one above%s"
        "\n%8s",
        shown < figures->num_ranks ? " (the first 16)" : "", "");
    for (int to = 0; to < shown; to++) {
        printf(" %12d", to);
    }
    printf("\n");
    for (int from = 0; from < shown; from++) {
        printf("%8d", from);
        for (int to = 0; to < shown; to++) {
            printf(" %12llu", (unsigned long long)figures
                                  ->matrix[from * figures->num_ranks + to]);
        }
        printf("\n");
    }
}

static void print_clocks(const struct iris_trace_file *total)
{
    if (total->clock_error_ns < 0 || total->device_error_ns < 0) {
        printf("the trace does not say how exact its clocks are\n");
    } else {
        printf("clocks are exact to %lld ns between ranks, %lld ns to "
               "devices\n",
               (long long)total->clock_error_ns,
               (long long)total->device_error_ns);
    }
}

/* Each returns the exit status. */
static int summarize_traces(char **files, int num_files)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    struct iris_trace_file total = {0};
    int ret = 0;

    for (int i = 0; ret == 0 && i < num_files; i++) {
        ret = trace_read(files[i], &figures, NULL, NULL);
        iris_i_events_add_file(&total, &figures.file);
    }
    if (ret != 0) {
        trace_free(&figures);
        return 1;
    }
    trace_sort(&figures.events);
    trace_sort(&figures.kernels);
    printf("%llu events of %d ranks in %.1f us; %.1f us in waits; %llu events "
           "were dropped\n",
           (unsigned long long)figures.num_events, figures.num_ranks,
           trace_us(&figures,
                    figures.num_events == 0
                        ? 0
                        : (uint64_t)(figures.last_ns - figures.first_ns)),
           trace_us(&figures, figures.wait_ns),
           (unsigned long long)total.dropped);
    print_clocks(&total);
    print_rows(&figures, &figures.events, "operation");
    print_rows(&figures, &figures.kernels, "kernel");
    print_matrix(&figures);
    trace_free(&figures);
    return tool_close("iris trace", NULL, stdout);
}

/* ---- Two traces ---- */

static const struct trace_row none;

static void print_difference(const struct trace_figures *both,
                             const struct trace_row *name,
                             const struct trace_row *a,
                             const struct trace_row *b)
{
    double before = trace_us(&both[0], a->ns),
           after = trace_us(&both[1], b->ns);
    char ratio[32] = "-";

    if (before > 0) {
        snprintf(ratio, sizeof ratio, "%.2f", after / before);
    }
    printf("%-28s %10llu %10llu %12.1f %12.1f %+12.1f %8s\n", name->name,
           (unsigned long long)a->count, (unsigned long long)b->count, before,
           after, after - before, ratio);
}

static void print_differences(const struct trace_figures *both,
                              const struct trace_rows *a,
                              const struct trace_rows *b, const char *title)
{
    printf("\n%-28s %10s %10s %12s %12s %12s %8s\n", title, "count", "count",
           "total us", "total us", "more us", "ratio");
    for (size_t i = 0; i < a->count; i++) {
        const struct trace_row *other =
            trace_find(b, a->rows[i].name, a->rows[i].cat);

        print_difference(both, &a->rows[i], &a->rows[i],
                         other == NULL ? &none : other);
    }
    for (size_t i = 0; i < b->count; i++) {
        if (trace_find(a, b->rows[i].name, b->rows[i].cat) == NULL) {
            print_difference(both, &b->rows[i], &none, &b->rows[i]);
        }
    }
}

static int compare_traces(char **files, int num_files)
{
    struct trace_figures both[2] = {{.first_ns = INT64_MAX},
                                    {.first_ns = INT64_MAX}};
    int ret = 0;

    (void)num_files;
    for (int i = 0; ret == 0 && i < 2; i++) {
        ret = trace_read(files[i], &both[i], NULL, NULL);
        trace_sort(&both[i].events);
        trace_sort(&both[i].kernels);
    }
    if (ret == 0) {
        print_differences(both, &both[0].events, &both[1].events, "operation");
        print_differences(both, &both[0].kernels, &both[1].kernels, "kernel");
    }
    trace_free(&both[0]);
    trace_free(&both[1]);
    return ret != 0 ? 1 : tool_close("iris trace", NULL, stdout);
}

/* ---- Command line ---- */

struct trace_options trace_options = {.rank = -1};

static int merge_traces(char **files, int num_files)
{
    struct iris_merge_report report;

    if (trace_options.output == NULL) {
        fprintf(stderr, "iris trace merge: -o OUT is missing\n");
        return 2;
    }
    if (iris_i_merge(files, num_files, trace_options.output, &report) != 0) {
        fprintf(stderr, "iris trace: %s\n", report.error);
        return 1;
    }
    printf("%s: %llu events; of %llu waits %llu are joined with their signal",
           trace_options.output, (unsigned long long)report.events,
           (unsigned long long)report.waits, (unsigned long long)report.joined);
    if (report.early != 0) {
        printf(", %llu of which seem to end before it, by %lld ns at most",
               (unsigned long long)report.early,
               (long long)report.worst_early_ns);
    }
    if (report.early != 0 && report.clock_error_ns >= 0 &&
        report.device_error_ns >= 0) {
        printf(" (clocks are exact to %lld ns)",
               (long long)(report.clock_error_ns + 2 * report.device_error_ns));
    }
    printf("\n");
    return tool_close("iris trace", NULL, stdout);
}

static error_t parse_trace(int key, char *arg, struct argp_state *state)
{
    switch (key) {
    case 'b':
        trace_options.bases = arg;
        return 0;
    case 'o':
        trace_options.output = arg;
        return 0;
    case 'q':
        trace_options.quiet = 1;
        return 0;
    case 'r':
        trace_options.rank = (int)tool_number(state, "rank", arg, 0, INT_MAX);
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

int tool_trace(int argc, char **argv)
{
    static const struct argp_option rows[] = {
        {"bases", 'b', "PREFIX|TRACE", 0,
         "The trace that has the heaps and allocations, or the prefix of files "
         "PREFIX_rank_0_heap_bases.json (default: the trace itself; of a list, "
         "iris, the default of IRIS_HEAP_BASES_PREFIX)",
         0},
        {"output", 'o', "FILE", 0, "Write to FILE", 0},
        {"quiet", 'q', NULL, 0, "Show no progress on long files", 0},
        {"rank", 'r', "RANK", 0, "Addresses are in this rank's address space",
         0},
        {0},
    };
    static const struct argp argp = {
        .options = rows,
        .parser = parse_trace,
        .args_doc = "summary TRACE...\nresolve [FILE]\nmerge -o OUT TRACE...\n"
                    "diff TRACE TRACE\nreport -o OUT.html TRACE...\n"
                    "order TRACE...",
        .doc =
            "Reads traces of Iris programs, also compressed ones.\n\n"
            "summary: operations, bytes, times, kernels, bytes from rank to "
            "rank.\n"
            "resolve: the rank, heap offset and allocation of each address "
            "in a trace (*.json, *.json.gz), or on each line of another file "
            "or stdin.\n"
            "merge: one trace of all ranks' files, with arrows from signals "
            "to waits.\n"
            "diff: operations that take longer in the second trace.\n"
            "report: a page with a timeline, arrows from launches and "
            "signals, the matrix and the longest waits.\n"
            "order: accesses of kernels that nothing orders; "
            "docs/checking.md.\v"
            "Exit status: 0; 1 if a file cannot be read or written, or there "
            "are "
            "accesses without order; 2 for a wrong command line.",
    };
    static const struct tool_part parts[] = {
        {"summary", summarize_traces, 1, 4096},
        {"resolve", trace_resolve, 0, 1},
        {"merge", merge_traces, 1, 4096},
        {"diff", compare_traces, 2, 2},
        {"report", trace_report, 1, 4096},
        {"order", trace_order, 1, 4096},
        {0},
    };

    return tool_run_part(&argp, argc, argv, parts);
}
