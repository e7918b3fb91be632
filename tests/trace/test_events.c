/* SPDX-License-Identifier: MIT
 *
 * Reading trace files: times and texts that no program writes, but that a file
 * may have.
 */
#include "config.h"

#include "support/harness.h"

#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a file of one event with these members is read as. */
struct outcome {
    int ret;
    struct iris_event event;
    struct iris_trace_file file;
    char error[256];
};

static int keep(void *arg, const struct iris_event *event)
{
    *(struct iris_event *)arg = *event;
    return 0;
}

static void name_file(char path[400], const char *name)
{
    snprintf(path, 400, "%s/%s", harness_folder(), name);
}

static void write_file(const char *path, const char *members,
                       const char *metadata)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    fprintf(file, "{\"traceEvents\":[{\"ph\":\"X\",%s}],\"metadata\":{%s}}",
            members, metadata);
    assert_int_equal(fclose(file), 0);
}

static void read_file(const char *path, struct outcome *outcome_p)
{
    struct iris_json *json = malloc(sizeof *json);

    assert_non_null(json);
    memset(outcome_p, 0, sizeof *outcome_p);
    outcome_p->ret = iris_i_json_open(json, path);
    if (outcome_p->ret == 0) {
        outcome_p->ret =
            iris_i_events_read(json, &outcome_p->file, keep, &outcome_p->event);
        iris_i_json_close(json);
    }
    snprintf(outcome_p->error, sizeof outcome_p->error, "%s", json->error);
    free(json);
}

static void read_members(const char *members, struct outcome *outcome_p)
{
    char path[400];

    name_file(path, "event.json");
    write_file(path, members, "\"clock_error_ns\":9223372036854775807");
    read_file(path, outcome_p);
}

/* Whether what readers do with times overflows: ends, spans, their errors. */
static void check_sums(const struct outcome *a, const struct outcome *b)
{
    int64_t end, span;

    assert_int_equal(a->ret, 0);
    assert_int_equal(b->ret, 0);
    assert_false(__builtin_add_overflow(a->event.ts_ns, a->event.dur_ns, &end));
    assert_false(__builtin_sub_overflow(end, b->event.ts_ns, &span));
    assert_false(__builtin_add_overflow(span, 1, &span));
    assert_false(__builtin_sub_overflow(b->event.ts_ns, end, &span));
    assert_false(__builtin_add_overflow(
        a->file.clock_error_ns, 2 * (b->file.clock_error_ns / 2), &span));
}

static TEST(sums_of_times_near_2_63_do_not_overflow)
{
    static const char *const times[] = {
        "9223372036854775807",
        "9223372036854775.807",
        "922337203685477580",
        "-9223372036854775808",
        "9.3e18",
        "-9.3e18",
        "9.2e15",
        "-9.2e15",
        "1e300",
        "99999999999999999999.9",
        "0",
    };
    const size_t count = sizeof times / sizeof times[0];
    struct outcome some[sizeof times / sizeof times[0]];
    char members[200];

    for (size_t i = 0; i < count; i++) {
        snprintf(members, sizeof members, "\"ts\":%s,\"dur\":%s", times[i],
                 times[i]);
        read_members(members, &some[i]);
        assert_true(some[i].event.dur_ns >= 0);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            check_sums(&some[i], &some[k]);
        }
    }
}

static TEST(times_keep_their_digits)
{
    struct outcome outcome;

    read_members("\"ts\":2305843009213.693,\"dur\":0.5", &outcome);
    assert_int_equal(outcome.event.ts_ns, 2305843009213693);
    assert_int_equal(outcome.event.dur_ns, 500);
    read_members("\"ts\":-17.25,\"dur\":1e3", &outcome);
    assert_int_equal(outcome.event.ts_ns, -17250);
    assert_int_equal(outcome.event.dur_ns, 1000000);
}

/* A file may hold a string that is a thousand times its packed size. */
static TEST(a_very_long_event_is_an_error)
{
    const size_t bytes = (size_t)8 << 20;
    char *members = malloc(bytes + 64);
    struct outcome outcome;
    int length;

    assert_non_null(members);
    length = sprintf(members, "\"name\":\"");
    memset(members + length, 'x', bytes);
    strcpy(members + length + bytes, "\"");
    read_members(members, &outcome);
    free(members);
    assert_int_equal(outcome.ret, -1);
    assert_non_null(strstr(outcome.error, "an event of more than 1 MiB"));
}

/* ---- Clocks ---- */

static void merge_two(const char *first, const char *second,
                      struct iris_merge_report *report_p)
{
    char paths[2][400], out[400];
    char *files[] = {paths[0], paths[1]};

    name_file(paths[0], "a.json");
    name_file(paths[1], "b.json");
    name_file(out, "ab.json");
    write_file(paths[0], "\"ts\":1", first);
    write_file(paths[1], "\"ts\":2", second);
    assert_int_equal(iris_i_merge(files, 2, out, report_p), 0);
}

static TEST(a_merge_knows_the_worst_clock_or_that_it_does_not)
{
    static const char known[] =
        "\"clock_error_ns\":70,\"device_clock_error_ns\":8";
    struct iris_merge_report report;
    struct outcome outcome;
    char out[400];

    name_file(out, "ab.json");
    merge_two(known, "\"clock_error_ns\":9,\"device_clock_error_ns\":10",
              &report);
    assert_int_equal(report.clock_error_ns, 70);
    assert_int_equal(report.device_error_ns, 10);
    merge_two(known, "\"rank\":1", &report);
    assert_int_equal(report.clock_error_ns, -1);
    assert_int_equal(report.device_error_ns, -1);
    read_file(out, &outcome);
    assert_int_equal(outcome.ret, 0);
    assert_int_equal(outcome.file.clock_error_ns, -1);
    assert_int_equal(outcome.file.device_error_ns, -1);
}

TEST_GROUP(unit);
