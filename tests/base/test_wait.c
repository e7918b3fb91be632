/* SPDX-License-Identifier: MIT
 *
 * The one wait: deadline, death, interrupt, warning, and the last look.
 */
#include "config.h"

#include "base/base.h"

#include "support/harness.h"

#include <iris/context.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEADLINE_MS 20
#define WARN_MS 10

/* What the callbacks were asked, and what they answer. */
struct asked {
    iris_status_t fate;
    int is_silent;    /* describe() has nothing to say yet */
    int64_t named_ns; /* when describe() first named somebody */
    int sleeps;
    int64_t longest_ns;
    int going_on, over, ended;
};

static struct asked asked;

static iris_status_t answer(void *arg)
{
    struct asked *a = arg;

    return a->fate == IRIS_OK
               ? IRIS_OK
               : iris_i_fail(NULL, a->fate, "rank 7 died (in a test)");
}

static void describe(void *arg, char *text, size_t bytes)
{
    struct asked *a = arg;

    snprintf(text, bytes, "%s", a->is_silent ? "" : "rank 7");
    if (!a->is_silent && a->named_ns == 0) {
        a->named_ns = iris_i_now_ns();
    }
    a->is_silent = 0;
}

static void note(struct iris_wait *wait, enum iris_wait_phase phase)
{
    struct asked *a = wait->arg;

    wait->slot = 3;
    a->going_on += phase == IRIS_WAIT_GOES_ON;
    a->over += phase == IRIS_WAIT_IS_OVER;
    a->ended += phase == IRIS_WAIT_WAS_ENDED;
}

static void sleep_little(void *arg, int64_t ns)
{
    struct asked *a = arg;

    a->sleeps++;
    a->longest_ns = ns > a->longest_ns ? ns : a->longest_ns;
    usleep(1000);
}

static const struct iris_wait_type type = {
    .pace = IRIS_PACE_MOMENT, .describe = describe, .note = note};

static int never(const struct iris_wait *wait)
{
    return 0;
}

/* Some periods of the warning later. */
static int long_after_the_warning(const struct iris_wait *wait)
{
    return asked.named_ns != 0 &&
           iris_i_now_ns() - asked.named_ns > 5 * WARN_MS * IRIS_NS_PER_MS;
}

static int when_it_was_to_end(const struct iris_wait *wait)
{
    return wait->ending != IRIS_OK;
}

static iris_status_t run(const struct iris_wait_type *what,
                         const struct iris_waiter *waiter,
                         int (*done)(const struct iris_wait *wait))
{
    struct iris_wait wait;
    iris_status_t status = IRIS_OK;

    iris_i_wait_begin(&wait, what, waiter, "iris_test", &asked);
    while (status == IRIS_OK && !done(&wait)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return status;
}

static int clear(void **state)
{
    memset(&asked, 0, sizeof asked);
    return 0;
}

static TEST_WITH(the_first_turns_read_no_clock, clear, NULL)
{
    static const struct iris_wait_type agreement = {.pace = IRIS_PACE_AGREE};
    const struct iris_pace_row *pace = &iris_i_paces[IRIS_PACE_AGREE];
    const struct iris_waiter waiter = {.timeout_ms = 1};
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &agreement, &waiter, "iris_test", NULL);
    for (unsigned i = 0; i < pace->looks + pace->pauses + pace->yields; i++) {
        assert_int_equal(iris_i_wait_tick(&wait), IRIS_OK);
        assert_int_equal(wait.now_ns, 0);
    }
    assert_int_equal(iris_i_wait_tick(&wait), IRIS_OK);
    assert_true(wait.now_ns >= wait.begin_ns && wait.begin_ns > 0);
    iris_i_wait_end(&wait, IRIS_OK);
}

static TEST_WITH(a_deadline_names_what_and_whom, clear, NULL)
{
    const struct iris_waiter waiter = {.timeout_ms = DEADLINE_MS};

    assert_int_equal(run(&type, &waiter, never), IRIS_ERR_TIMEOUT);
    assert_non_null(strstr(iris_last_error(), "iris_test has waited "));
    assert_non_null(
        strstr(iris_last_error(), "ms (IRIS_TIMEOUT_MS) for rank 7"));
    assert_int_equal(asked.ended, 1);
    assert_int_equal(asked.over, 0);
    assert_true(asked.going_on > 0);
}

static TEST_WITH(what_comes_at_the_last_moment_has_come, clear, NULL)
{
    const struct iris_waiter late = {.timeout_ms = DEADLINE_MS};
    const struct iris_waiter alone = {.fate = answer, .arg = &asked};

    assert_int_equal(run(&type, &late, when_it_was_to_end), IRIS_OK);
    asked.fate = IRIS_ERR_PEER_LOST;
    assert_int_equal(run(&type, &alone, when_it_was_to_end), IRIS_OK);
    assert_int_equal(asked.over, 2);
    assert_int_equal(asked.ended, 0);
}

