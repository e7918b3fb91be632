/* SPDX-License-Identifier: MIT
 *
 * iris trace summary and diff: tables of one trace, and of two.
 */
#include "config.h"

#include "trace_figures.h"
#include "trace_parts.h"

#include <stdio.h>
#include <string.h>

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

int trace_summary(void)
{
    struct trace_figures figures = {.first_ns = INT64_MAX};
    struct iris_trace_file total = {0};
    int ret = 0;

    for (int i = 0; ret == 0 && i < trace_options.num_files; i++) {
        ret = trace_read(trace_options.files[i], &figures, NULL, NULL);
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
    return trace_close(stdout);
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

int trace_diff(void)
{
    struct trace_figures both[2] = {{.first_ns = INT64_MAX},
                                    {.first_ns = INT64_MAX}};
    int ret = 0;

    for (int i = 0; ret == 0 && i < 2; i++) {
        ret = trace_read(trace_options.files[i], &both[i], NULL, NULL);
        trace_sort(&both[i].events);
        trace_sort(&both[i].kernels);
    }
    if (ret == 0) {
        print_differences(both, &both[0].events, &both[1].events, "operation");
        print_differences(both, &both[0].kernels, &both[1].kernels, "kernel");
    }
    trace_free(&both[0]);
    trace_free(&both[1]);
    return ret != 0 ? 1 : trace_close(stdout);
}
