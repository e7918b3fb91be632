/* SPDX-License-Identifier: MIT
 *
 * What fails a context stays its error: the same from every call, until it is
 * cleared; and what several threads, or the program by itself, give a stream
 * meanwhile.
 */
#include "config.h"

#include "support/hip_job.h"

#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

static void report_by_lanes(bool by_lanes)
{
    setenv("IRIS_DEVICE_TIMEOUT_MS", by_lanes ? "100" : "0", 1);
    setenv("IRIS_TIMEOUT_MS", by_lanes ? "60000" : "500", 1);
}

/* Whether the call gives the same error as before. */
#define CHECK_SAME(call)                                  \
    do {                                                  \
        CHECK_STATUS(call, IRIS_ERR_TIMEOUT);             \
        CHECK_EQUAL(strcmp(iris_last_error(), first), 0); \
    } while (0)

/* Every call that needs the device, on the stream that failed and another. */
static int same_body(iris_t *iris, void *arg)
{
    const char *text = arg;
    iris_stream_t *failed, *other;
    char first[IRIS_MESSAGE_BYTES];
    uint64_t *word, host = 0;

    CHECK_EQUAL(hip_make_word(iris, &word, &failed), 0);
    CHECK_OK(iris_stream_create(iris, &other));
    for (uint64_t round = 5; round < 8; round++) {
        CHECK_OK(hip_wait_for(iris, word, round, failed));
        CHECK_STATUS(iris_stream_synchronize(iris, failed), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE(text);
        snprintf(first, sizeof first, "%s", iris_last_error());
        for (int i = 0; i < 2; i++) {
            iris_stream_t *stream = i == 0 ? failed : other;

            CHECK_SAME(iris_stream_synchronize(iris, stream));
            CHECK_SAME(hip_wait_for(iris, word, 3, stream));
            CHECK_SAME(iris_memset(iris, word, 0, sizeof *word, stream));
            CHECK_SAME(iris_memcpy(iris, &host, word, sizeof host, stream));
            CHECK_SAME(iris_signal_on_stream(iris, word, 1, 0, stream));
            CHECK_SAME(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 3, stream));
            CHECK_SAME(iris_device_barrier(iris, stream, NULL));
        }
        CHECK_OK(iris_clear_error(iris));
        CHECK_OK(iris_clear_error(iris)); /* there is none */
        /* Kernels wait again, until they get what they wait for. */
        CHECK_OK(hip_wait_for(iris, word, round, failed));
        CHECK_OK(iris_signal_on_stream(iris, word, round, 0, other));
        CHECK_OK(iris_stream_synchronize(iris, failed));
    }
    return 0;
}

static TEST(an_error_is_the_same_from_every_call_until_it_is_cleared)
{
    report_by_lanes(true);
    harness_run(1, same_body, (void *)(uintptr_t) "(IRIS_DEVICE_TIMEOUT_MS)");
    report_by_lanes(false);
    harness_run(1, same_body, (void *)(uintptr_t) "(IRIS_TIMEOUT_MS)");
}

/* Work of which this stream knows nothing; another one that has the same native
 * one stands for the program. */
static int unknown_body(iris_t *iris, void *arg)
{
    iris_stream_t *program, *stream;
    uint64_t *word;

    CHECK_EQUAL(hip_make_word(iris, &word, &program), 0);
    CHECK_OK(
        iris_stream_wrap(iris, iris_stream_native(iris, program), &stream));
    CHECK_OK(hip_wait_for(iris, word, 5, program));
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_stream_synchronize(iris, program));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    iris_stream_destroy(iris, stream);
    return 0;
}

static TEST(an_error_of_the_program_s_own_work_is_returned)
{
    report_by_lanes(true);
    harness_run(1, unknown_body, NULL);
    report_by_lanes(false);
    harness_run(1, unknown_body, NULL);
}

/* ---- Several threads ---- */

struct synchronised {
    iris_t *iris;
    iris_stream_t *stream;
    atomic_bool begun;
    iris_status_t status;
};

static void *synchronise(void *arg)
{
    struct synchronised *it = arg;

    atomic_store(&it->begun, true);
    it->status = iris_stream_synchronize(it->iris, it->stream);
    return NULL;
}

static void begin_to_synchronise(struct synchronised *it, pthread_t *thread)
{
    if (pthread_create(thread, NULL, synchronise, it) != 0) {
        abort();
    }
    while (!atomic_load(&it->begun)) {
        usleep(1000);
    }
}

/* A wait that comes while another thread waits for the stream, whose deadline
 * ends both. */
static RANK_TEST(a_wait_that_comes_meanwhile_ends_too, 1)
{
    struct synchronised first = {.iris = iris};
    uint64_t *word, *second;
    iris_status_t status;
    pthread_t thread;

    CHECK_EQUAL(hip_make_word(iris, &word, &first.stream), 0);
    CHECK_OK(iris_calloc(iris, 1, sizeof *second, (void **)&second));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 7, first.stream));
    begin_to_synchronise(&first, &thread);
    usleep(100000);
    status = iris_wait_on_stream(iris, second, IRIS_CMP_EQ, 9, first.stream);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_OK(status);
    CHECK_EQUAL(first.status, IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_clear_error(iris)); /* the second has ended, too */
    CHECK_OK(iris_stream_synchronize(iris, first.stream));
    return 0;
}

static atomic_bool fed_enough;
static atomic_int in_work;