static TEST_WITH(a_death_ends_the_wait, clear, NULL)
{
    const struct iris_waiter waiter = {.fate = answer, .arg = &asked};
    struct iris_wait_type own = type;

    asked.fate = IRIS_ERR_PEER_LOST;
    assert_int_equal(run(&type, &waiter, never), IRIS_ERR_PEER_LOST);
    assert_string_equal(iris_last_error(), "rank 7 died (in a test)");
    own.fate = answer; /* in place of the waiter's */
    assert_int_equal(run(&own, &(struct iris_waiter){0}, never),
                     IRIS_ERR_PEER_LOST);
}

static int says_end(void *arg)
{
    return 1;
}

static TEST_WITH(interrupts_end_the_wait_unless_it_is_heedless, clear, NULL)
{
    atomic_int interrupted = 1, heedless = 0;
    struct iris_waiter waiter = {.timeout_ms = DEADLINE_MS,
                                 .interrupted = &interrupted,
                                 .heedless = &heedless};

    assert_int_equal(run(&type, &waiter, never), IRIS_ERR_INTERRUPTED);
    atomic_store(&heedless, 1);
    assert_int_equal(run(&type, &waiter, never), IRIS_ERR_TIMEOUT);
}

static TEST_WITH(the_wait_check_interrupts, clear, NULL)
{
    atomic_int interrupted = 0;
    struct iris_waiter waiter = {.timeout_ms = 10000,
                                 .interrupted = &interrupted};
    iris_status_t status, alone;

    iris_set_wait_check(says_end, NULL);
    status = run(&type, &waiter, never);
    waiter.interrupted = NULL;
    alone = run(&type, &waiter, never);
    iris_set_wait_check(NULL, NULL);
    assert_int_equal(status, IRIS_ERR_INTERRUPTED);
    assert_int_equal(atomic_load(&interrupted), 1);
    assert_int_equal(alone, IRIS_ERR_INTERRUPTED);
    assert_non_null(strstr(iris_last_error(), "iris_set_wait_check"));
}

static TEST_WITH(one_line_warns_once_somebody_is_to_blame, clear, NULL)
{
    const struct iris_waiter waiter = {.timeout_ms = 60000, .warn_ms = WARN_MS};
    struct harness_capture capture;
    const char *line;

    asked.is_silent = 1;
    harness_capture(&capture);
    assert_int_equal(run(&type, &waiter, long_after_the_warning), IRIS_OK);
    line = strstr(harness_captured(&capture), "iris_test has waited ");
    assert_non_null(line);
    line = strstr(line, " s for rank 7; it waits on until IRIS_TIMEOUT_MS");
    assert_non_null(line);
    assert_null(strstr(strchr(line, '\n'), "it waits on"));
    free(capture.text);
}

static TEST_WITH(no_sleep_goes_beyond_the_deadline, clear, NULL)
{
    const struct iris_wait_type own = {.pace = IRIS_PACE_SOCKET,
                                       .sleep = sleep_little};
    const struct iris_waiter waiter = {.timeout_ms = DEADLINE_MS};

    /* On a busy machine the deadline may pass before the first sleep. */
    for (int i = 0; i < 1000 && asked.sleeps == 0; i++) {
        assert_int_equal(run(&own, &waiter, never), IRIS_ERR_TIMEOUT);
    }
    assert_true(asked.sleeps > 0);
    assert_true(asked.longest_ns <= DEADLINE_MS * IRIS_NS_PER_MS);
}

static TEST_WITH(a_descriptor_ends_the_sleep, clear, NULL)
{
    static const struct iris_wait_type of_fd = {.pace = IRIS_PACE_SOCKET};
    const struct iris_waiter waiter = {0};
    struct iris_wait wait;
    int64_t begin = iris_i_now_ns();
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], "x", 1), 1);
    iris_i_wait_begin(&wait, &of_fd, &waiter, "iris_test", NULL);
    wait.fd = ends[0];
    for (int i = 0; i < 1000; i++) { /* 50 s if it slept */
        assert_int_equal(iris_i_wait_tick(&wait), IRIS_OK);
    }
    assert_true(iris_i_now_ns() - begin < 40 * IRIS_NS_PER_S);
    close(ends[0]);
    close(ends[1]);
}

static TEST_WITH(times_that_the_caller_knows_stay, clear, NULL)
{
    const struct iris_waiter waiter = {.timeout_ms = 60000};
    struct iris_wait wait;
    iris_status_t status = IRIS_OK;

    iris_i_wait_begin(&wait, &type, &waiter, "iris_test", &asked);
    wait.deadline_ns = 1; /* past: one more look */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(status, IRIS_OK);
        status = iris_i_wait_tick(&wait);
    }
    assert_int_equal(status, IRIS_ERR_TIMEOUT);
}

TEST_GROUP(unit);
