/* SPDX-License-Identifier: MIT
 *
 * Limits of the process: threads, file sizes, and signals that interrupt.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"

#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

static int nothing(iris_t *iris, void *arg)
{
    return iris_barrier(iris, NULL, NULL);
}

/* Nobody may have more threads: root would not be held back. */
static void limit_threads(void)
{
    const struct passwd *nobody = getpwnam("nobody");
    struct rlimit limit = {1, 1};

    setrlimit(RLIMIT_NPROC, &limit);
    if (getuid() == 0 && nobody != NULL &&
        setresuid(nobody->pw_uid, nobody->pw_uid, nobody->pw_uid) != 0) {
        print_error("cannot become another user\n");
    }
}

static int init_without_threads(void *arg)
{
    struct iris_config config;
    struct leaks before;
    iris_t *iris = NULL;

    limit_threads();
    iris_config_init(&config);
    config.heap_bases_prefix = "/tmp/iris-none";
    leaks_note(&before);
    CHECK_STATUS(iris_init(&config, &iris), IRIS_ERR_LIMIT);
    CHECK_MESSAGE("ulimit -u");
    CHECK_MESSAGE("rank 0 cannot start a thread");
    CHECK_STATUS(iris_spawn(&config, 3, nothing, NULL), IRIS_ERR_LIMIT);
    CHECK_MESSAGE("thread of rank 0");
    config.spawn = "processes";
    CHECK_STATUS(iris_spawn(&config, 3, nothing, NULL), IRIS_ERR_LIMIT);
    CHECK_MESSAGE("process of rank 0");
    CHECK_EQUAL(leaks_found(&before), 0);
    return 0;
}

static TEST(without_threads_init_says_what_to_raise)
{
    harness_in_child(init_without_threads, NULL);
}

static int streams_without_threads(void *arg)
{
    iris_stream_t *stream = NULL;
    iris_t *iris = NULL;
    void *ptr;

    CHECK_OK(iris_init(NULL, &iris));
    limit_threads();
    CHECK_STATUS(iris_stream_create(iris, &stream), IRIS_ERR_LIMIT);
    CHECK_MESSAGE("ulimit -u");
    CHECK_MESSAGE("rank 0");
    CHECK(stream == NULL);
    CHECK_OK(iris_calloc(iris, 1, 100, &ptr)); /* the rest works on */
    CHECK_OK(iris_finalize(iris));
    return 0;
}

static TEST(a_stream_without_a_thread_is_refused)
{
    harness_in_child(streams_without_threads, NULL);
}

static int init_with_small_files(void *arg)
{
    struct rlimit limit = {2 << 20, RLIM_INFINITY};
    struct iris_config config;
    struct leaks before;
    iris_t *iris = NULL;

    leaks_note(&before);
    setrlimit(RLIMIT_FSIZE, &limit);
    CHECK_STATUS(iris_init(NULL, &iris), IRIS_ERR_LIMIT);
    CHECK_MESSAGE("RLIMIT_FSIZE (ulimit -f), 2097152 bytes");
    CHECK_MESSAGE("[0/1]");
    /* The heap fits, what the ranks share does not. */
    iris_config_init(&config);
    config.heap_bytes = 1 << 20;
    CHECK_STATUS(iris_spawn(&config, 3, nothing, NULL), IRIS_ERR_LIMIT);
    CHECK_MESSAGE("RLIMIT_FSIZE");
    CHECK_OK(iris_init(&config, &iris));
    CHECK_OK(iris_finalize(iris));
    CHECK_EQUAL(leaks_found(&before), 0);
    return 0;
}

static TEST(a_limit_on_files_is_an_error_not_a_signal)
{
    harness_in_child(init_with_small_files, NULL);
}

static void ignore(int number)
{
}

static int allocate_under_fire(void *arg)
{
    struct itimerval often = {{0, 100}, {0, 100}};
    struct sigaction action = {.sa_handler = ignore}; /* no SA_RESTART */
    struct iris_config config;
    iris_t *iris = NULL;
    void *ptr;

    iris_config_init(&config);
    config.heap_bytes = 48 << 20;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &often, NULL);
    CHECK_OK(iris_spawn(&config, 3, nothing, NULL));
    config.spawn = "processes";
    CHECK_OK(iris_spawn(&config, 3, nothing, NULL));
    CHECK_OK(iris_init(&config, &iris));
    CHECK_OK(iris_malloc(iris, 32 << 20, &ptr));
    memset(ptr, 1, 32 << 20);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_finalize(iris));
    return 0;
}

static TEST(a_periodic_signal_disturbs_nothing)
{
    harness_in_child(allocate_under_fire, NULL);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit, killed);
