/* SPDX-License-Identifier: MIT
 *
 * iris_spawn(): ranks as threads and as processes, jobs within jobs and beside
 * each other; what it returns when a rank fails, exits or is killed.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

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

struct seen {
    atomic_int count;
    pid_t pid;
    int pids_differ;
    int ranks[8];
};

static int look(iris_t *iris, void *arg)
{
    struct seen *seen = arg;
    int rank = iris_rank(iris);

    CHECK(rank >= 0 && rank < iris_num_ranks(iris));
    atomic_fetch_add(&seen->count, 1);
    seen->ranks[rank] = iris_num_ranks(iris);
    if (getpid() != seen->pid) {
        seen->pids_differ = 1;
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(every_rank_runs_once_as_a_thread_or_a_process)
{
    struct seen *seen = mmap(NULL, sizeof *seen, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    for (int way = 0; way < 2; way++) {
        for (int num_ranks = 1; num_ranks <= 8; num_ranks++) {
            memset(seen, 0, sizeof *seen);
            seen->pid = getpid();
            assert_int_equal(spawn_as(ways[way], num_ranks, look, seen),
                             IRIS_OK);
            assert_int_equal(atomic_load(&seen->count), num_ranks);
            assert_int_equal(seen->pids_differ, way);
            for (int rank = 0; rank < 8; rank++) {
                assert_int_equal(seen->ranks[rank],
                                 rank < num_ranks ? num_ranks : 0);
            }
        }
    }
    munmap(seen, sizeof *seen);
}

static int is_three(iris_t *iris, void *arg)
{
    CHECK_EQUAL(iris_num_ranks(iris), 3);
    return 0;
}

static TEST(zero_ranks_means_what_the_environment_says)
{
    struct iris_config config;

    setenv("IRIS_NUM_RANKS", "3", 1);
    expect(0, is_three, NULL, IRIS_OK, "");
    unsetenv("IRIS_NUM_RANKS");
    iris_config_init(&config);
    config.num_ranks = 3;
    assert_int_equal(iris_spawn(&config, 0, is_three, NULL), IRIS_OK);
}

static TEST(wrong_arguments_are_refused)
{
    struct iris_config config;

    assert_int_equal(iris_spawn(NULL, 2, NULL, NULL), IRIS_ERR_INVALID);
    assert_true(harness_message_has("fn is NULL"));
    assert_int_equal(iris_spawn(NULL, -1, is_three, NULL), IRIS_ERR_INVALID);
    assert_true(harness_message_has("num_ranks is negative"));
    expect(1001, is_three, NULL, IRIS_ERR_UNSUPPORTED, "at most 1000");
    iris_config_init(&config);
    config.spawn = "magic";
    assert_int_equal(iris_spawn(&config, 2, is_three, NULL), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_SPAWN=\"magic\""));
}

static int nest(iris_t *iris, void *arg)
{
    int depth = *(int *)arg - 1;
    iris_t *own;

    if (depth > 0) {
        CHECK_OK(iris_spawn(NULL, 2, nest, &depth));
    }
    CHECK_OK(iris_init(NULL, &own));
    CHECK_EQUAL(iris_num_ranks(own), 1);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return iris_finalize(own);
}

static TEST(jobs_within_jobs_are_jobs_of_their_own)
{
    int depth = 3;

    expect(2, nest, &depth, IRIS_OK, "");
}

static void *spawn_in_thread(void *arg)
{
    return (void *)(intptr_t)spawn_as("threads", 3, is_three, NULL);
}

static TEST(jobs_side_by_side_do_not_meet)
{
    pthread_t threads[4];
    void *result;

    for (int i = 0; i < 4; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, spawn_in_thread, NULL), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], &result);
        assert_int_equal((intptr_t)result, IRIS_OK);
    }
}

static TEST(children_of_the_program_are_left_to_it)
{
    pid_t child = fork();
    int how;

    if (child == 0) {
        _exit(5);
    }
    assert_int_equal(spawn_as("processes", 3, is_three, NULL), IRIS_OK);
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_int_equal(WEXITSTATUS(how), 5);
}

static int launched_as_two(iris_t *iris, void *arg)
{
    CHECK_EQUAL(iris_num_ranks(iris), 1);
    return 0;
}

static TEST(under_a_launcher_the_count_must_be_the_launchers)
{
    struct leaks before;

    leaks_note(&before);
    setenv("IRIS_RANK", "0", 1);
    setenv("IRIS_NUM_RANKS", "1", 1);
    assert_int_equal(iris_spawn(NULL, 0, launched_as_two, NULL), IRIS_OK);
    assert_int_equal(iris_spawn(NULL, 1, launched_as_two, NULL), IRIS_OK);
    assert_int_equal(iris_spawn(NULL, 2, launched_as_two, NULL),
                     IRIS_ERR_INVALID);
    assert_true(harness_message_has("iris_spawn of 2 ranks"));
    unsetenv("IRIS_RANK");
    unsetenv("IRIS_NUM_RANKS");
    assert_int_equal(leaks_found(&before), 0);
}

/* ---- A rank fails, exits or is killed ---- */

static int fail_with(iris_t *iris, void *arg)
{
    void *ptr;

    if (iris_rank(iris) == 1) {
        return *(int *)arg;
    }
    return iris_malloc(iris, 64, &ptr);
}

static TEST(a_functions_number_comes_back_with_its_rank)
{
    int code = 42;

    expect(3, fail_with, &code, IRIS_ERR_PEER_LOST,
           "[1/3] the function of rank 1 returned 42");
}

static int fail_alone(iris_t *iris, void *arg)
{
    return *(int *)arg;
}

static int fail_in_library(iris_t *iris, void *arg)
{
    void *remote;

    if (iris_rank(iris) == 2) {
        return iris_as_remote(iris, iris_device_context(iris), 77, &remote);
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(a_librarys_status_comes_back_with_its_message)
{
    expect(3, fail_in_library, NULL, IRIS_ERR_INVALID,
           "[2/3] rank 77 is out of range");
    expect(3, fail_in_library, NULL, IRIS_ERR_INVALID,
           "the function of rank 2 returned IRIS_ERR_INVALID (-1): ");
}

/* Under a launcher the thread may have failed at something before. */
static TEST(a_status_of_its_own_comes_with_no_old_message)
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
}

/* Finalizes, which is not for it to do, and returns *arg. */
static int end_it_myself(iris_t *iris, void *arg)
{
    CHECK_OK(iris_finalize(iris));
    return *(int *)arg;
}

static TEST(a_function_that_finalizes_has_failed_once)
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
    return harness_failed(__FILE__, __LINE__, "the function ran", 1, 0);
}

static TEST(ranks_that_cannot_start_run_nothing)
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

static TEST(a_killed_child_is_named_with_its_signal)
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

static TEST(a_child_that_exits_is_lost)
{
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(spawn_as("processes", 2, leave, &rank),
                         IRIS_ERR_PEER_LOST);
        assert_true(harness_message_has(rank == 0 ? "rank 0" : "rank 1"));
    }
}

TEST_GROUP(unit, sample);
