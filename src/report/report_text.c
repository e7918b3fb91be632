/* SPDX-License-Identifier: MIT
 *
 * A report for people: the cause first, then every rank.
 */
#include "config.h"

#include "report/report.h"

#include "base/base.h"

#include <string.h>

#define LINE 900
/* Up to this number, ranks in the same state have separate lines. */
#define ALIKE 4

static double ago(const struct iris_report *report, int64_t ns)
{
    return ns >= report->now_ns ? 0 : (double)(report->now_ns - ns) / 1e9;
}

static void print_call(const struct iris_report *report, const char *what,
                       const struct iris_record_call *call, FILE *out)
{
    char text[LINE];

    if (call->id == 0) {
        return;
    }
    iris_i_describe_call(call, text, sizeof text);
    fprintf(out, "    %s call %llu, %s, %.1f s ago\n", what,
            (unsigned long long)call->id, text,
            ago(report, call->end_ns != 0 ? call->end_ns : call->begin_ns));
}

static void print_calls(const struct iris_report *report,
                        const struct iris_report_rank *rank, FILE *out)
{
    for (int i = 0; i < rank->num_open; i++) {
        print_call(report, "under way:", &rank->open[i], out);
    }
    if (rank->begun.end_ns != 0 && rank->begun.id != rank->finished.id) {
        print_call(report, "last begun:", &rank->begun, out);
    }
    print_call(report, "last finished:", &rank->finished, out);
}

static void print_streams(const struct iris_report *report,
                          const struct iris_report_rank *rank, FILE *out)
{
    for (int i = 0; i < rank->num_streams; i++) {
        const struct iris_record_stream *stream = &rank->streams[i];

        fprintf(out, "    stream %llu: %llu launched",
                (unsigned long long)stream->number,
                (unsigned long long)rank->launched[i]);
        if (stream->begun != 0) {
            fprintf(out, ", %llu begun, %llu done",
                    (unsigned long long)stream->begun,
                    (unsigned long long)stream->done);
        }
        if (stream->begun != stream->done) {
            fprintf(out, "; at kernel %s, grid %u, for %.1f s", stream->kernel,
                    stream->grid, ago(report, stream->begin_ns));
        }
        fprintf(out, "\n");
    }
}

static void print_waits(const struct iris_report *report, int i, FILE *out)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    char text[LINE];

    for (int w = 0; w < rank->num_waits; w++) {
        const struct iris_record_wait *wait = &rank->waits[w];

        if (!rank->waits_live[w] && !wait->ended) {
            continue;
        }
        iris_i_describe_wait(wait, text, sizeof text);
        fprintf(out, "    %s: %s\n", wait->ended ? "ended" : "wait", text);
        if (wait->begun != 0) {
            fprintf(out, "      of %u workgroups %u had begun, %u were done\n",
                    wait->grid, wait->begun, wait->done);
        }
    }
}

static void print_rank(const struct iris_report *report, int i, FILE *out)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    char doing[LINE];

    iris_i_describe_doing(report, i, doing, sizeof doing);
    fprintf(out, "  rank %d (pid %d%s%s, %s, %s): %s\n", i, rank->pid,
            rank->host[0] == '\0' ? "" : " on ", rank->host,
            iris_i_process_name(rank->process), iris_i_state_name(rank->state),
            doing);
    if (!rank->known) {
        return;
    }
    fprintf(out,
            "    %llu calls, %llu of them collective, the last %s; "
            "heap %llu of %llu bytes used\n",
            (unsigned long long)rank->host_calls,
            (unsigned long long)rank->calls,
            rank->call[0] == '\0' ? "none" : rank->call,
            (unsigned long long)rank->heap_used,
            (unsigned long long)rank->heap_bytes);
    print_calls(report, rank, out);
    print_streams(report, rank, out);
    print_waits(report, i, out);
}

/* ---- Ranks that share a line ---- */

enum sort {
    ALONE,   /* has its own lines */
    GOES_ON, /* no part of it waits */
    WAITS,   /* only its host waits, in a call of a group */
};

/* *wait_p gets its only wait that counts. */
static enum sort sort_of(const struct iris_report *report, int i,
                         const struct iris_record_wait **wait_p)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    int waits = 0;

    for (int w = 0; w < rank->num_waits; w++) {
        if (rank->waits_live[w] || rank->waits[w].ended) {
            *wait_p = &rank->waits[w];
            waits++;
        }
    }
    if (i == report->root || !rank->known || rank->state != IRIS_RANK_RUNNING ||
        iris_i_rank_is_lost(rank) || iris_i_rank_is_stopped(rank)) {
        return ALONE;
    }
    return waits == 0                                             ? GOES_ON
           : waits == 1 && (*wait_p)->kind == IRIS_WAIT_AGREEMENT ? WAITS
                                                                  : ALONE;
}

static int is_like(const struct iris_report *report, int i, int j)
{
    const struct iris_record_wait *a = NULL, *b = NULL;
    enum sort sort = sort_of(report, i, &a);

    return sort != ALONE && sort_of(report, j, &b) == sort &&
           (sort == GOES_ON ||
            (strcmp(a->name, b->name) == 0 && a->group == b->group &&
             a->num_expected == b->num_expected && a->ended == b->ended &&
             memcmp(a->expected, b->expected, sizeof a->expected) == 0));
}

/* "0-3, 5" */
static void print_numbers(const char *marked, int count, FILE *out)
{
    const char *comma = "";

    for (int i = 0; i < count; i++) {
        int last = i;

        if (!marked[i]) {
            continue;
        }
        while (last + 1 < count && marked[last + 1]) {
            last++;
        }
        fprintf(out, "%s%d", comma, i);
        if (last > i) {
            fprintf(out, "-%d", last);
        }
        comma = ", ";
        i = last;
    }
}

/* Prints rank i and the ranks in the same state, if there are many, and marks
 * them as printed. */
static void print_alike(const struct iris_report *report, int i, char *told,
                        FILE *out)
{
    const struct iris_record_wait *wait = NULL;
    char like[report->num_ranks], text[LINE];
    int count = 0;

    for (int j = 0; j < report->num_ranks; j++) {
        like[j] =
            (char)(j >= i && !told[j] && (j == i || is_like(report, i, j)));
        count += like[j];
    }
    if (count <= ALIKE) {
        print_rank(report, i, out);
        return;
    }
    fprintf(out, "  %d ranks (", count);
    print_numbers(like, report->num_ranks, out);
    if (sort_of(report, i, &wait) == GOES_ON) {
        fprintf(out, "): nothing of them waits\n");
    } else {
        iris_i_describe_wait(wait, text, sizeof text);
        fprintf(out, "): each %s\n", text);
    }
    for (int j = i; j < report->num_ranks; j++) {
        told[j] = told[j] || like[j];
    }
}

void iris_i_report_text(const struct iris_report *report, FILE *out)
{
    char told[report->num_ranks], name[IRIS_REPORT_NAME];
    locale_t before = iris_i_c_locale_enter();

    iris_i_report_name(report, name);
    fprintf(out, "%s: %s\n", iris_i_verdict_name(report->verdict),
            report->cause);
    fprintf(out, "job %s: %d rank%s, for %.1f s\n", name, report->num_ranks,
            report->num_ranks == 1 ? "" : "s", ago(report, report->start_ns));
    memset(told, 0, sizeof told);
    for (int i = 0; i < report->num_ranks; i++) {
        if (!told[i]) {
            print_alike(report, i, told, out);
        }
    }
    iris_i_c_locale_leave(before);
}
