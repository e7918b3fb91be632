/* SPDX-License-Identifier: MIT
 *
 * The events of a trace file, ours or upstream's, one after the other.
 */
#include "config.h"

#include "trace/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Times go up to 73 years, so that sums of two of them, and differences of such
 * sums, fit into 64 bits. */
#define TIME_MAX ((int64_t)1 << 61)

static int64_t clamp(double ns)
{
    return ns > (double)TIME_MAX    ? TIME_MAX
           : ns < -(double)TIME_MAX ? -TIME_MAX
                                    : (int64_t)ns;
}

/* A number of microseconds, with decimals, as nanoseconds. A time that is too
 * large becomes the largest. */
static int64_t nanoseconds(const char *text)
{
    int negative = *text == '-', decimals = 3;
    int64_t ns = 0;

    if (strpbrk(text, "eE") != NULL) {
        return clamp(strtod(text, NULL) * 1000);
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

/* How exact a clock is, in nanoseconds. */
static int64_t error_of(const char *text)
{
    int64_t ns = strtoll(text, NULL, 10);

    return ns < 0 ? 0 : ns < TIME_MAX ? ns : TIME_MAX;
}

static void copy_text(const struct iris_json *json, char *to, size_t size)
{
    size_t bytes = json->length < size - 1 ? json->length : size - 1;

    memcpy(to, json->text, bytes);
    to[bytes] = '\0';
}

/* ---- An event's fields ---- */

enum field_type { TEXT, PHASE, TIME, INT, I64, U64 };

struct field {
    const char *name;
    enum field_type type;
    size_t offset;
    size_t size; /* of a text */
};

#define FIELD(name, type, member)                        \
    {                                                    \
        name, type, offsetof(struct iris_event, member), \
            sizeof(((struct iris_event *)0)->member)     \
    }
static const struct field event_fields[] = {
    FIELD("name", TEXT, name),  FIELD("cat", TEXT, cat),
    FIELD("ph", PHASE, ph),     FIELD("ts", TIME, ts_ns),
    FIELD("dur", TIME, dur_ns), FIELD("pid", INT, pid),
    FIELD("tid", TEXT, tid),    {NULL, TEXT, 0, 0},
};
static const struct field arg_fields[] = {
    FIELD("target_rank", INT, target_rank),
    FIELD("program_id", I64, program_id),
    FIELD("address", U64, address),
    FIELD("offset", U64, offset),
    FIELD("payload_size", U64, payload),
    FIELD("value", U64, value),
    FIELD("signal", INT, signal),
    FIELD("held", INT, held),
    FIELD("launch", U64, launch),
    FIELD("kernel", TEXT, kernel),
    FIELD("members", TEXT, members),
    {NULL, TEXT, 0, 0},
};

static const struct field *find_field(const struct field *fields,
                                      const char *name)
{
    while (fields->name != NULL && strcmp(fields->name, name) != 0) {
        fields++;
    }
    return fields->name == NULL ? NULL : fields;
}

static void set_field(const struct iris_json *json, const struct field *field,
                      struct iris_event *event)
{
    char *to = (char *)event + field->offset;

    switch (field->type) {
    case TEXT:
        copy_text(json, to, field->size);
        break;
    case PHASE:
        *to = json->text[0];
        break;
    case TIME:
        *(int64_t *)(void *)to = nanoseconds(json->text);
        break;
    case INT:
        *(int *)(void *)to = (int)strtol(json->text, NULL, 0);
        break;
    case I64:
        *(int64_t *)(void *)to = strtoll(json->text, NULL, 0);
        break;
    case U64:
        *(uint64_t *)(void *)to = strtoull(json->text, NULL, 0);
        break;
    }
}

/* The members of an event or of its args; `depth` is 0 for the event. */
static int read_members(struct iris_json *json, struct iris_event *event,
                        const struct field *fields, int depth)
{
    enum iris_json_token token;
    const struct field *field;
    int is_args;

    while ((token = iris_i_json_next(json)) == IRIS_JSON_KEY) {
        is_args = depth == 0 && strcmp(json->text, "args") == 0;
        field = find_field(fields, json->text);
        token = iris_i_json_next(json);
        if (token == IRIS_JSON_OBJECT && is_args) {
            if (read_members(json, event, arg_fields, 1) != 0) {
                return -1;
            }
            continue;
        }
        if (field != NULL &&
            (token == IRIS_JSON_STRING || token == IRIS_JSON_NUMBER)) {
            set_field(json, field, event);
            event->has_offset |= field->name == arg_fields[3].name;
        }
        if (field != NULL && field->offset == event_fields[3].offset &&
            depth == 0) {
            event->ts_end = (size_t)iris_i_json_offset(json);
            event->ts_begin = event->ts_end - json->length;
        }
        if (iris_i_json_skip(json, token) == IRIS_JSON_ERROR) {
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
    iris_i_json_keep(json);
    if (read_members(json, event, event_fields, 0) != 0) {
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

static void set_metadata(const struct iris_json *json, const char *key,
                         struct iris_trace_file *file)
{
    if (strcmp(key, "rank") == 0) {
        file->rank = (int)strtol(json->text, NULL, 10);
    } else if (strcmp(key, "world_size") == 0) {
        file->world_size = (int)strtol(json->text, NULL, 10);
    } else if (strcmp(key, "num_events") == 0) {
        file->num_events = strtoull(json->text, NULL, 10);
    } else if (strcmp(key, "host_events") == 0) {
        file->host_events = strtoull(json->text, NULL, 10);
    } else if (strcmp(key, "dropped") == 0) {
        file->dropped = strtoull(json->text, NULL, 10);
    } else if (strcmp(key, "clock_error_ns") == 0) {
        file->clock_error_ns = error_of(json->text);
    } else if (strcmp(key, "device_clock_error_ns") == 0) {
        file->device_error_ns = error_of(json->text);
    } else if (strcmp(key, "time_unit") == 0) {
        file->ticks = strstr(json->text, "cycles") != NULL;
    } else if (strcmp(key, "process_name") == 0) {
        copy_text(json, file->process, sizeof file->process);
    } else if (strcmp(key, "hostname") == 0) {
        copy_text(json, file->host, sizeof file->host);
    }
}

static int read_metadata(struct iris_json *json, struct iris_trace_file *file)
{
    enum iris_json_token token;
    char key[64];

    while ((token = iris_i_json_next(json)) == IRIS_JSON_KEY) {
        copy_text(json, key, sizeof key);
        token = iris_i_json_next(json);
        if (token == IRIS_JSON_STRING || token == IRIS_JSON_NUMBER) {
            set_metadata(json, key, file);
        }
        if (iris_i_json_skip(json, token) == IRIS_JSON_ERROR) {
            return -1;
        }
    }
    return token == IRIS_JSON_OBJECT_END ? 0 : -1;
}

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
        copy_text(json, key, sizeof key);
        token = iris_i_json_next(json);
        if (strcmp(key, "traceEvents") == 0 && token == IRIS_JSON_ARRAY) {
            ret = read_array(json, event, arg);
        } else if (strcmp(key, "metadata") == 0 && token == IRIS_JSON_OBJECT) {
            ret = read_metadata(json, file_p);
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
