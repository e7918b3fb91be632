/* SPDX-License-Identifier: MIT
 *
 * The report as JSON: metadata, results, targets.
 */
#include "config.h"

#include "report.h"
#include "base/base.h"

#include <string.h>

typedef struct iris_json_writer json_t;

static void print_number(json_t *json, const char *name, double number,
                         bool valid)
{
    if (valid) {
        iris_i_json_real(json, name, number);
    } else {
        iris_i_json_text(json, name, NULL);
    }
}

void bench_json_begin(struct bench *b)
{
    const struct bench_metadata *about = &b->report->metadata;
    json_t *json = &b->report->json;

    *json = iris_i_json_writer(b->report->out);
    iris_i_json_begin(json, NULL, '{');
    iris_i_json_begin(json, "metadata", '{');
    iris_i_json_text(json, "version", about->version);
    iris_i_json_text(json, "backend", about->backend);
    iris_i_json_int(json, "device", about->device);
    iris_i_json_bool(json, "gpu", about->on_gpu);
    iris_i_json_int(json, "cus", about->cus);
    iris_i_json_int(json, "ranks", b->num_ranks);
    iris_i_json_text(json, "ranks_as", about->ranks_as);
    iris_i_json_uint(json, "workgroups", b->workgroups);
    iris_i_json_uint(json, "block", b->options.block);
    iris_i_json_text(json, "hostname", about->hostname);
    iris_i_json_text(json, "cpu", about->cpu);
    iris_i_json_int(json, "cores", about->cores);
    iris_i_json_text(json, "compiler", about->compiler);
    iris_i_json_text(json, "date", about->date);
    iris_i_json_end(json);
    iris_i_json_begin(json, "results", '[');
}

static void print_collective(json_t *json, const struct bench_row *row)
{
    bool has_peer = row->reference != NULL;

    iris_i_json_text(json, "dtype", iris_dtype_name(row->dtype));
    iris_i_json_text(json, "calls", row->calls);
    print_number(json, "bus_rate", row->bus_rate, true);
    print_number(json, "reference_us", row->references_us[0], has_peer);
    print_number(json, "time_ratio", row->median_us / row->references_us[0],
                 has_peer);
}

static void print_fused(json_t *json, const struct bench_row *row)
{
    const double *others_us = row->references_us;

    iris_i_json_text(json, "dtype", iris_dtype_name(row->dtype));
    iris_i_json_int(json, "m", row->shape->m);
    iris_i_json_int(json, "n", row->shape->n);
    iris_i_json_int(json, "k", row->shape->k);
    print_number(json, "product_us", others_us[BENCH_PRODUCT], true);
    print_number(json, "collective_us", others_us[BENCH_COLLECTIVE], true);
    print_number(json, "reference_us", others_us[BENCH_UNFUSED], true);
    print_number(json, "time_ratio", row->median_us / others_us[BENCH_UNFUSED],
                 true);
    print_number(json, "bound_share", bench_bound_share(row), true);
    iris_i_json_text(json, "peer", row->peer != NULL ? row->peer : "");
    print_number(json, "peer_us", others_us[BENCH_PEER], row->peer != NULL);
}

void bench_json_row(struct bench *b, const struct bench_row *row)
{
    json_t *json = &b->report->json;
    bool has_rate = row->rate_unit[0] != '\0';
    bool has_reference = row->reference != NULL;

    iris_i_json_begin(json, NULL, '{');
    iris_i_json_text(json, "op", row->op);
    iris_i_json_text(json, "group", row->group);
    iris_i_json_text(json, "variant", row->variant);
    iris_i_json_text(json, "pairs", bench_pairs_names[row->pairs]);
    iris_i_json_uint(json, "bytes", row->bytes);
    print_number(json, "median_us", row->median_us, true);
    print_number(json, "min_us", row->min_us, true);
    print_number(json, "p90_us", row->p90_us, true);
    print_number(json, "rate", row->rate, has_rate);
    iris_i_json_text(json, "rate_unit", row->rate_unit);
    iris_i_json_text(json, "reference", has_reference ? row->reference : "");
    print_number(json, "reference_rate", row->reference_rate, has_reference);
    print_number(json, "ratio", row->ratio, has_reference);
    iris_i_json_uint(json, "wrong", row->wrong);
    if (row->calls != NULL) {
        print_collective(json, row);
    }
    if (row->shape != NULL) {
        print_fused(json, row);
    }
    iris_i_json_end(json);
}

void bench_json_verdict(struct bench *b, const struct bench_verdict *verdict)
{
    json_t *json = &b->report->json;

    if (b->report->verdicts == 0) {
        iris_i_json_end(json);
        iris_i_json_begin(json, "targets", '[');
    }
    iris_i_json_begin(json, NULL, '{');
    iris_i_json_text(json, "target", verdict->target);
    iris_i_json_text(json, "limit", verdict->limit);
    iris_i_json_text(json, "measured", verdict->measured);
    iris_i_json_text(json, "held", verdict->held);
    iris_i_json_end(json);
}

void bench_json_end(struct bench *b)
{
    iris_i_json_end(&b->report->json);
    iris_i_json_end(&b->report->json);
}
