/* SPDX-License-Identifier: MIT
 *
 * Merges several ranks' files into one trace, with arrows between their events.
 */
#include "config.h"

#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct merge {
    char *const *paths;
    int count;
    struct iris_json *json;
    struct iris_out *out;
    struct iris_flows flows;
    struct iris_merge_report *report;
    struct iris_trace_file total;
    int64_t first_ns; /* the earliest time in all files */
};

static int fail(struct merge *merge, const char *why)
{
    snprintf(merge->report->error, sizeof merge->report->error, "%s", why);
    return -1;
}

/* ---- First pass: collect ---- */

static int look(void *arg, const struct iris_event *event)
{
    struct merge *merge = arg;

    if (event->ph != 'M' && event->ts_ns < merge->first_ns) {
        merge->first_ns = event->ts_ns;
    }
    if (iris_i_flows_add(&merge->flows, event) != 0) {
        return fail(merge, "no memory for signals and waits");
    }
    return 0;
}

static int read_one(struct merge *merge, const char *path,
                    struct iris_trace_file *file_p,
                    int (*event)(void *arg, const struct iris_event *event))
{
    int ret = iris_i_json_open(merge->json, path);

    if (ret == 0) {
        ret = iris_i_events_read(merge->json, file_p, event, merge);
        iris_i_json_close(merge->json);
    }
    if (ret != 0 && merge->report->error[0] == '\0') {
        fail(merge, merge->json->error);
    }
    return ret;
}

static int read_all(struct merge *merge,
                    int (*event)(void *arg, const struct iris_event *event),
                    int is_first_pass)
{
    struct iris_trace_file file;

    for (int i = 0; i < merge->count; i++) {
        if (read_one(merge, merge->paths[i], &file, event) != 0) {
            return -1;
        }
        if (is_first_pass) {
            iris_i_events_add_file(&merge->total, &file);
        }
    }
    return 0;
}

/* ---- Second pass: copying ---- */

/* With upstream's files, the earliest time becomes 0, as in upstream's own
 * merge. Our files already have a common time 0. */
static int copy(void *arg, const struct iris_event *event)
{
    struct merge *merge = arg;

    iris_i_out_next(merge->out);
    merge->report->events += event->ph != 'M';
    if (merge->total.ticks == 0 || event->ts_end == 0) {
        iris_i_out_write(merge->out, event->raw, event->raw_bytes);
        return 0;
    }
    iris_i_out_write(merge->out, event->raw, event->ts_begin);
    iris_i_out_print(merge->out, "%lld",
                     (long long)((event->ts_ns - merge->first_ns) / 1000));
    iris_i_out_write(merge->out, event->raw + event->ts_end,
                     event->raw_bytes - event->ts_end);
    return 0;
}

/* ---- Arrows ---- */

static void write_flows(struct merge *merge)
{
    const struct iris_flows *flows = &merge->flows;
    struct iris_flow_arrow arrow = {.name = "signal", .cat = "iris_flow"};

    for (size_t i = 0; i < flows->waits.count; i++) {
        const struct iris_flow_point *wait = &flows->waits.points[i];
        const struct iris_flow_point *signal =
            iris_i_flows_signal_of(flows, wait);

        if (signal == NULL) {
            continue;
        }
        merge->report->joined++;
        if (signal->at.ns > wait->end_ns) {
            int64_t early = signal->at.ns - wait->end_ns;

            merge->report->early++;
            if (early > merge->report->worst_early_ns) {
                merge->report->worst_early_ns = early;
            }
        }
        arrow.id++;
        arrow.from = signal->at;
        arrow.to = wait->at;
        iris_i_flow_write(merge->out, &arrow);
    }
    arrow.name = "put";
    for (size_t i = 0; i < flows->signals.count; i++) {
        const struct iris_flow_point *signal = &flows->signals.points[i];

        if (signal->put.pid >= 0) {
            arrow.id++;
            arrow.from = signal->put;
            arrow.to = signal->at;
            iris_i_flow_write(merge->out, &arrow);
        }
    }
    merge->report->clock_error_ns = merge->total.clock_error_ns;
    merge->report->device_error_ns = merge->total.device_error_ns;
    merge->report->waits = flows->waits.count;
}

/* ---- The whole ---- */

static void write_clocks(struct merge *merge)
{
    const struct iris_trace_file *total = &merge->total;

    if (total->clock_error_ns >= 0) {
        iris_i_out_print(merge->out, "\"clock_error_ns\":%lld,",
                         (long long)total->clock_error_ns);
    }
    if (total->device_error_ns >= 0) {
        iris_i_out_print(merge->out, "\"device_clock_error_ns\":%lld,",
                         (long long)total->device_error_ns);
    }
}

static void write_metadata(struct merge *merge)
{
    const struct iris_trace_file *total = &merge->total;
    int ticks = merge->total.ticks > 0;

    iris_i_out_print(
        merge->out,
        "\n],\n\"displayTimeUnit\":\"ns\",\n\"metadata\":{\"schema_version\":"
        "\"1.1\",\"total_events\":%llu,\"num_events\":%llu,"
        "\"host_events\":%llu,\"dropped\":%llu,\"world_size\":%d,"
        "\"time_unit\":\"%s\",\"timestamp_offset\":%lld,",
        (unsigned long long)merge->report->events,
        (unsigned long long)total->num_events,
        (unsigned long long)total->host_events,
        (unsigned long long)total->dropped, total->world_size,
        ticks ? "cycles (s_memrealtime @ 100MHz)" : "us",
        ticks ? (long long)(merge->first_ns / 1000) : 0);
    write_clocks(merge);
    iris_i_out_print(merge->out, "\"aligned\":\"%s\"}}\n",
                     ticks ? "minimum timestamp across all ranks"
                           : "rank 0's clock");
}

static int write_all(struct merge *merge, const char *path)
{
    int ret, error;

    iris_i_out_open(merge->out, path);
    iris_i_out_print(merge->out, "{\"traceEvents\":[");
    ret = read_all(merge, copy, 0);
    if (ret == 0) {
        write_flows(merge);
        write_metadata(merge);
    }
    error = iris_i_out_close(merge->out, ret == 0);
    if (ret == 0 && error != 0) {
        snprintf(merge->report->error, sizeof merge->report->error,
                 "cannot write %.200s: %s", path, strerror(error));
        return -1;
    }
    return ret;
}

static int merge_files(struct merge *merge, const char *path)
{
    if (read_all(merge, look, 1) != 0) {
        return -1;
    }
    if (merge->total.ticks != 0 && merge->total.ticks != merge->count) {
        return fail(merge, "some of the files have times in cycles, others in "
                           "microseconds; merge files of one kind");
    }
    if (merge->first_ns == INT64_MAX) { /* without events */
        merge->first_ns = 0;
    }
    iris_i_flows_sort(&merge->flows);
    return write_all(merge, path);
}

int iris_i_merge(char *const *paths, int count, const char *out,
                 struct iris_merge_report *report_p)
{
    struct merge merge = {.paths = paths,
                          .count = count,
                          .report = report_p,
                          .first_ns = INT64_MAX};
    int ret;

    memset(report_p, 0, sizeof *report_p);
    merge.json = malloc(sizeof *merge.json);
    merge.out = malloc(sizeof *merge.out);
    if (merge.json == NULL || merge.out == NULL ||
        iris_i_flows_open(&merge.flows) != 0) {
        ret = fail(&merge, "no memory");
    } else {
        ret = merge_files(&merge, out);
    }
    iris_i_flows_close(&merge.flows);
    free(merge.json);
    free(merge.out);
    return ret;
}
