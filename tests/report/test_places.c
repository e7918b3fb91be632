/* SPDX-License-Identifier: MIT
 *
 * A report has the source line of each wait: of a kernel's, and of the host's
 * for other ranks and for a stream. With ranks as threads and as processes.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define DEADLINE_MS 1000

/* The lines, as the ranks meet them; in memory that all processes share. */
struct lines {
    int kernel;
    int stream;
    int barrier;
    int allocation;
};

struct wait_args {
    const int64_t *context;
    uint64_t *word;
    struct lines *lines;
};

IRIS_KERNEL(wait_in_vain, struct wait_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        args->lines->kernel = __LINE__ + 1;
        (void)iris_wait_until_u64(dev, args->word, IRIS_CMP_EQ, 1);
    }
}

static int wait_for_stream(iris_t *iris, struct lines *lines, uint64_t *word)
{
    struct wait_args args = {iris_device_context(iris), word, lines};
    int status;

    CHECK_OK(iris_launch(iris, wait_in_vain, 1, 1, &args, sizeof args, NULL));
    lines->stream = __LINE__ + 1;
    status = iris_stream_synchronize(iris, NULL);
    return status;
}

static int body(iris_t *iris, void *arg)
{
    struct lines *lines = arg;
    uint64_t *word;
    void *more;
    int status;

    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (iris_rank(iris) == 0) {
        return wait_for_stream(iris, lines, word);
    }
    if (iris_rank(iris) == 1) {
        lines->barrier = __LINE__ + 1;
        status = iris_barrier(iris, NULL, NULL);
        return status;
    }
    lines->allocation = __LINE__ + 1;
    status = iris_malloc(iris, 64, &more);
    return status;
}

static void check_line(const char *text, int line)
{
    char place[64];

    snprintf(place, sizeof place, "(test_places.c:%d)", line);
    if (line == 0 || strstr(text, place) == NULL) {
        fail_msg("no %s in\n%s", place, text);
    }
}

static void run(const char *spawn)
{
    struct harness_capture capture;
    struct iris_config config;
    struct lines *lines = mmap(NULL, sizeof *lines, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    iris_status_t status;

    assert_true(lines != MAP_FAILED);
    iris_config_init(&config);
    config.spawn = spawn;
    config.timeout_ms = DEADLINE_MS;
    harness_capture(&capture);
    status = iris_spawn(&config, 3, body, lines);
    harness_captured(&capture);
    assert_true(status != IRIS_OK);
    check_line(capture.text, lines->kernel);
    check_line(capture.text, lines->stream);
    check_line(capture.text, lines->barrier);
    check_line(capture.text, lines->allocation);
    munmap(lines, sizeof *lines);
    free(capture.text);
}

static TEST(threads_have_the_line_of_each_wait)
{
    run("threads");
}

static TEST(processes_have_the_line_of_each_wait)
{
    run("processes");
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit, cpu);

#endif /* IRIS_ON_CPU */