static void take_a_while(hipStream_t stream, hipError_t error, void *arg)
{
    usleep(1000);
    atomic_fetch_sub(&in_work, 1);
}

/* Sees to it that the stream is never idle. */
static void *feed(void *native)
{
    while (!atomic_load(&fed_enough)) {
        if (atomic_load(&in_work) < 10) {
            atomic_fetch_add(&in_work, 1);
            (void)hipStreamAddCallback(native, take_a_while, NULL, 0);
        } else {
            usleep(200);
        }
    }
    return NULL;
}

static RANK_TEST(waiting_ends_while_the_program_gives_work, 1)
{
    iris_stream_t *stream;
    iris_status_t status;
    uint64_t *word;
    pthread_t thread;

    CHECK_EQUAL(hip_make_word(iris, &word, &stream), 0);
    CHECK_EQUAL(
        pthread_create(&thread, NULL, feed, iris_stream_native(iris, stream)),
        0);
    while (atomic_load(&in_work) == 0) {
        usleep(1000);
    }
    status = iris_stream_synchronize(iris, stream);
    atomic_store(&fed_enough, true);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_OK(status);
    return 0;
}

struct filler {
    iris_t *iris;
    iris_stream_t *stream;
    uint64_t *word;
    atomic_bool over;
};

static void *fill(void *arg)
{
    struct filler *filler = arg;

    while (!atomic_load(&filler->over)) {
        (void)iris_memset(filler->iris, filler->word, 0, sizeof(uint64_t),
                          filler->stream);
    }
    return NULL;
}

/* The thread that fills the stream may be the one whose wait fails. */
static RANK_TEST(an_error_is_cleared_while_a_stream_always_gets_more, 1)
{
    struct filler filler = {.iris = iris};
    iris_status_t first, cleared, last;
    pthread_t thread;

    CHECK_EQUAL(hip_make_word(iris, &filler.word, &filler.stream), 0);
    CHECK_OK(hip_wait_for(iris, filler.word, 5, filler.stream));
    CHECK_EQUAL(pthread_create(&thread, NULL, fill, &filler), 0);
    first = iris_stream_synchronize(iris, filler.stream);
    cleared = iris_clear_error(iris);
    last = iris_stream_synchronize(iris, filler.stream);
    atomic_store(&filler.over, true);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(first, IRIS_ERR_TIMEOUT);
    CHECK_OK(cleared);
    CHECK_OK(last);
    return 0;
}

/* ---- What cannot be cleared ---- */

static void hold(hipStream_t stream, hipError_t error, void *over)
{
    while (!atomic_load((atomic_bool *)over)) {
        usleep(1000);
    }
}

/* Of a stream that is there, or of one that is destroyed meanwhile. */
static int held_body(iris_t *iris, void *arg)
{
    static atomic_bool over;
    bool destroy = *(bool *)arg;
    iris_stream_t *stream;
    iris_status_t status, cleared, again;
    uint64_t *word;

    atomic_store(&over, false);
    CHECK_EQUAL(hip_make_word(iris, &word, &stream), 0);
    CHECK_EQUAL(
        hipStreamAddCallback(iris_stream_native(iris, stream), hold, &over, 0),
        hipSuccess);
    status = iris_stream_synchronize(iris, stream);
    if (destroy) {
        iris_stream_destroy(iris, stream);
    }
    cleared = iris_clear_error(iris);
    atomic_store(&over, true);
    again = iris_clear_error(iris);
    CHECK_EQUAL(status, IRIS_ERR_TIMEOUT);
    CHECK_EQUAL(cleared, IRIS_ERR_STATE);
    CHECK_OK(again);
    CHECK_OK(iris_memset(iris, word, 0, sizeof *word, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static TEST(an_error_stays_while_something_cannot_be_ended)
{
    bool destroy = false;
    struct hip_held before;

    hip_note(&before);
    harness_run(1, held_body, &destroy);
    assert_int_equal(hip_found(&before), 0);
}

/* The last one: from then on nothing is given back. */
static TEST(what_was_destroyed_and_cannot_be_ended_counts)
{
    bool destroy = true;

    harness_run(1, held_body, &destroy);
}

static TEST(an_error_of_a_lost_gpu_stays)
{
    struct hip_held before;
    char first[IRIS_MESSAGE_BYTES];
    iris_t *iris;

    hip_note(&before);
    assert_int_equal(iris_init(NULL, &iris), IRIS_OK);
    (void)fakehip_fail("work:1:lost");
    (void)iris_device_barrier(iris, NULL, NULL);
    assert_int_equal(iris_stream_synchronize(iris, NULL), IRIS_ERR_DEVICE);
    snprintf(first, sizeof first, "%s", iris_last_error());
    assert_int_equal(iris_clear_error(iris), IRIS_ERR_STATE);
    assert_int_equal(iris_device_barrier(iris, NULL, NULL), IRIS_ERR_DEVICE);
    assert_string_equal(iris_last_error(), first);
    (void)iris_finalize(iris);
    (void)fakehip_fail(NULL);
    assert_int_equal(hip_found(&before), 0);
}

static int setup(void **state)
{
    int ret = hip_setup(state);

    report_by_lanes(false);
    setenv("FAKEHIP_STREAM_WAITS", "1", 1);
    return ret;
}

TEST_GROUP_WITH(setup, harness_teardown, hip, waits);
