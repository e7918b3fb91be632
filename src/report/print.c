/* SPDX-License-Identifier: MIT
 *
 * A report as text for people, and as JSON for tools, from one struct
 * iris_report. The JSON has the contents of the text, and the numbers behind
 * them.
 */
#include "config.h"

#include "report/report.h"

#include "base/base.h"

#include <string.h>

/* ---------------------------------------------------------------------------
 * A report for people: the cause first, then every rank.
 */

#define LINE 900
/* Up to this number, ranks that wait for nothing have separate lines. */
#define ALIKE 4

static void print_call(const struct iris_report *report, const char *what,
                       const struct iris_record_call *call, FILE *out)
{
    char text[LINE];

    if (call->id == 0) {
        return;
    }
    iris_i_describe_call(call, text, sizeof text);
    fprintf(
        out, "    %s call %llu, %s, %.1f s ago\n", what,
        (unsigned long long)call->id, text,
        iris_i_seconds(report->now_ns -
                       (call->end_ns != 0 ? call->end_ns : call->begin_ns)));
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
                    stream->grid,
                    iris_i_seconds(report->now_ns - stream->begin_ns));
        }
        fprintf(out, "\n");
    }
}

/* Not again the one that the rank's first line has. */
static void print_waits(const struct iris_report *report, int i,
                        const char *first, FILE *out)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    char text[LINE];

    for (int w = 0; w < rank->num_waits; w++) {
        const struct iris_record_wait *wait = &rank->waits[w];

        if (!rank->waits_live[w] && !wait->ended) {
            continue;
        }
        iris_i_describe_wait(wait, text, sizeof text);
        if (strcmp(text, first) != 0) {
            fprintf(out, "    %s: %s\n", wait->ended ? "ended" : "wait", text);
        }
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
    if (!rank->known || report->verdict == IRIS_VERDICT_MISMATCH) {
        return; /* the cause has all about a mismatch */
    }
    fprintf(out,
            "    %llu calls, %llu of them collective, the last %s; "
            "heap %llu of %llu bytes used",
            (unsigned long long)rank->host_calls,
            (unsigned long long)rank->calls,
            rank->call[0] == '\0' ? "none" : rank->call,
            (unsigned long long)rank->heap_used,
            (unsigned long long)rank->heap_bytes);
    if (rank->heap_reserved > rank->heap_bytes) {
        fprintf(out, ", %llu reserved, %llu backed by memory",
                (unsigned long long)rank->heap_reserved,
                (unsigned long long)rank->heap_mapped);
    }
    fputc('\n', out);
    print_calls(report, rank, out);
    print_streams(report, rank, out);
    print_waits(report, i, doing, out);
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
            (strcmp(a->name, b->name) == 0 && strcmp(a->place, b->place) == 0 &&
             a->group == b->group && a->num_expected == b->num_expected &&
             a->ended == b->ended &&
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
    if (count == 1 ||
        (count <= ALIKE && sort_of(report, i, &wait) == GOES_ON)) {
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
            report->num_ranks == 1 ? "" : "s",
            iris_i_seconds(report->now_ns - report->start_ns));
    memset(told, 0, sizeof told);
    if (report->verdict == IRIS_VERDICT_LOST && report->root >= 0) {
        /* All about a rank that left is in the cause. */
        told[report->root] =
            report->ranks[report->root].state == IRIS_RANK_LEFT;
    }
    for (int i = 0; i < report->num_ranks; i++) {
        if (!told[i]) {
            print_alike(report, i, told, out);
        }
    }
    iris_i_c_locale_leave(before);
}

/* ---------------------------------------------------------------------------
 * A report for tools: one JSON object with the contents of the text, and the
 * underlying numbers.
 */

typedef struct iris_json_writer json_t;

/* A time of the job's clock; null: not set. */
static void print_time(json_t *json, const char *name, int64_t ns)
{
    if (ns == 0) {
        iris_i_json_text(json, name, NULL);
    } else {
        iris_i_json_int(json, name, ns);
    }
}

static void print_offset(json_t *json, const char *name, uint64_t offset)
{
    if (offset == IRIS_RECORD_NOWHERE) {
        iris_i_json_text(json, name, NULL);
    } else {
        iris_i_json_uint(json, name, offset);
    }
}

static void write_call(json_t *json, const char *name,
                       const struct iris_record_call *call)
{
    char text[400];

    iris_i_describe_call(call, text, sizeof text);
    iris_i_json_begin(json, name, '{');
    iris_i_json_uint(json, "id", call->id);
    iris_i_json_text(json, "op", iris_i_host_op_name(call->op));
    iris_i_json_text(json, "text", text);
    iris_i_json_text(json, "kernel", call->kernel);
    iris_i_json_text(json, "place",
                     call->place[0] == '\0' ? NULL : call->place);
    print_time(json, "begin_ns", call->begin_ns);
    print_time(json, "end_ns", call->end_ns);
    print_offset(json, "offset", call->offset);
    iris_i_json_uint(json, "bytes", call->bytes);
    iris_i_json_int(json, "value", call->value);
    iris_i_json_int(json, "target_rank", call->target_rank);
    iris_i_json_int(json, "status", call->status);
    iris_i_json_end(json);
}

static void print_wait(json_t *json, const struct iris_record_wait *wait)
{
    static const char *const kinds[] = {"kernel", "barrier", "spin",
                                        "agreement"};
    char text[600];

    iris_i_describe_wait(wait, text, sizeof text);
    iris_i_json_begin(json, NULL, '{');
    iris_i_json_text(json, "kind",
                     wait->kind >= 0 && wait->kind <= IRIS_WAIT_AGREEMENT
                         ? kinds[wait->kind]
                         : "not known");
    iris_i_json_text(json, "name", wait->name);
    iris_i_json_text(json, "word", wait->word);
    iris_i_json_text(json, "text", text);
    iris_i_json_text(json, "place",
                     wait->place[0] == '\0' ? NULL : wait->place);
    iris_i_json_bool(json, "ended", wait->ended);
    print_time(json, "begin_ns", wait->begin_ns);
    print_time(json, "update_ns", wait->update_ns);
    print_time(json, "change_ns", wait->change_ns);
    print_offset(json, "offset", wait->offset);
    iris_i_json_uint(json, "allocation", wait->alloc);
    iris_i_json_uint(json, "allocation_bytes", wait->alloc_bytes);
    iris_i_json_int(json, "cmp", wait->cmp);
    iris_i_json_int(json, "value", wait->value);
    iris_i_json_int(json, "seen", wait->seen);
    iris_i_json_int(json, "first_seen", wait->first_seen);
    iris_i_json_uint(json, "workgroup", wait->workgroup);
    iris_i_json_uint(json, "grid", wait->grid);
    iris_i_json_uint(json, "begun", wait->begun);
    iris_i_json_uint(json, "done", wait->done);
    iris_i_json_uint(json, "held", wait->held);
    iris_i_json_int(json, "group", wait->group);
    iris_i_json_uint(json, "num_expected", wait->num_expected);
    iris_i_json_begin(json, "expected", '[');
    for (uint32_t i = 0; i < wait->num_expected && i < IRIS_RECORD_EXPECTED;
         i++) {
        iris_i_json_int(json, NULL, wait->expected[i]);
    }
    iris_i_json_end(json);
    iris_i_json_end(json);
}

static void print_stream(json_t *json, const struct iris_report_rank *rank,
                         int i)
{
    const struct iris_record_stream *stream = &rank->streams[i];

    iris_i_json_begin(json, NULL, '{');
    iris_i_json_uint(json, "number", stream->number);
    iris_i_json_uint(json, "launched", rank->launched[i]);
    iris_i_json_uint(json, "begun", stream->begun);
    iris_i_json_uint(json, "done", stream->done);
    iris_i_json_uint(json, "grid", stream->grid);
    iris_i_json_text(json, "kernel", stream->kernel);
    print_time(json, "begin_ns", stream->begin_ns);
    iris_i_json_end(json);
}

static void print_lists(json_t *json, const struct iris_report_rank *rank,
                        int num_ranks)
{
    iris_i_json_begin(json, "under_way", '[');
    for (int c = 0; c < rank->num_open; c++) {
        write_call(json, NULL, &rank->open[c]);
    }
    iris_i_json_end(json);
    iris_i_json_begin(json, "streams", '[');
    for (int s = 0; s < rank->num_streams; s++) {
        print_stream(json, rank, s);
    }
    iris_i_json_end(json);
    iris_i_json_begin(json, "waits", '[');
    for (int w = 0; w < rank->num_waits; w++) {
        if (rank->waits_live[w] || rank->waits[w].ended) {
            print_wait(json, &rank->waits[w]);
        }
    }
    iris_i_json_end(json);
    iris_i_json_begin(json, "bytes_to", '[');
    for (int p = 0; p < num_ranks && p < IRIS_RECORD_PEERS; p++) {
        iris_i_json_uint(json, NULL, rank->peer_bytes[p]);
    }
    iris_i_json_end(json);
}

static void write_rank(json_t *json, const struct iris_report *report, int i)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    char doing[600];

    iris_i_describe_doing(report, i, doing, sizeof doing);
    iris_i_json_begin(json, NULL, '{');
    iris_i_json_int(json, "rank", i);
    iris_i_json_int(json, "pid", rank->pid);
    iris_i_json_text(json, "host", rank->host[0] == '\0' ? NULL : rank->host);
    iris_i_json_bool(json, "answers", rank->known);
    iris_i_json_text(json, "process", iris_i_process_name(rank->process));
    iris_i_json_text(json, "state", iris_i_state_name(rank->state));
    iris_i_json_text(json, "doing", doing);
    iris_i_json_uint(json, "calls", rank->host_calls);
    iris_i_json_uint(json, "collective_calls", rank->calls);
    iris_i_json_bool(json, "busy", rank->busy);
    iris_i_json_text(json, "collective_call", rank->call);
    iris_i_json_uint(json, "heap_used", rank->heap_used);
    iris_i_json_uint(json, "heap_bytes", rank->heap_bytes);
    iris_i_json_uint(json, "heap_reserved", rank->heap_reserved);
    iris_i_json_uint(json, "heap_mapped", rank->heap_mapped);
    write_call(json, "last_begun", &rank->begun);
    write_call(json, "last_finished", &rank->finished);
    print_lists(json, rank, report->num_ranks);
    iris_i_json_end(json);
}

void iris_i_report_json(const struct iris_report *report, FILE *out)
{
    json_t json = iris_i_json_writer(out);
    char job[IRIS_REPORT_NAME];

    iris_i_report_name(report, job);
    iris_i_json_begin(&json, NULL, '{');
    iris_i_json_text(&json, "schema", "iris-report 1");
    iris_i_json_text(&json, "verdict", iris_i_verdict_name(report->verdict));
    iris_i_json_int(&json, "root", report->root);
    iris_i_json_text(&json, "cause", report->cause);
    iris_i_json_text(&json, "job", job);
    iris_i_json_int(&json, "num_ranks", report->num_ranks);
    iris_i_json_int(&json, "now_ns", report->now_ns);
    iris_i_json_int(&json, "start_ns", report->start_ns);
    iris_i_json_begin(&json, "ranks", '[');
    for (int i = 0; i < report->num_ranks; i++) {
        write_rank(&json, report, i);
    }
    iris_i_json_end(&json);
    iris_i_json_end(&json);
}
