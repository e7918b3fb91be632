/* SPDX-License-Identifier: MIT
 *
 * A report for tools: one JSON object with the contents of the text, and the
 * underlying numbers.
 */
#include "config.h"

#include "report/report.h"

#include "base/base.h"

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

static void print_call(json_t *json, const char *name,
                       const struct iris_record_call *call)
{
    char text[400];

    iris_i_describe_call(call, text, sizeof text);
    iris_i_json_begin(json, name, '{');
    iris_i_json_uint(json, "id", call->id);
    iris_i_json_text(json, "op", iris_i_host_op_name(call->op));
    iris_i_json_text(json, "text", text);
    iris_i_json_text(json, "kernel", call->kernel);
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
        print_call(json, NULL, &rank->open[c]);
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

static void print_rank(json_t *json, const struct iris_report *report, int i)
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
    print_call(json, "last_begun", &rank->begun);
    print_call(json, "last_finished", &rank->finished);
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
        print_rank(&json, report, i);
    }
    iris_i_json_end(&json);
    iris_i_json_end(&json);
}
