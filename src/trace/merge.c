/* SPDX-License-Identifier: MIT
 *
 * Merges several ranks' files into one trace, with arrows between their events.
 *
 * It knows files only, not contexts, so iris trace uses it, too. Each file is
 * read twice: first for its kind of times, its first event and the arrows, then
 * to copy its events.
 */
#include "config.h"

#include "trace/trace.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------------------
 * Reads the events of a trace file, ours or upstream's.
 */

/* Times up to 73 years: sums of two of them, and differences of such sums, fit
 * into 64 bits. */
#define TIME_MAX ((int64_t)1 << 61)

static int64_t clamp_time(double ns)
{
    return ns > (double)TIME_MAX    ? TIME_MAX
           : ns < -(double)TIME_MAX ? -TIME_MAX
                                    : (int64_t)ns;
}

/* Converts a decimal number of microseconds to nanoseconds. A time that is too
 * large becomes the largest. */
static int64_t to_nanoseconds(const char *text)
{
    int negative = *text == '-', decimals = 3;
    int64_t ns = 0;

    if (strpbrk(text, "eE") != NULL) {
        locale_t before = iris_i_c_locale_enter();
        double microseconds = strtod(text, NULL);

        iris_i_c_locale_leave(before);
        return clamp_time(microseconds * 1000);
    }
    text += negative;
    for (; *text >= '0' && *text <= '9'; text++) {
        ns = ns > TIME_MAX / 1000 ? ns : ns * 10 + (*text - '0');
    }
    text += *text == '.';
    if (ns > TIME_MAX / 1000) {
        return negative ? -TIME_MAX : TIME_MAX;
    }
    for (; decimals > 0; decimals--) {
        ns = ns * 10 + (*text >= '0' && *text <= '9' ? *text++ - '0' : 0);
    }
    ns = ns < TIME_MAX ? ns : TIME_MAX;
    return negative ? -ns : ns;
}

/* ---- An event's fields ---- */

static void set_phase(const struct iris_json *json, void *to, size_t bytes)
{
    (void)bytes;
    *(char *)to = json->text[0];
}

static void set_time(const struct iris_json *json, void *to, size_t bytes)
{
    (void)bytes;
    *(int64_t *)to = to_nanoseconds(json->text);
}

static void set_moment(const struct iris_json *json, void *to, size_t bytes)
{
    int64_t ns = strtoll(json->text, NULL, 10);

    (void)bytes;
    *(int64_t *)to = ns > TIME_MAX ? TIME_MAX : ns < -TIME_MAX ? -TIME_MAX : ns;
}

#define EVENT(name, member, set) \
    IRIS_JSON_FIELD_OF(struct iris_event, name, member, set)
static const struct iris_json_field event_fields[] = {
    EVENT("name", name, iris_i_json_set_text),
    EVENT("cat", cat, iris_i_json_set_text),
    EVENT("ph", ph, set_phase),
    EVENT("ts", ts_ns, set_time),
    EVENT("dur", dur_ns, set_time),
    EVENT("pid", pid, iris_i_json_set_number),
    EVENT("tid", tid, iris_i_json_set_text),
    {.name = NULL},
};
static const struct iris_json_field arg_fields[] = {
    EVENT("target_rank", target_rank, iris_i_json_set_number),
    EVENT("program_id", program_id, iris_i_json_set_number),
    EVENT("address", address, iris_i_json_set_number),
    EVENT("offset", offset, iris_i_json_set_number),
    EVENT("payload_size", payload, iris_i_json_set_number),
    EVENT("value", value, iris_i_json_set_number),
    EVENT("signal", signal, iris_i_json_set_number),
    EVENT("held", held, iris_i_json_set_number),
    EVENT("atomic", atomic, iris_i_json_set_number),
    EVENT("launch", launch, iris_i_json_set_number),
    EVENT("id", id, iris_i_json_set_number),
    EVENT("stream", stream, iris_i_json_set_number),
    EVENT("kernel", kernel, iris_i_json_set_text),
    EVENT("members", members, iris_i_json_set_text),
    EVENT("sends", sends, iris_i_json_set_text),
    EVENT("receives", receives, iris_i_json_set_text),
    EVENT("label", label, iris_i_json_set_text),
    EVENT("name", label, iris_i_json_set_text),
    EVENT("call", call, iris_i_json_set_number),
    EVENT("call_name", call_name, iris_i_json_set_text),
    EVENT("born_ns", born_ns, set_moment),
    EVENT("died_ns", died_ns, set_moment),
    {.name = NULL},
};
#undef EVENT

