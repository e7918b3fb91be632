/* SPDX-License-Identifier: MIT
 *
 * Waits that streams do without a kernel, as on CUDA: an error ends them by
 * what they wait for, on all streams.
 */
#include "config.h"

#include "support/hip_job.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#define HANG_MS 10000

static RANK_TEST(a_stream_that_waits_by_itself_says_for_what, 1)
{
    iris_stream_t *stream, *other;
    uint64_t *word;
    char text[80];

    CHECK_EQUAL(hip_make_word(iris, &word, &stream), 0);
    CHECK_OK(iris_stream_create(iris, &other));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_GE, 2, stream));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 7, stream));
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    snprintf(text, sizeof text, "heap offset %zu to be == 7 and last saw 3",
             (size_t)((uintptr_t)word - (uintptr_t)iris_heap_bases(iris)[0]));
    CHECK_MESSAGE(text);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 9, stream));
    CHECK_OK(iris_signal_on_stream(iris, word, 9, iris_rank(iris), other));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    return 0;
}

static atomic_bool passed;

static void say_passed(hipStream_t stream, hipError_t error, void *arg)
{
    atomic_store(&passed, true);
}

/* Holds its stream up until the other one has passed its wait. */
static void await_passed(hipStream_t stream, hipError_t error, void *arg)
{
    for (int ms = 0; ms < HANG_MS && !atomic_load(&passed); ms++) {
        usleep(1000);
    }
}

static int behind_body(iris_t *iris, void *arg)
{
    iris_stream_t *first, *second;
    uint64_t *word;

    CHECK_EQUAL(hip_make_word(iris, &word, &first), 0);
    CHECK_OK(iris_stream_create(iris, &second));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_GE, 5, first));
    CHECK_EQUAL(hipStreamAddCallback(iris_stream_native(iris, first),
                                     say_passed, NULL, 0),
                hipSuccess);
    CHECK_EQUAL(hipStreamAddCallback(iris_stream_native(iris, second),
                                     await_passed, NULL, 0),
                hipSuccess);
    CHECK_STATUS(iris_stream_synchronize(iris, second), IRIS_ERR_TIMEOUT);
    CHECK(atomic_load(&passed));
    CHECK_OK(iris_clear_error(iris));
    /* Nothing was given up: kernels wait again. */
    CHECK_OK(hip_wait_for(iris, word, 9, first));
    CHECK_OK(iris_signal_on_stream(iris, word, 9, iris_rank(iris), second));
    CHECK_OK(iris_stream_synchronize(iris, first));
    return 0;
}

static TEST(a_wait_of_another_stream_ends_too)
{
    atomic_store(&passed, false);
    harness_run(1, behind_body, NULL);
}

/* One stream's would keep the other's from coming true, if each were ended
 * once. */
static RANK_TEST(waits_of_several_streams_for_one_word_all_end, 1)
{
    iris_stream_t *ge, *eq;
    uint64_t *word;

    CHECK_EQUAL(hip_make_word(iris, &word, &eq), 0);
    CHECK_OK(iris_stream_create(iris, &ge));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_GE, 5, ge));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 7, eq));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 1, eq));
    CHECK_STATUS(iris_stream_synchronize(iris, ge), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_stream_synchronize(iris, eq));
    return 0;
}

/* One that is over, which another stream knows. */
static RANK_TEST(a_wait_that_is_over_is_not_ended, 1)
{
    iris_stream_t *stream, *other;
    uint64_t *word, *done, value = 1000;

    CHECK_EQUAL(hip_make_word(iris, &word, &stream), 0);
    CHECK_OK(iris_stream_create(iris, &other));
    CHECK_OK(iris_calloc(iris, 1, sizeof *done, (void **)&done));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 3, stream));
    CHECK_OK(iris_signal_on_stream(iris, done, 1, 0, stream));
    CHECK_OK(iris_wait_on_stream(iris, done, IRIS_CMP_EQ, 1, other));
    CHECK_OK(iris_stream_synchronize(iris, other));
    CHECK_OK(harness_write(iris, word, &value, sizeof value));
    CHECK_OK(hip_wait_for(iris, word, 5, other));
    CHECK_STATUS(iris_stream_synchronize(iris, other), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(harness_read(iris, &value, word, sizeof value));
    CHECK_EQUAL(value, 1000);
    return 0;
}

static int setup(void **state)
{
    int ret = hip_setup(state);

    setenv("IRIS_TIMEOUT_MS", "500", 1);
    setenv("FAKEHIP_STREAM_WAITS", "1", 1);
    return ret;
}

TEST_GROUP_WITH(setup, harness_teardown, hip);
