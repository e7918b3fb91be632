/* SPDX-License-Identifier: MIT
 *
 * A report for people: the cause first, then every rank.
 */
#include "config.h"

#include "report/report.h"

#define LINE 900

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
    fprintf(out, "  rank %d (pid %d, %s, %s): %s\n", i, rank->pid,
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

void iris_i_report_text(const struct iris_report *report, FILE *out)
{
    fprintf(out, "%s: %s\n", iris_i_verdict_name(report->verdict),
            report->cause);
    fprintf(out, "job %llu.%llu: %d rank%s, for %.1f s\n",
            (unsigned long long)(report->job >> 32),
            (unsigned long long)(report->job & UINT32_MAX), report->num_ranks,
            report->num_ranks == 1 ? "" : "s", ago(report, report->start_ns));
    for (int i = 0; i < report->num_ranks; i++) {
        print_rank(report, i, out);
    }
}
