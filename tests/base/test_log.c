/* SPDX-License-Identifier: MIT
 *
 * Log lines: their form, their levels, and that threads' lines do not mix.
 */
#include "config.h"

#include "support/harness.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4
#define LINES 500

static iris_t *start(void)
{
    iris_t *iris = NULL;

    assert_int_equal(iris_init(NULL, &iris), IRIS_OK);
    return iris;
}

static TEST(a_line_says_who_of_how_many)
{
    iris_t *iris = start();
    struct harness_capture capture;

    harness_capture(&capture);
    iris_warning(iris, "the answer is %d", 42);
    assert_string_equal(harness_captured(&capture),
                        "[Iris] [0/1] the answer is 42\n");
    free(capture.text);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

static int say_rank(iris_t *iris, void *arg)
{
    iris_warning(iris, "here");
    return 0;
}

static TEST(every_rank_says_its_own_number)
{
    struct harness_capture capture;
    const char *text;

    harness_capture(&capture);
    harness_run(3, say_rank, NULL);
    text = harness_captured(&capture);
    assert_non_null(strstr(text, "[Iris] [0/3] here\n"));
    assert_non_null(strstr(text, "[Iris] [1/3] here\n"));
    assert_non_null(strstr(text, "[Iris] [2/3] here\n"));
    free(capture.text);
}

static void say_all(const iris_t *iris)
{
    iris_debug(iris, "d");
    iris_info(iris, "i");
    iris_warning(iris, "w");
    iris_error(iris, "e");
}

static TEST(a_level_prints_itself_and_what_is_worse)
{
    static const struct {
        iris_log_level_t level;
        const char *text;
    } rows[] = {
        {IRIS_LOG_DEBUG, "[Iris] [0/1] d\n[Iris] [0/1] i\n"
                         "[Iris] [0/1] w\n[Iris] [0/1] e\n"},
        {IRIS_LOG_INFO, "[Iris] [0/1] i\n[Iris] [0/1] w\n[Iris] [0/1] e\n"},
        {IRIS_LOG_WARNING, "[Iris] [0/1] w\n[Iris] [0/1] e\n"},
        {IRIS_LOG_ERROR, "[Iris] [0/1] e\n"},
        {IRIS_LOG_OFF, ""},
    };
    iris_t *iris = start();

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct harness_capture capture;

        iris_log_set_level(iris, rows[i].level);
        harness_capture(&capture);
        say_all(iris);
        assert_string_equal(harness_captured(&capture), rows[i].text);
        free(capture.text);
    }
    iris_log_set_level(NULL, IRIS_LOG_DEBUG);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

static TEST(without_a_context_the_environment_says_the_level)
{
    static const char *const rows[][2] = {
        {"debug", "[Iris] d\n[Iris] i\n[Iris] w\n[Iris] e\n"},
        {"Warning", "[Iris] w\n[Iris] e\n"},
        {"off", ""},
        {"nonsense", "[Iris] i\n[Iris] w\n[Iris] e\n"},
    };
    const char *before = getenv("IRIS_LOG_LEVEL");
    char kept[32];

    snprintf(kept, sizeof kept, "%s", before);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct harness_capture capture;

        setenv("IRIS_LOG_LEVEL", rows[i][0], 1);
        harness_capture(&capture);
        say_all(NULL);
        assert_string_equal(harness_captured(&capture), rows[i][1]);
        free(capture.text);
    }
    setenv("IRIS_LOG_LEVEL", kept, 1);
}

static TEST(a_context_starts_at_the_level_of_its_settings)
{
    struct iris_config config;
    struct harness_capture capture;
    iris_t *iris = NULL;

    iris_config_init(&config);
    config.log_level = "ERROR";
    assert_int_equal(iris_init(&config, &iris), IRIS_OK);
    harness_capture(&capture);
    say_all(iris);
    assert_string_equal(harness_captured(&capture), "[Iris] [0/1] e\n");
    free(capture.text);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

static TEST(failures_are_logged_at_debug_level)
{
    iris_t *iris = start();
    struct harness_capture capture;
    const char *text;

    iris_log_set_level(iris, IRIS_LOG_DEBUG);
    harness_capture(&capture);
    assert_int_equal(iris_free(iris, &capture), IRIS_ERR_INVALID);
    text = harness_captured(&capture);
    assert_non_null(strstr(text, "[Iris] [0/1] IRIS_ERR_INVALID: [0/1] "));
    assert_non_null(strstr(text, iris_last_error()));
    free(capture.text);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

static TEST(a_line_too_long_is_cut_but_ends)
{
    static char text[5000];
    struct harness_capture capture;
    const char *got;

    memset(text, 'y', sizeof text - 1);
    harness_capture(&capture);
    iris_error(NULL, "%s", text);
    iris_error(NULL, "next");
    got = harness_captured(&capture);
    assert_non_null(strstr(got, "yyy\n[Iris] next\n"));
    free(capture.text);
}

static void *say_many(void *arg)
{
    for (int line = 0; line < LINES; line++) {
        iris_error(arg, "line %d with a tail to make it longer", line);
    }
    return NULL;
}

static TEST(lines_of_threads_do_not_mix)
{
    iris_t *iris = start();
    pthread_t threads[THREADS];
    struct harness_capture capture;
    int lines = 0, number, length;
    const char *text;

    harness_capture(&capture);
    for (int i = 0; i < THREADS; i++) {
        pthread_create(&threads[i], NULL, say_many, iris);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    text = harness_captured(&capture);
    while (sscanf(text, "[Iris] [0/1] line %d with a tail to make it longer%n",
                  &number, &length) == 1 &&
           text[length] == '\n') {
        text += length + 1;
        lines++;
    }
    assert_int_equal(lines, THREADS * LINES);
    assert_string_equal(text, "");
    free(capture.text);
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

static int ticked;

static void tick(int signal)
{
    (void)!write(ticked, "t", 1);
}

/* Standard error is a pipe that is full, while a profiler's timer ticks. */
static void log_interrupted(int pipe_end)
{
    const struct sigaction action = {.sa_handler = tick};
    const struct itimerval often = {{0, 1000}, {0, 1000}};

    dup2(pipe_end, STDERR_FILENO);
    fcntl(pipe_end, F_SETFL, O_NONBLOCK);
    while (write(pipe_end, "x", 1) == 1) {
    }
    fcntl(pipe_end, F_SETFL, 0);
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    iris_error(NULL, "is heard");
    _exit(0);
}

static TEST(a_line_is_written_though_signals_interrupt_it)
{
    static char text[1 << 20];
    int err[2], ticks[2];
    size_t length = 0;
    ssize_t got;

    assert_int_equal(pipe(err) | pipe(ticks), 0);
    if (fork() == 0) {
        ticked = ticks[1];
        log_interrupted(err[1]);
    }
    close(err[1]);
    close(ticks[1]);
    for (int i = 0; i < 20 && read(ticks[0], text, 1) == 1; i++) {
    }
    while ((got = read(err[0], text + length, sizeof text - length)) > 0) {
        length += (size_t)got;
    }
    assert_non_null(memmem(text, length, "is heard\n", 9));
    close(err[0]);
    close(ticks[0]);
    wait(NULL);
}

TEST_GROUP(unit);
