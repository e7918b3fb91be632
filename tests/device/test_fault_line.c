/* SPDX-License-Identifier: MIT
 *
 * A kernel on the CPU that touches memory that is not there: one line on stderr
 * names it, then the program's handler or the system's default gets the signal.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum fault { NOWHERE, HEAP_OF_PEER, DEEP, NO_CONTEXT };

struct fault_args {
    const int64_t *context;
    int32_t *array; /* symmetric */
    uintptr_t place;
    enum fault what;
};

IRIS_DEVICE_LARGE uint64_t go_deeper(volatile char *above, uint64_t depth)
{
    volatile char here[4096];

    here[0] = (char)(above[0] + 1);
    return depth == 0 ? 0 : go_deeper(here, depth - 1) + (uint64_t)here[0];
}

IRIS_KERNEL(make_fault, struct fault_args)
{
    volatile char start = 0;

    if (wg.id != 1) {
        return;
    }
    if (args->what == NO_CONTEXT) {
        (void)iris_dev_init((const int64_t *)args->place);
    } else if (args->what == DEEP) {
        args->array[0] = (int32_t)go_deeper(&start, UINT64_MAX);
    } else {
        *(volatile int32_t *)args->place = 1;
    }
}

#if IRIS_ON_CPU /* all else is about the CPU */

static int fault_body(iris_t *iris, void *arg)
{
    struct fault_args args = {.context = iris_device_context(iris),
                              .what = *(enum fault *)arg};
    void *array;

    CHECK_OK(iris_malloc(iris, 256, &array));
    args.array = array;
    if (iris_rank(iris) != 0) {
        return iris_barrier(iris, NULL, NULL); /* until rank 0 is gone */
    }
    if (args.what == HEAP_OF_PEER) {
        args.place = (uintptr_t)iris_heap_bases(iris)[1] + ((size_t)1 << 21);
        CHECK_EQUAL(mprotect((void *)args.place, 4096, PROT_NONE), 0);
    } else if (args.what == NOWHERE) {
        args.place = 16;
    }
    CHECK_OK(iris_launch(iris, make_fault, 2, 1, &args, sizeof args, NULL));
    return iris_stream_synchronize(iris, NULL);
}

static void own_handler(int number)
{
    const char said[] = "the program's handler\n";

    if (write(STDERR_FILENO, said, sizeof said - 1) < 0 || number != SIGSEGV) {
        _exit(1);
    }
    _exit(7);
}

/* Runs the fault in a child, whose stderr goes to `text`; returns its status.
 */
static int run_child(enum fault what, int handled, char *text, size_t bytes)
{
    struct iris_config config;
    size_t used = 0;
    ssize_t got;
    int ends[2], status;
    pid_t child;

    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        signal(SIGSEGV, handled ? own_handler : SIG_DFL);
        iris_config_init(&config);
        config.spawn = "threads";
        iris_spawn(&config, 2, fault_body, &what);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + used, bytes - 1 - used)) > 0) {
        used += (size_t)got;
    }
    text[used] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void assert_has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        print_message("no \"%s\" in:\n%s\n", part, text);
        fail();
    }
}

/* The children make ranks of their own, on the CPU, and a sanitizer's handler
 * would report a fault that is meant. */
static void leave_out(void)
{
    if (harness_launched() != 0 || harness_has_gpu()) {
        skip();
    }
}

static TEST(a_fault_writes_a_line_before_the_default_action)
{
    char text[4096];
    int status;

    leave_out();
    status = run_child(NOWHERE, 0, text, sizeof text);
    assert_has(text,
               "[Iris] rank 0: kernel make_fault, workgroup 1: SIGSEGV at "
               "0x10; run again with IRIS_CHECK=bounds\n");
    assert_true(!IRIS_TSAN && WIFSIGNALED(status) ? WTERMSIG(status) == SIGSEGV
                                                  : status != 0);
}

static TEST(the_programs_own_handler_comes_after_the_line)
{
    char text[4096], *line;
    int status;

    leave_out();
    status = run_child(NOWHERE, 1, text, sizeof text);
    line = strstr(text, "[Iris] rank 0: kernel make_fault");
    assert_non_null(line);
    assert_has(line, "the program's handler\n");
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
}

static TEST(the_line_names_the_allocation_that_is_nearest)
{
    char text[4096];

    leave_out();
    assert_int_not_equal(run_child(HEAP_OF_PEER, 1, text, sizeof text), 0);
    assert_has(text, "; that is heap offset 2097152 on rank 1, ");
    assert_has(text, " bytes past the end of the allocation of 256 bytes at "
                     "heap offset ");
}

static TEST(a_kernel_that_uses_up_its_stack_gets_its_line)
{
    char text[4096];

    leave_out();
    assert_int_not_equal(run_child(DEEP, 0, text, sizeof text), 0);
    assert_has(text,
               "[Iris] rank 0: kernel make_fault, workgroup 1: SIGSEGV at ");
}

static RANK_TEST(a_context_that_is_NULL_ends_the_kernel, 2)
{
    struct fault_args args = {.what = NO_CONTEXT};

    CHECK_OK(iris_launch(iris, make_fault, 2, 1, &args, sizeof args, NULL));
    CHECK_BAD(
        iris, iris_stream_synchronize(iris, NULL), IRIS_ERR_INVALID,
        "kernel make_fault, workgroup 1: iris_dev_init: the context is NULL",
        "pass iris_device_context()");
    return iris_clear_error(iris);
}

static int ordinary_body(iris_t *iris, void *arg)
{
    return iris_barrier(iris, NULL, NULL);
}

static TEST(when_streams_are_gone_so_is_the_handler)
{
    struct sigaction before, after;

    assert_int_equal(sigaction(SIGSEGV, NULL, &before), 0);
    harness_run(2, ordinary_body, NULL);
    assert_int_equal(sigaction(SIGSEGV, NULL, &after), 0);
    assert_true(before.sa_handler == after.sa_handler);
    assert_int_equal(before.sa_flags, after.sa_flags);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, rank, one_node, standard);
#endif /* IRIS_ON_CPU */
