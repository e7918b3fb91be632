/* SPDX-License-Identifier: MIT
 *
 * What iris_spawn() returns when a rank fails, exits or is killed.
 */
#include "config.h"

#include "support/harness.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/leaks.h"

static const char *const ways[] = {"threads", "processes"};

static iris_status_t spawn_as(const char *way, int num_ranks, iris_rank_fn fn,
                              void *arg)
{
    struct iris_config config;

    iris_config_init(&config);
    config.spawn = way;
    return iris_spawn(&config, num_ranks, fn, arg);
}

/* Both ways, without a trace. */
static void expect(int num_ranks, iris_rank_fn fn, void *arg,
                   iris_status_t expected, const char *text)
{
    for (int way = 0; way < 2; way++) {
        struct leaks before;
        iris_status_t status;

        leaks_note(&before);
        status = spawn_as(ways[way], num_ranks, fn, arg);
        if (status != expected ||
            (expected != IRIS_OK && !harness_message_has(text))) {
            print_error("%s: %s: %s\n", ways[way], iris_status_string(status),
                        iris_last_error());
            fail();
        }
        assert_int_equal(leaks_found(&before), 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombies */
    }
}

static int fail_with(iris_t *iris, void *arg)
{
    void *ptr;

    if (iris_rank(iris) == 1) {
        return *(int *)arg;
    }
    return iris_malloc(iris, 64, &ptr);
}

static void a_functions_number_comes_back_with_its_rank(void **state)
{
    int code = 42;

    expect(3, fail_with, &code, IRIS_ERR_PEER_LOST,
           "[1/3] the function of rank 1 returned 42");
}

static int fail_alone(iris_t *iris, void *arg)
{
    (void)iris;
    return *(int *)arg;
}

static int fail_in_library(iris_t *iris, void *arg)
{
    void *remote;

    (void)arg;
    if (iris_rank(iris) == 2) {
        return iris_as_remote(iris, iris_device_context(iris), 77, &remote);
    }
    return iris_barrier(iris, NULL, NULL);
}

static void a_librarys_status_comes_back_with_its_message(void **state)
{
    expect(3, fail_in_library, NULL, IRIS_ERR_INVALID,
           "[2/3] rank 77 is out of range");
    expect(3, fail_in_library, NULL, IRIS_ERR_INVALID,
           "the function of rank 2 returned IRIS_ERR_INVALID (-1): ");
}

/* Under a launcher the thread may have failed at something before. */
static void a_status_of_its_own_comes_with_no_old_message(void **state)
{
    int code = IRIS_ERR_LIMIT;
    char key[32];

    expect(3, fail_with, &code, IRIS_ERR_LIMIT,
           "[1/3] the function of rank 1 returned IRIS_ERR_LIMIT (-12)");
    assert_null(strchr(strchr(iris_last_error(), ')'), ':'));
    snprintf(key, sizeof key, "spawn-%ld", (long)getpid());
    setenv("IRIS_RANK", "0", 1);
    setenv("IRIS_NUM_RANKS", "1", 1);
    setenv("IRIS_JOB_ID", key, 1);
    assert_int_equal(iris_init(NULL, NULL), IRIS_ERR_INVALID);
    assert_int_equal(iris_spawn(NULL, 0, fail_alone, &code), IRIS_ERR_LIMIT);
    assert_string_equal(iris_last_error(), "[0/1] the function of rank 0 "
                                           "returned IRIS_ERR_LIMIT (-12)");
    unsetenv("IRIS_RANK");
    unsetenv("IRIS_NUM_RANKS");
    unsetenv("IRIS_JOB_ID");
}

/* Finalizes, which is not for it to do, and returns *arg. */
static int end_it_myself(iris_t *iris, void *arg)
{
    CHECK_OK(iris_finalize(iris));
    return *(int *)arg;
}

static void a_function_that_finalizes_has_failed_once(void **state)
{
    int code = 0;

    expect(2, end_it_myself, &code, IRIS_ERR_STATE,
           "finalized its context; leave that to iris_spawn");
    code = 5;
    expect(2, end_it_myself, &code, IRIS_ERR_PEER_LOST,
           "returned 5, after it had finalized its context");
    code = IRIS_ERR_CONFIG;
    expect(2, end_it_myself, &code, IRIS_ERR_CONFIG,
           "returned IRIS_ERR_CONFIG (-5), after it had finalized");
}

static int never(iris_t *iris, void *arg)
{
    (void)iris;
    (void)arg;
    return harness_failed(__FILE__, __LINE__, "the function ran", 1, 0);
}

static void ranks_that_cannot_start_run_nothing(void **state)
{
    const char *before = getenv("IRIS_BACKEND");
    char saved[64];

    snprintf(saved, sizeof saved, "%s", before == NULL ? "" : before);
    setenv("IRIS_BACKEND", "quantum", 1);
    expect(4, never, NULL, IRIS_ERR_BACKEND, "\"quantum\"");
    setenv("IRIS_BACKEND", saved, 1);
}

static int die(iris_t *iris, void *arg)
{
    if (iris_rank(iris) == 1) {
        kill(getpid(), *(int *)arg);
    }
    return iris_barrier(iris, NULL, NULL);
}

static void a_killed_child_is_named_with_its_signal(void **state)
{
    static const int signals[] = {SIGKILL, SIGTERM, SIGABRT};
    char text[64];

    for (int i = 0; i < 3; i++) {
        int number = signals[i];
        struct leaks before;

        leaks_note(&before);
        assert_int_equal(spawn_as("processes", 3, die, &number),
                         IRIS_ERR_PEER_LOST);
        assert_true(harness_message_has("rank 1 (pid "));
        snprintf(text, sizeof text, "was killed by signal %d", number);
        assert_true(harness_message_has(text));
        assert_int_equal(leaks_found(&before), 0);
        assert_int_equal(leaks_found_files(), 0);
    }
}

static int leave(iris_t *iris, void *arg)
{
    if (iris_rank(iris) == *(int *)arg) {
        _exit(3);
    }
    return iris_barrier(iris, NULL, NULL);
}

static void a_child_that_exits_is_lost(void **state)
{
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(spawn_as("processes", 2, leave, &rank),
                         IRIS_ERR_PEER_LOST);
        assert_true(harness_message_has(rank == 0 ? "rank 0" : "rank 1"));
    }
}

static int TEST_FILE(unit)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_functions_number_comes_back_with_its_rank),
        cmocka_unit_test(a_status_of_its_own_comes_with_no_old_message),
        cmocka_unit_test(a_function_that_finalizes_has_failed_once),
        cmocka_unit_test(a_librarys_status_comes_back_with_its_message),
        cmocka_unit_test(ranks_that_cannot_start_run_nothing),
        cmocka_unit_test(a_killed_child_is_named_with_its_signal),
        cmocka_unit_test(a_child_that_exits_is_lost),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
