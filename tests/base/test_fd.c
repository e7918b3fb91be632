/* SPDX-License-Identifier: MIT
 *
 * A program that has closed its standard streams: no descriptor of the library
 * takes their numbers, so that nothing printed ends up in one.
 */
#include "config.h"

#include "support/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <iris/device/layout.h>

#include "base/base.h"

/* Runs fn(way) in a child without standard streams; what it returns. */
static int without_streams(int (*fn)(const char *way), const char *way)
{
    pid_t pid;
    int how = -1;

    fflush(NULL);
    pid = fork();
    if (pid == 0) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++) {
            close(fd);
        }
        _exit(fn(way));
    }
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_true(WIFEXITED(how));
    return WEXITSTATUS(how);
}

static int streams_are_closed(void)
{
    for (int fd = 0; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0) {
            return 0;
        }
    }
    return 1;
}

/* Nothing can be printed here: numbers say what is wrong. */
static int log_and_check(iris_t *iris, void *arg)
{
    const int64_t *context = iris_device_context(iris);
    void *ptr;

    CHECK_OK(iris_malloc(iris, 1 << 20, &ptr));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (!streams_are_closed()) {
        return 71;
    }
    iris_error(iris, "a line that is longer than the device context has bytes "
                     "before its heap bases");
    if (context[IRIS_CONTEXT_RANK] != iris_rank(iris) ||
        context[IRIS_CONTEXT_NUM_RANKS] != iris_num_ranks(iris)) {
        return 72;
    }
    return iris_barrier(iris, NULL, NULL);
}

static int run_job(const char *way)
{
    struct iris_config config;

    iris_config_init(&config);
    config.spawn = way;
    return iris_spawn(&config, 3, log_and_check, NULL) == IRIS_OK ? 0 : 1;
}

static TEST(log_lines_do_not_end_up_on_a_heap)
{
    assert_int_equal(without_streams(run_job, "threads"), 0);
    assert_int_equal(without_streams(run_job, "processes"), 0);
}

static int move_one(const char *unused)
{
    struct rlimit limit = {3, 3};
    int fd = iris_i_fd_above_stdio(open("/dev/null", O_RDONLY));

    if (fd <= STDERR_FILENO || !streams_are_closed() ||
        fcntl(fd, F_GETFD) != FD_CLOEXEC) {
        return 1;
    }
    close(fd);
    setrlimit(RLIMIT_NOFILE, &limit);
    fd = iris_i_fd_above_stdio(open("/dev/null", O_RDONLY));
    return fd != -1 || !streams_are_closed() ? 2 : 0;
}

static TEST(a_moved_descriptor_leaves_nothing_behind)
{
    assert_int_equal(without_streams(move_one, NULL), 0);
    errno = EIO;
    assert_int_equal(iris_i_fd_above_stdio(-1), -1);
    assert_int_equal(errno, EIO);
    assert_int_equal(iris_i_fd_above_stdio(77), 77);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
