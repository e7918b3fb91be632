/* SPDX-License-Identifier: MIT
 *
 * Waits of the host that take long: after IRIS_WARN_MS each logs one line that
 * says what it waits for and whom. What is waited for comes once the line is
 * there.
 */
#include "config.h"

#include "support/harness.h"
#include "support/procs.h"
#include "support/wait_kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 3
#define WARN_MS 20

/* For procs_join(), which looks for files that were left behind. */
static void remove_log(void)
{
    char path[320];

    snprintf(path, sizeof path, "%s/stderr", harness_folder());
    assert_int_equal(unlink(path), 0);
}

/* The captured text has `line`, once. */
static void check_once(const char *captured, const char *line)
{
    const char *first = strstr(captured, line);

    if (first == NULL || strstr(first + 1, line) != NULL) {
        print_error("not once \"%s\" in:\n%s", line, captured);
        fail();
    }
}

/* Runs `body` as threads and as processes; `line` is logged once. */
static void run(iris_rank_fn body, const char *line)
{
    static const char *const ways[] = {"threads", "processes"};

    for (int way = 0; way < 2; way++) {
        struct harness_capture capture;
        struct iris_config config;
        iris_status_t status;

        iris_config_init(&config);
        config.spawn = ways[way];
        config.warn_ms = WARN_MS;
        harness_capture(&capture);
        status = iris_spawn(&config, 2, body, NULL);
        harness_captured(&capture);
        if (status != IRIS_OK) {
            print_error("%s: %s\n%s", ways[way], iris_last_error(),
                        capture.text);
        }
        assert_int_equal(status, IRIS_OK);
        check_once(capture.text, line);
        free(capture.text);
    }
}

static int barrier_body(iris_t *iris, void *arg)
{
    void *ptr;

    CHECK_OK(iris_malloc(iris, 64, &ptr));
    if (iris_rank(iris) == 1) {
        harness_await_logged("iris_barrier has waited");
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(a_collective_call_says_for_whom_it_waits)
{
    run(barrier_body, "iris_barrier has waited 0 s for rank 1: after 1 "
                      "collective calls it is outside the library since its "
                      "iris_malloc; it waits on until IRIS_TIMEOUT_MS");
}

static int stream_body(iris_t *iris, void *arg)
{
    void *word;

    CHECK_OK(iris_calloc(iris, 1, sizeof(uint64_t), &word));
    if (iris_rank(iris) == 1) {
        harness_await_logged("the host has waited");
        return iris_signal_on_stream(iris, (uint64_t *)word, 1, 0, NULL);
    }
    CHECK_OK(launch_wait(iris, (uint64_t *)word));
    return iris_stream_synchronize(iris, NULL);
}

static TEST(a_stream_that_is_not_done_is_said_to)
{
    run(stream_body, "the host has waited 0 s for a stream: ");
}

/* ---- Init ---- */

/* The rank *arg comes once the others have logged that it, or who waits for it,
 * is missing. */
static void come_late(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris;

    if (rank == *(const int *)arg) {
        harness_await_logged("[1/3] iris_init has waited");
        harness_await_logged(rank == 0 ? "[2/3] iris_init has waited"
                                       : "[0/3] iris_init has waited");
    }
    iris = proc_init(report);
    if (iris != NULL) {
        proc_finalize(report, iris);
    }
    proc_reach(report, 1);
}

static TEST(init_says_for_whom_it_waits)
{
    static const char *const lines[2][2] = {
        {"[1/3] iris_init has waited 0 s for rank 0, which has not come; "
         "it waits on until IRIS_TIMEOUT_MS",
         "[2/3] iris_init has waited 0 s for rank 0, which has not come"},
        {"[0/3] iris_init has waited 0 s for rank 2, missing yet",
         "[1/3] iris_init has waited 0 s for rank 0, which waits for other "
         "ranks or is late itself"},
    };

    setenv("IRIS_WARN_MS", "20", 1);
    for (int late = 0; late <= 2; late += 2) {
        struct harness_capture capture;
        struct procs procs;

        harness_capture(&capture);
        procs_start(&procs, RANKS, come_late, &late);
        for (int rank = 0; rank < RANKS; rank++) {
            procs_await(&procs, rank, 1);
        }
        harness_captured(&capture);
        remove_log();
        procs_join(&procs);
        for (int rank = 0; rank < RANKS; rank++) {
            assert_int_equal(procs.reports[rank].status, IRIS_OK);
        }
        for (int i = 0; i < 2; i++) {
            check_once(capture.text, lines[late / 2][i]);
        }
        procs_free(&procs);
        free(capture.text);
    }
    unsetenv("IRIS_WARN_MS");
}

TEST_GROUP(unit);
