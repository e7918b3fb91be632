/* SPDX-License-Identifier: MIT
 *
 * What was seen with ROCm 7 on real nodes, each played by the fake runtime: a
 * job works all the same, or says what to do.
 */
#include "config.h"

#include "support/hip_job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "context/context.h"

#define PIECE ((size_t)2 << 20)
#define GROWTH ((size_t)40 << 20) /* several pieces of a heap */
#define HANG_S 60

static void with_vmem(void)
{
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    setenv("IRIS_HEAP_SIZE", "512M", 1);
}

static void without_vmem(void)
{
    unsetenv("FAKEHIP_QUIRKS");
    unsetenv("IRIS_ALLOCATOR");
    unsetenv("IRIS_HEAP_SIZE");
}

/* ---- Descriptors ---- */

/* Memory of the program's own and a heap that grows reach the peers, and again
 * when they are shared once more. */
static int share_body(iris_t *iris, void *arg)
{
    int next = (iris_rank(iris) + 1) % iris_num_ranks(iris), shared;
    char *own, *symmetric, *grown;

    CHECK_EQUAL(fakehip_map(iris_device_id(iris), PIECE, 1, (void **)&own), 0);
    for (int i = 1; i < 4; i++) {
        CHECK_OK(
            iris_as_symmetric(iris, own, 100, (void **)&symmetric, &shared));
        CHECK_EQUAL(shared, 1);
        CHECK_OK(iris_calloc(iris, 1, GROWTH, (void **)&grown));
        CHECK_OK(iris_put_on_stream(iris, symmetric, grown, 100, next, NULL));
        CHECK_OK(iris_memset(iris, grown, i, 100, NULL));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_put_on_stream(iris, symmetric, grown, 100, next, NULL));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK(harness_holds(iris, symmetric, 100, i));
        CHECK_OK(iris_free(iris, symmetric));
    }
    fakehip_unmap(own, PIECE);
    return 0;
}

static TEST(a_descriptor_that_the_runtime_keeps_is_left_open)
{
    struct hip_held before;

    with_vmem();
    hip_note(&before);
    setenv("IRIS_SPAWN", "processes", 1);
    harness_run(3, share_body, NULL);
    setenv("FAKEHIP_QUIRKS", "one-descriptor", 1);
    harness_run(3, share_body, NULL);
    setenv("IRIS_SPAWN", "threads", 1);
    harness_run(3, share_body, NULL);
    assert_int_equal(hip_found(&before), 0);
    without_vmem();
}

static int limit_body(iris_t *iris, void *arg)
{
    struct rlimit before, low;
    void *ptr;
    int fd;

    CHECK_OK(iris_calloc(iris, 1, GROWTH, &ptr));
    getrlimit(RLIMIT_NOFILE, &before);
    low = before;
    fd = dup(0);
    low.rlim_cur = (rlim_t)fd;
    close(fd);
    setrlimit(RLIMIT_NOFILE, &low);
    CHECK_STATUS(iris_malloc(iris, GROWTH, &ptr), IRIS_ERR_LIMIT);
    setrlimit(RLIMIT_NOFILE, &before);
    CHECK_MESSAGE("rank 0, GPU 0: no file descriptor left for ");
    CHECK_MESSAGE("one for each of up to 128 pieces of a rank's heap. Raise "
                  "RLIMIT_NOFILE (ulimit -n), now ");
    CHECK_MESSAGE(", to 384, or use IRIS_ALLOCATOR=pool");
    CHECK_OK(iris_malloc(iris, GROWTH, &ptr));
    return 0;
}

static TEST(descriptors_that_run_out_are_not_called_memory)
{
    with_vmem();
    harness_run(1, limit_body, NULL);
    without_vmem();
}

/* ---- Loading ---- */

static int load_body(iris_t *iris, void *arg)
{
    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    }
    return iris_stream_synchronize(iris, NULL);
}

static TEST(rank_threads_load_code_one_by_one)
{
    setenv("FAKEHIP_QUIRKS", "load-deadlock", 1);
    alarm(HANG_S);
    harness_run(8, load_body, NULL);
    alarm(0);
}

/* ---- MI200 ---- */

static int clock_body(iris_t *iris, void *arg)
{
    CHECK_EQUAL(iris->device.clock_khz, *(const int64_t *)arg);
    return 0;
}

static TEST(a_clock_that_the_runtime_does_not_know_is_the_generation_s)
{
    int64_t khz = 100000;

    harness_run(2, clock_body, &khz);
    khz = 25000;
    setenv("FAKEHIP_MI200", "1", 1);
    harness_run(2, clock_body, &khz);
}

static int nothing_body(iris_t *iris, void *arg)
{
    return 0;
}

/* Kernels of several ranks would hang there. */
static TEST(mi200_s_share_no_ordinary_memory)
{
    iris_status_t status;

    with_vmem();
    setenv("FAKEHIP_MI200", "1", 1);
    harness_run(2, nothing_body, NULL);
    setenv("FAKEHIP_QUIRKS", "no-uncached", 1);
    harness_run(1, nothing_body, NULL);
    status = iris_spawn(NULL, 2, nothing_body, NULL);
    assert_int_equal(status, IRIS_ERR_DEVICE);
    assert_true(harness_message_has("an MI200 hang that wait for peers; use "
                                    "IRIS_ALLOCATOR=pool"));
    setenv("IRIS_HIP_MEMORY", "fine", 1);
    harness_run(2, nothing_body, NULL);
    unsetenv("IRIS_HIP_MEMORY");
    unsetenv("FAKEHIP_MI200");
    without_vmem();
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
