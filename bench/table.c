/* SPDX-License-Identifier: MIT
 *
 * The table for people, and the progress line.
 */
#include "config.h"

#include "report.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A run gets a progress line after this time. */
#define PROGRESS_AFTER_NS 1000000000

const char *bench_bytes_string(size_t bytes, char *text)
{
    static const char units[] = "\0KMGT";
    size_t unit = 0;

    while (bytes >= 1024 && bytes % 1024 == 0 && unit < sizeof units - 2) {
        bytes /= 1024;
        unit++;
    }
    snprintf(text, 24, "%zu%.1s", bytes, &units[unit]);
    return text;
}

void bench_table_begin(struct bench *b)
{
    struct bench_report *report = b->report;
    const struct bench_metadata *about = &report->metadata;

    fprintf(report->out,
            "iris bench %s, backend %s, ranks %d (%s), workgroups %u of %u "
            "lanes, compute units %d\n%s: %s, %d cores, %s, %s\n",
            about->version, about->backend, b->num_ranks, about->ranks_as,
            b->workgroups, b->options.block, about->cus, about->hostname,
            about->cpu, about->cores, about->compiler, about->date);
}

static bool is_same(const char *a, const char *b)
{
    return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static void print_group(struct bench_report *report,
                        const struct bench_row *row)
{
    for (size_t g = 0; bench_groups[g] != NULL; g++) {
        if (is_same(bench_groups[g]->name, row->group)) {
            fprintf(report->out, "\n%s, %s: %s\n", row->group,
                    bench_pairs_names[row->pairs], bench_groups[g]->text);
        }
    }
}

/* Prints column heads if they differ from the last ones. */
static void print_head(struct bench_report *report, const struct bench_row *row)
{
    const struct bench_row *last = &report->last;
    char rate[32] = "", reference[32] = "";
    bool same_group =
        is_same(last->group, row->group) && last->pairs == row->pairs;

    if (same_group && is_same(last->rate_unit, row->rate_unit) &&
        (row->bytes == 0 || is_same(last->op, row->op))) {
        return;
    }
    if (!same_group) {
        print_group(report, row);
    }
    if (row->calls != NULL || row->shape != NULL) {
        return; /* print_collective() and print_fused() print their own */
    }
    snprintf(rate, sizeof rate, "%s", row->rate_unit);
    if (row->reference != NULL) {
        snprintf(reference, sizeof reference, "%s %s", row->reference,
                 row->rate_unit);
    }
    fprintf(report->out, "%-16s %10s %12s %12s %12s", "operation",
            row->bytes != 0 ? "bytes" : "type", "median us", "min us",
            "p90 us");
    if (rate[0] != '\0') {
        fprintf(report->out, " %10s", rate);
    }
    if (row->reference != NULL) {
        fprintf(report->out, " %12s %7s", reference, "ratio");
    }
    fprintf(report->out, "\n");
}

/* Collectives compare times, not rates. The last columns are the peer's time,
 * and this library's time divided by it. */
static void print_collective_row(struct bench_report *report,
                                 const struct bench_row *row)
{
    const struct bench_row *last = &report->last;
    char bytes[24], how[64], peer[48];

    if (!is_same(last->op, row->op) || last->calls == NULL) {
        snprintf(peer, sizeof peer, "%s us",
                 row->reference != NULL ? row->reference : "");
        fprintf(report->out, "\n%-14s %-34s %8s %11s %11s %11s %9s %9s",
                "collective", "type, variant, calls", "bytes", "median us",
                "min us", "p90 us", "GB/s", "bus GB/s");
        fprintf(report->out, row->reference != NULL ? " %19s %7s\n" : "\n",
                peer, "time x");
    }
    snprintf(how, sizeof how, "%s, %s, %s", iris_dtype_name(row->dtype),
             row->variant, row->calls);
    fprintf(report->out, "%-14s %-34s %8s %11.3f %11.3f %11.3f %9.3f %9.3f",
            row->op, how, bench_bytes_string(row->bytes, bytes), row->median_us,
            row->min_us, row->p90_us, row->rate, row->bus_rate);
    if (row->reference != NULL) {
        fprintf(report->out, " %19.3f %7.3f", row->references_us[0],
                row->median_us / row->references_us[0]);
    }
}

/* Prints the times of one call: its parts, the parts in sequence, and fused. */
static void print_fused_row(struct bench_report *report,
                            const struct bench_row *row)
{
    const double *others_us = row->references_us;
    char what[64];

    if (!is_same(report->last.op, row->op)) {
        fprintf(report->out, "\n%-21s %-24s %11s %13s %11s %11s %7s %8s %8s",
                "operation", "MxNxK, type", "product us", "collective us",
                "unfused us", "fused us", "time x", "of bound", "GFLOP/s");
        fprintf(report->out, row->peer != NULL ? " %s us\n" : "\n", row->peer);
    }
    snprintf(what, sizeof what, "%s, %s", row->variant,
             iris_dtype_name(row->dtype));
    fprintf(report->out,
            "%-21s %-24s %11.3f %13.3f %11.3f %11.3f %7.3f %8.3f %8.2f",
            row->op, what, others_us[BENCH_PRODUCT],
            others_us[BENCH_COLLECTIVE], others_us[BENCH_UNFUSED],
            row->median_us, row->median_us / others_us[BENCH_UNFUSED],
            bench_bound_share(row), row->rate);
    if (row->peer != NULL) {
        fprintf(report->out, " %11.3f", others_us[BENCH_PEER]);
    }
}

static void print_other(struct bench_report *report,
                        const struct bench_row *row)
{
    bool has_both = row->bytes != 0 && row->variant[0] != '\0';
    char name[64], bytes[24];

    snprintf(name, sizeof name, "%s%s%s", row->op, has_both ? ", " : "",
             has_both ? row->variant : "");
    fprintf(report->out, "%-16s %10s %12.4f %12.4f %12.4f", name,
            row->bytes != 0 ? bench_bytes_string(row->bytes, bytes)
                            : row->variant,
            row->median_us, row->min_us, row->p90_us);
    if (row->rate_unit[0] != '\0') {
        fprintf(report->out, " %10.4f", row->rate);
    }
    if (row->reference != NULL) {
        fprintf(report->out, " %12.4f %7.3f", row->reference_rate, row->ratio);
    }
}

void bench_table_row(struct bench *b, const struct bench_row *row)
{
    struct bench_report *report = b->report;

    print_head(report, row);
    (row->calls != NULL   ? print_collective_row
     : row->shape != NULL ? print_fused_row
                          : print_other)(report, row);
    if (row->wrong != 0) {
        fprintf(report->out, "  %llu VALUES WRONG",
                (unsigned long long)row->wrong);
    }
    fprintf(report->out, "\n");
    report->last = *row;
}

void bench_table_verdict(struct bench *b, const struct bench_verdict *verdict)
{
    struct bench_report *report = b->report;

    if (report->verdicts == 0) {
        fprintf(report->out, "\n%-58s %-10s %-12s %s\n", "target", "limit",
                "measured", "held");
    }
    fprintf(report->out, "%-58s %-10s %-12s %s\n", verdict->target,
            verdict->limit, verdict->measured, verdict->held);
}

void bench_progress(struct bench *b, const struct bench_row *row)
{
    char bytes[24];

    if (b->rank != 0 || !b->options.progress || isatty(STDERR_FILENO) != 1 ||
        bench_now_ns() - b->start_ns < PROGRESS_AFTER_NS) {
        return;
    }
    fprintf(stderr, "\r\033[K");
    if (row != NULL) {
        fprintf(stderr, "[%zu/%zu] %s %s%s", b->points_done, b->points, row->op,
                row->variant,
                row->bytes != 0 ? bench_bytes_string(row->bytes, bytes) : "");
    }
    fflush(stderr);
}