static int read_members(struct iris_json *json, struct iris_event *event)
{
    enum iris_json_token token;

    while ((token = iris_i_json_next(json)) == IRIS_JSON_KEY) {
        int is_args = strcmp(json->text, "args") == 0;
        const struct iris_json_field *field =
            iris_i_json_find(json, event_fields);

        token = iris_i_json_next(json);
        if (token == IRIS_JSON_OBJECT && is_args) {
            if (iris_i_json_members(json, arg_fields, event) != 0) {
                return -1;
            }
            continue;
        }
        if (field != NULL &&
            field->offset == offsetof(struct iris_event, ts_ns)) {
            event->ts_end = (size_t)iris_i_json_offset(json);
            event->ts_begin = event->ts_end - json->length;
        }
        if (iris_i_json_set(json, token, field, event) == IRIS_JSON_ERROR) {
            return -1;
        }
    }
    return token == IRIS_JSON_OBJECT_END ? 0 : -1;
}

static int read_event(struct iris_json *json, struct iris_event *event)
{
    size_t begin = (size_t)iris_i_json_offset(json) - 1;

    memset(event, 0, sizeof *event);
    event->target_rank = -1;
    event->offset = IRIS_EVENT_NOWHERE;
    event->born_ns = -TIME_MAX;
    event->died_ns = TIME_MAX;
    iris_i_json_keep(json);
    if (read_members(json, event) != 0) {
        return -1;
    }
    event->raw = iris_i_json_kept(json, &event->raw_bytes);
    event->dur_ns = event->dur_ns > 0 ? event->dur_ns : 0;
    if (event->ts_end != 0) {
        event->ts_begin -= begin;
        event->ts_end -= begin;
    }
    return json->error[0] == '\0' ? 0 : -1;
}

/* ---- The file ---- */

static int read_array(struct iris_json *json,
                      int (*call)(void *arg, const struct iris_event *event),
                      void *arg)
{
    enum iris_json_token token;
    struct iris_event event;
    int ret;

    while ((token = iris_i_json_next(json)) == IRIS_JSON_OBJECT) {
        if (read_event(json, &event) != 0) {
            return -1;
        }
        ret = call(arg, &event);
        if (ret != 0) {
            return ret;
        }
    }
    if (token != IRIS_JSON_ARRAY_END) {
        iris_i_json_fail(json, "an event that is no object");
        return -1;
    }
    return 0;
}

/* The error of a clock, in nanoseconds. */
static void set_error(const struct iris_json *json, void *to, size_t bytes)
{
    int64_t ns = strtoll(json->text, NULL, 10);

    (void)bytes;
    *(int64_t *)to = ns < 0 ? 0 : ns < TIME_MAX ? ns : TIME_MAX;
}

static void set_ticks(const struct iris_json *json, void *to, size_t bytes)
{
    (void)bytes;
    *(int *)to = strstr(json->text, "cycles") != NULL;
}

#define ABOUT(name, member, set) \
    IRIS_JSON_FIELD_OF(struct iris_trace_file, name, member, set)
static const struct iris_json_field file_fields[] = {
    ABOUT("rank", rank, iris_i_json_set_number),
    ABOUT("world_size", world_size, iris_i_json_set_number),
    ABOUT("num_events", num_events, iris_i_json_set_number),
    ABOUT("host_events", host_events, iris_i_json_set_number),
    ABOUT("dropped", dropped, iris_i_json_set_number),
    ABOUT("clock_error_ns", clock_error_ns, set_error),
    ABOUT("device_clock_error_ns", device_error_ns, set_error),
    ABOUT("time_unit", ticks, set_ticks),
    {.name = NULL},
};
#undef ABOUT

