/* SPDX-License-Identifier: MIT
 *
 * Planted hangs: each rank plays a script, somebody waits for what does not
 * come, and the report that the job writes at the deadline or at a death names
 * the cause. With ranks as threads and as processes.
 */
#include "config.h"

#include "report/script.h"

#if IRIS_ON_CPU
#define DEADLINE_MS 1000
#define NEVER_MS 60000

struct hang {
    const char *name;
    const char *scripts[RANKS]; /* NULL: no such rank */
    int host;                   /* the deadline is the host's */
    int processes;              /* only as those */
    const char *verdict;
    const char *cause[3]; /* what its sentence has */
};

/* ---- The hangs ---- */

static const struct hang hangs[] = {
#include "report/hangs.def"
};

/* The line of the report with its cause, for the caller to free; NULL. */
static char *cause_of(const char *text)
{
    static const char *const verdicts[] = {
        "] RUNNING: ", "] LATE: ",     "] STOPPED: ",
        "] HUNG: ",    "] MISMATCH: ", "] LOST: "};

    for (size_t i = 0; i < sizeof verdicts / sizeof verdicts[0]; i++) {
        const char *at = strstr(text, verdicts[i]);

        if (at != NULL) {
            return strndup(at + 2, strcspn(at + 2, "\n"));
        }
    }
    return NULL;
}

static int is_named(const struct hang *hang, const char *cause)
{
    if (cause == NULL ||
        strncmp(cause, hang->verdict, strlen(hang->verdict)) != 0) {
        return 0;
    }
    for (int i = 0; i < 3 && hang->cause[i] != NULL; i++) {
        if (strstr(cause, hang->cause[i]) == NULL) {
            return 0;
        }
    }
    return 1;
}

static int run(const struct hang *hang, const char *spawn)
{
    struct harness_capture capture;
    struct iris_config config;
    struct job job;
    char *cause;
    iris_status_t status;
    int named;

    open_job(&job, hang->scripts);
    iris_config_init(&config);
    config.spawn = spawn;
    config.timeout_ms = hang->host ? DEADLINE_MS : NEVER_MS;
    config.device_timeout_ms = hang->host ? 0 : DEADLINE_MS;
    harness_capture(&capture);
    status = iris_spawn(&config, count_ranks(hang->scripts), body, &job);
    harness_captured(&capture);
    close_job(&job);
    cause = cause_of(capture.text);
    named = status != IRIS_OK && is_named(hang, cause);
    if (!named) {
        print_error("%s, %s: \"%s\" is not %s with \"%s\" in\n%s", hang->name,
                    spawn, cause == NULL ? "nothing" : cause, hang->verdict,
                    hang->cause[0], capture.text);
    } else if (getenv("IRIS_TEST_SHOW") != NULL) {
        print_message("%s, %s: %s\n", hang->name, spawn, cause);
    }
    free(cause);
    free(capture.text);
    return named;
}

/* A lane that repeats atomic operations waits no more while its thread gets no
 * processor, so a report of a busy machine may say LATE. One of three must be
 * right. */
static int is_named_at_last(const struct hang *hang, const char *spawn)
{
    return run(hang, spawn) || run(hang, spawn) || run(hang, spawn);
}

static TEST(the_report_names_the_cause)
{
    const char *only = getenv("IRIS_TEST_HANG");
    int all = only != NULL || harness_count(2, 1) == 2, wrong = 0;

    for (size_t i = 0; i < sizeof hangs / sizeof hangs[0]; i++) {
        if (only != NULL && strstr(only, hangs[i].name) == NULL) {
            continue;
        }
        /* A short run has half of those that the other half is like. */
        if (!hangs[i].processes && (all || i % 2 == 0)) {
            wrong += !is_named_at_last(&hangs[i], "threads");
        }
        if (hangs[i].processes || all || i % 2 == 1) {
            wrong += !is_named_at_last(&hangs[i], "processes");
        }
    }
    assert_int_equal(wrong, 0);
}

/* All ranks meet a deadline at once: one writes, to stderr and to the file. */
static TEST(one_rank_writes_the_report_once)
{
    static const char *const scripts[] = {"w0=1", "w0=1", "w0=1", NULL};
    struct harness_capture capture;
    struct iris_config config;
    char prefix[256], path[300], *text;
    const char *first;
    struct job job;

    open_job(&job, scripts);
    snprintf(prefix, sizeof prefix, "%s/hang", harness_folder());
    iris_config_init(&config);
    config.report = prefix;
    config.device_timeout_ms = DEADLINE_MS;
    harness_capture(&capture);
    assert_int_equal(iris_spawn(&config, 3, body, &job), IRIS_ERR_TIMEOUT);
    harness_captured(&capture);
    close_job(&job);
    first = strstr(capture.text, "] job ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "] job "));
    snprintf(path, sizeof path, "%s_report_0.json", prefix);
    text = harness_read_file(path);
    assert_non_null(text);
    assert_non_null(strstr(text, "\"schema\": \"iris-report 1\", \"verdict\": "
                                 "\"HUNG\""));
    assert_int_equal(unlink(path), 0);
    snprintf(path, sizeof path, "%s_report_1.json", prefix);
    assert_int_not_equal(access(path, F_OK), 0);
    free(text);
    free(capture.text);
}

/* It goes on, and prints one report of both ranks. */
static TEST(a_signal_prints_the_report_of_the_job)
{
    static const char *const spawns[] = {"threads", "processes"};
    static const char *const scripts[] = {"U l", "l", NULL};

    for (int i = 0; i < 2; i++) {
        struct harness_capture capture;
        struct iris_config config;
        const char *first;
        struct job job;

        open_job(&job, scripts);
        iris_config_init(&config);
        config.spawn = spawns[i];
        harness_capture(&capture);
        assert_int_equal(iris_spawn(&config, 2, body, &job), IRIS_OK);
        harness_captured(&capture);
        close_job(&job);
        first = strstr(capture.text, "] RUNNING: ");
        assert_non_null(first);
        assert_non_null(strstr(first, "  rank 1 (pid "));
        assert_null(strstr(first + 1, "] RUNNING: "));
        free(capture.text);
    }
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit, cpu, slow);

#endif /* IRIS_ON_CPU */
