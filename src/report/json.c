/* SPDX-License-Identifier: MIT
 *
 * A report for tools: one JSON object with what the text has, and the numbers
 * behind it.
 */
#include "config.h"

#include "report/report.h"

/* Whatever is not fit for a terminal has been escaped when it was read. */
static void print_string(const char *text, FILE *out)
{
    fputc('"', out);
    while (*text != '\0') {
        size_t length = iris_i_report_char(text);

        if (*text == '"' || *text == '\\') {
            fputc('\\', out);
        }
        if (length == 0) {
            fprintf(out, "\\u%04x", (unsigned char)*text++);
        } else {
            fwrite(text, 1, length, out);
            text += length;
        }
    }
    fputc('"', out);
}

static void print_text(const char *name, const char *text, FILE *out)
{
    fprintf(out, "\"%s\": ", name);
    print_string(text, out);
}

/* A time of the job's clock; null: it has not come. */
static void print_time(const char *name, int64_t ns, FILE *out)
{
    if (ns == 0) {
        fprintf(out, ", \"%s\": null", name);
    } else {
        fprintf(out, ", \"%s\": %lld", name, (long long)ns);
    }
}

static void print_offset(const char *name, uint64_t offset, FILE *out)
{
    if (offset == IRIS_RECORD_NOWHERE) {
        fprintf(out, ", \"%s\": null", name);
    } else {
        fprintf(out, ", \"%s\": %llu", name, (unsigned long long)offset);
    }
}

static void print_call(const struct iris_record_call *call, FILE *out)
{
    char text[400];

    iris_i_describe_call(call, text, sizeof text);
    fprintf(out, "{\"id\": %llu, ", (unsigned long long)call->id);
    print_text("op", iris_i_host_op_name(call->op), out);
    fprintf(out, ", ");
    print_text("text", text, out);
    fprintf(out, ", ");
    print_text("kernel", call->kernel, out);
    print_time("begin_ns", call->begin_ns, out);
    print_time("end_ns", call->end_ns, out);
    print_offset("offset", call->offset, out);
    fprintf(out,
            ", \"bytes\": %llu, \"value\": %lld, \"target_rank\": %d, "
            "\"status\": %d}",
            (unsigned long long)call->bytes, (long long)call->value,
            call->target_rank, call->status);
}

static void print_wait(const struct iris_record_wait *wait, FILE *out)
{
    static const char *const kinds[] = {"kernel", "barrier", "spin",
                                        "agreement"};
    char text[600];

    iris_i_describe_wait(wait, text, sizeof text);
    fprintf(out, "{");
    print_text("kind",
               wait->kind >= 0 && wait->kind <= IRIS_WAIT_AGREEMENT
                   ? kinds[wait->kind]
                   : "not known",
               out);
    fprintf(out, ", ");
    print_text("name", wait->name, out);
    fprintf(out, ", ");
    print_text("word", wait->word, out);
    fprintf(out, ", ");
    print_text("text", text, out);
    fprintf(out, ", \"ended\": %s", wait->ended ? "true" : "false");
    print_time("begin_ns", wait->begin_ns, out);
    print_time("update_ns", wait->update_ns, out);
    print_time("change_ns", wait->change_ns, out);
    print_offset("offset", wait->offset, out);
    fprintf(out,
            ", \"allocation\": %llu, \"allocation_bytes\": %llu, \"cmp\": %d, "
            "\"value\": %lld, \"seen\": %lld, \"first_seen\": %lld, "
            "\"workgroup\": %u, \"grid\": %u, \"begun\": %u, \"done\": %u, "
            "\"held\": %llu, \"group\": %d, \"num_expected\": %u, "
            "\"expected\": [",
            (unsigned long long)wait->alloc,
            (unsigned long long)wait->alloc_bytes, wait->cmp,
            (long long)wait->value, (long long)wait->seen,
            (long long)wait->first_seen, wait->workgroup, wait->grid,
            wait->begun, wait->done, (unsigned long long)wait->held,
            wait->group, wait->num_expected);
    for (uint32_t i = 0; i < wait->num_expected && i < IRIS_RECORD_EXPECTED;
         i++) {
        fprintf(out, "%s%d", i == 0 ? "" : ", ", wait->expected[i]);
    }
    fprintf(out, "]}");
}