int iris_i_events_read(struct iris_json *json, struct iris_trace_file *file_p,
                       int (*event)(void *arg, const struct iris_event *event),
                       void *arg)
{
    enum iris_json_token token = iris_i_json_next(json);
    char key[64];
    int ret = 0;

    memset(file_p, 0, sizeof *file_p);
    file_p->rank = -1;
    file_p->clock_error_ns = file_p->device_error_ns = -1;
    if (token != IRIS_JSON_OBJECT) {
        iris_i_json_fail(json, "no trace: it does not begin with an object");
        return -1;
    }
    while (ret == 0 && (token = iris_i_json_next(json)) == IRIS_JSON_KEY) {
        iris_i_json_set_text(json, key, sizeof key);
        token = iris_i_json_next(json);
        if (strcmp(key, "traceEvents") == 0 && token == IRIS_JSON_ARRAY) {
            ret = read_array(json, event, arg);
        } else if (strcmp(key, "metadata") == 0 && token == IRIS_JSON_OBJECT) {
            ret = iris_i_json_members(json, file_fields, file_p);
        } else if (iris_i_json_skip(json, token) == IRIS_JSON_ERROR) {
            ret = -1;
        }
    }
    if (ret == 0 && (token != IRIS_JSON_OBJECT_END ||
                     iris_i_json_next(json) != IRIS_JSON_END)) {
        return -1;
    }
    return ret;
}

static int64_t get_worse(int64_t a, int64_t b)
{
    return a < 0 || b < 0 ? -1 : a > b ? a : b;
}

void iris_i_events_add_file(struct iris_trace_file *total,
                            const struct iris_trace_file *file)
{
    total->ticks += file->ticks;
    total->num_events += file->num_events;
    total->host_events += file->host_events;
    total->dropped += file->dropped;
    if (file->world_size > total->world_size) {
        total->world_size = file->world_size;
    }
    total->clock_error_ns =
        get_worse(total->clock_error_ns, file->clock_error_ns);
    total->device_error_ns =
        get_worse(total->device_error_ns, file->device_error_ns);
}

/* ---------------------------------------------------------------------------
 * Merges several ranks' files into one trace, with arrows between their events.
 */

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

static int fail_merge(struct merge *merge, const char *why)
{
    snprintf(merge->report->error, sizeof merge->report->error, "%s", why);
    return -1;
}

/* ---- First pass: collect ---- */

static int count_event(void *arg, const struct iris_event *event)
{
    struct merge *merge = arg;

    if (event->ph != 'M' && event->ts_ns < merge->first_ns) {
        merge->first_ns = event->ts_ns;
    }
    if (iris_i_flows_add(&merge->flows, event) != 0) {
        return fail_merge(merge, "no memory for signals and waits");
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
        fail_merge(merge, merge->json->error);
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
static int copy_event(void *arg, const struct iris_event *event)
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

static void write_merged_metadata(struct merge *merge)
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

static int write_merged(struct merge *merge, const char *path)
{
    int ret, error;

    iris_i_out_open(merge->out, path);
    iris_i_out_print(merge->out, "{\"traceEvents\":[");
    ret = read_all(merge, copy_event, 0);
    if (ret == 0) {
        write_flows(merge);
        write_merged_metadata(merge);
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
    if (read_all(merge, count_event, 1) != 0) {
        return -1;
    }
    if (merge->total.ticks != 0 && merge->total.ticks != merge->count) {
        return fail_merge(merge,
                          "some of the files have times in cycles, others in "
                          "microseconds; merge files of one kind");
    }
    if (merge->first_ns == INT64_MAX) { /* without events */
        merge->first_ns = 0;
    }
    iris_i_flows_sort(&merge->flows);
    return write_merged(merge, path);
}

int iris_i_merge(char *const *paths, int count, const char *out,
                 struct iris_merge_report *report_p)
{
    struct iris_out file;
    struct merge merge = {.paths = paths,
                          .count = count,
                          .out = &file,
                          .report = report_p,
                          .first_ns = INT64_MAX};
    int ret;

    memset(report_p, 0, sizeof *report_p);
    merge.json = malloc(sizeof *merge.json);
    if (merge.json == NULL || iris_i_flows_open(&merge.flows) != 0) {
        ret = fail_merge(&merge, "no memory");
    } else {
        ret = merge_files(&merge, out);
    }
    iris_i_flows_close(&merge.flows);
    free(merge.json);
    return ret;
}
