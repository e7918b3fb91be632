/* SPDX-License-Identifier: MIT
 *
 * The report as JSON: metadata, results, targets.
 */
#include "config.h"

#include "report.h"

#include "../tools/json.h"

#include <string.h>

static void print_text(FILE *out, const char *name, const char *text)
{
    fprintf(out, "\"%s\": ", name);
    json_string(out, text);
}

/* A number, or null where there is none (JSON knows no infinity). */
static void print_number(FILE *out, const char *name, double number, bool valid)
{
    fprintf(out, ", \"%s\": ", name);
    if (valid && number - number == 0) {
        fprintf(out, "%.6g", number);
    } else {
        fprintf(out, "null");
    }
}

void bench_json_begin(struct bench *b)
{
    const struct bench_metadata *about = &b->report->metadata;
    FILE *out = b->report->out;

    fprintf(out, "{\"metadata\": {");
    print_text(out, "version", about->version);
    fprintf(out, ", ");
    print_text(out, "backend", about->backend);
    fprintf(out, ", \"device\": %d, \"gpu\": %s, \"cus\": %d, \"ranks\": %d, ",
            about->device, about->on_gpu ? "true" : "false", about->cus,
            b->num_ranks);
    print_text(out, "ranks_as", about->ranks_as);
    fprintf(out, ", \"workgroups\": %u, \"block\": %u, ", b->workgroups,
            b->options.block);
    print_text(out, "hostname", about->hostname);
    fprintf(out, ", ");
    print_text(out, "cpu", about->cpu);
    fprintf(out, ", \"cores\": %d, ", about->cores);
    print_text(out, "compiler", about->compiler);
    fprintf(out, ", ");
    print_text(out, "date", about->date);
    fprintf(out, "},\n \"results\": [");
}

static void print_collective(FILE *out, const struct bench_row *row)
{
    bool has_peer = row->reference != NULL;

    fprintf(out, ", ");
    print_text(out, "dtype", iris_dtype_name(row->dtype));
    fprintf(out, ", ");
    print_text(out, "calls", row->calls);
    print_number(out, "bus_rate", row->bus_rate, true);
    print_number(out, "reference_us", row->reference_us, has_peer);
    print_number(out, "time_ratio", row->median_us / row->reference_us,
                 has_peer);
}

void bench_json_row(struct bench *b, const struct bench_row *row)
{
    FILE *out = b->report->out;
    bool has_rate = row->rate_unit[0] != '\0';
    bool has_reference = row->reference != NULL;

    fprintf(out, "%s\n  {", b->report->rows == 0 ? "" : ",");
    print_text(out, "op", row->op);
    fprintf(out, ", ");
    print_text(out, "group", row->group);
    fprintf(out, ", ");
    print_text(out, "variant", row->variant);
    fprintf(out, ", ");
    print_text(out, "pairs", bench_pairs_names[row->pairs]);
    fprintf(out, ", \"bytes\": %zu", row->bytes);
    print_number(out, "median_us", row->median_us, true);
    print_number(out, "min_us", row->min_us, true);
    print_number(out, "p90_us", row->p90_us, true);
    print_number(out, "rate", row->rate, has_rate);
    fprintf(out, ", ");
    print_text(out, "rate_unit", row->rate_unit);
    fprintf(out, ", ");
    print_text(out, "reference", has_reference ? row->reference : "");
    print_number(out, "reference_rate", row->reference_rate, has_reference);
    print_number(out, "ratio", row->ratio, has_reference);
    fprintf(out, ", \"wrong\": %llu", (unsigned long long)row->wrong);
    if (row->calls != NULL) {
        print_collective(out, row);
    }
    fprintf(out, "}");
}

void bench_json_verdict(struct bench *b, const struct bench_verdict *verdict)
{
    FILE *out = b->report->out;

    fprintf(out, b->report->verdicts == 0 ? "],\n \"targets\": [" : ",");
    fprintf(out, "\n  {");
    print_text(out, "target", verdict->target);
    fprintf(out, ", ");
    print_text(out, "limit", verdict->limit);
    fprintf(out, ", ");
    print_text(out, "measured", verdict->measured);
    fprintf(out, ", ");
    print_text(out, "held", verdict->held);
    fprintf(out, "}");
}

void bench_json_end(struct bench *b)
{
    fprintf(b->report->out, "]}\n");
}