static void print_stream(const struct iris_report_rank *rank, int i, FILE *out)
{
    const struct iris_record_stream *stream = &rank->streams[i];

    fprintf(out,
            "%s\n      {\"number\": %llu, \"launched\": %llu, \"begun\": %llu, "
            "\"done\": %llu, \"grid\": %u, ",
            i == 0 ? "" : ",", (unsigned long long)stream->number,
            (unsigned long long)rank->launched[i],
            (unsigned long long)stream->begun, (unsigned long long)stream->done,
            stream->grid);
    print_text("kernel", stream->kernel, out);
    print_time("begin_ns", stream->begin_ns, out);
    fprintf(out, "}");
}

static void print_lists(const struct iris_report_rank *rank, int num_ranks,
                        FILE *out)
{
    int first = 1;

    fprintf(out, ",\n    \"under_way\": [");
    for (int c = 0; c < rank->num_open; c++) {
        fprintf(out, "%s\n      ", c == 0 ? "" : ",");
        print_call(&rank->open[c], out);
    }
    fprintf(out, "],\n    \"streams\": [");
    for (int s = 0; s < rank->num_streams; s++) {
        print_stream(rank, s, out);
    }
    fprintf(out, "],\n    \"waits\": [");
    for (int w = 0; w < rank->num_waits; w++) {
        if (rank->waits_live[w] || rank->waits[w].ended) {
            fprintf(out, "%s\n      ", first ? "" : ",");
            print_wait(&rank->waits[w], out);
            first = 0;
        }
    }
    fprintf(out, "],\n    \"bytes_to\": [");
    for (int p = 0; p < num_ranks && p < IRIS_RECORD_PEERS; p++) {
        fprintf(out, "%s%llu", p == 0 ? "" : ", ",
                (unsigned long long)rank->peer_bytes[p]);
    }
    fprintf(out, "]");
}

static void print_rank(const struct iris_report *report, int i, FILE *out)
{
    const struct iris_report_rank *rank = &report->ranks[i];
    char doing[600];

    iris_i_describe_doing(report, i, doing, sizeof doing);
    fprintf(out, "%s\n   {\"rank\": %d, \"pid\": %d, ", i == 0 ? "" : ",", i,
            rank->pid);
    print_text("process", iris_i_process_name(rank->process), out);
    fprintf(out, ", ");
    print_text("state", iris_i_state_name(rank->state), out);
    fprintf(out, ", ");
    print_text("doing", doing, out);
    fprintf(out,
            ",\n    \"calls\": %llu, \"collective_calls\": %llu, "
            "\"busy\": %s, ",
            (unsigned long long)rank->host_calls,
            (unsigned long long)rank->calls, rank->busy ? "true" : "false");
    print_text("collective_call", rank->call, out);
    fprintf(out, ", \"heap_used\": %llu, \"heap_bytes\": %llu",
            (unsigned long long)rank->heap_used,
            (unsigned long long)rank->heap_bytes);
    fprintf(out, ",\n    \"last_begun\": ");
    print_call(&rank->begun, out);
    fprintf(out, ",\n    \"last_finished\": ");
    print_call(&rank->finished, out);
    print_lists(rank, report->num_ranks, out);
    fprintf(out, "}");
}

void iris_i_report_json(const struct iris_report *report, FILE *out)
{
    fprintf(out, "{\"schema\": \"iris-report 1\", ");
    print_text("verdict", iris_i_verdict_name(report->verdict), out);
    fprintf(out, ",\n \"root\": %d, ", report->root);
    print_text("cause", report->cause, out);
    fprintf(out,
            ",\n \"job\": \"%llu.%llu\", \"num_ranks\": %d, \"now_ns\": %lld, "
            "\"start_ns\": %lld,\n \"ranks\": [",
            (unsigned long long)(report->job >> 32),
            (unsigned long long)(report->job & UINT32_MAX), report->num_ranks,
            (long long)report->now_ns, (long long)report->start_ns);
    for (int i = 0; i < report->num_ranks; i++) {
        print_rank(report, i, out);
    }
    fprintf(out, "\n ]}\n");
}
