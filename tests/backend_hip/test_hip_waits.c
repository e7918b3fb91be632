/* SPDX-License-Identifier: MIT
 *
 * Waits that streams do without a kernel, as on CUDA: what ends them is taken
 * back, and they end with those of other streams.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/device.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#define HANG_MS 10000

struct word_args {
    const int64_t *context;
    uint64_t *word;
    uint64_t value;
};

/* As a peer that is late. */
IRIS_KERNEL(add_late, struct word_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    iris_signal_add(dev, args->word, args->value, dev.rank);
}

IRIS_KERNEL(set_late, struct word_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    iris_signal_set(dev, args->word, args->value, dev.rank);
}

static iris_status_t launch(iris_t *iris, const struct iris_kernel *kernel,
                            uint64_t *word, uint64_t value,
                            iris_stream_t *stream)
{
    struct word_args args = {iris_device_context(iris), word, value};

    return iris_launch(iris, kernel, 1, 1, &args, sizeof args, stream);
}

static int told_body(iris_t *iris, void *arg)
{
    iris_stream_t *stream, *other;
    uint64_t *word, seen;
    char text[80];

    (void)arg;
    CHECK_EQUAL(hip_make_word(iris, &word, &stream), 0);
    CHECK_OK(iris_stream_create(iris, &other));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_GE, 2, stream));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 7, stream));
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    snprintf(text, sizeof text, "heap offset %zu to be == 7 and last saw 3",
             (size_t)((uintptr_t)word - (uintptr_t)iris_heap_bases(iris)[0]));
    CHECK_MESSAGE(text);
    CHECK_OK(harness_read(iris, &seen, word, sizeof seen));
    CHECK_EQUAL(seen, 3);
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 7, stream));
    CHECK_OK(iris_signal_on_stream(iris, word, 7, iris_rank(iris), other));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    return 0;
}

static void a_stream_that_waits_by_itself_says_for_what(void **state)
{
    (void)state;
    harness_run(1, told_body, NULL);
}

struct late {
    const struct iris_kernel *kernel;
    uint64_t value; /* what the late kernel adds or sets */
    uint64_t end;   /* what the word then is */
};

static int late_body(iris_t *iris, void *arg)
{
    const struct late *late = arg;
    iris_stream_t *stream;
    uint64_t *word, seen;

    CHECK_EQUAL(hip_make_word(iris, &word, &stream), 0);
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_GE, 5, stream));
    CHECK_OK(launch(iris, late->kernel, word, late->value, stream));
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    CHECK_OK(harness_read(iris, &seen, word, sizeof seen));
    CHECK_EQUAL(seen, late->end);
    return 0;
}

/* Between the end of the wait and that of the synchronise. */
static void a_signal_that_comes_late_is_kept(void **state)
{
    struct late added = {add_late, 2, 5}, set = {set_late, 5, 5};

    (void)state;
    harness_run(1, late_body, &added);
    harness_run(1, late_body, &set);
}

static atomic_bool passed;

static void say_passed(hipStream_t stream, hipError_t error, void *arg)
{
    (void)stream, (void)error, (void)arg;
    atomic_store(&passed, true);
}

/* Holds its stream up until the other one has passed its wait. */
static void await_passed(hipStream_t stream, hipError_t error, void *arg)
{
    (void)stream, (void)error, (void)arg;
    for (int ms = 0; ms < HANG_MS && !atomic_load(&passed); ms++) {
        usleep(1000);
    }
}

static int behind_body(iris_t *iris, void *arg)
{
    iris_stream_t *first, *second;
    uint64_t *word, seen;

    (void)arg;
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
    CHECK_STATUS(iris_stream_synchronize(iris, first), IRIS_ERR_TIMEOUT);
    CHECK_OK(harness_read(iris, &seen, word, sizeof seen));
    CHECK_EQUAL(seen, 3);
    /* Nothing was given up: kernels wait again. */
    CHECK_OK(hip_wait_for(iris, word, 5, first));
    CHECK_OK(iris_signal_on_stream(iris, word, 5, iris_rank(iris), second));
    CHECK_OK(iris_stream_synchronize(iris, first));
    return 0;
}

static void a_wait_of_another_stream_ends_too(void **state)
{
    (void)state;
    atomic_store(&passed, false);
    harness_run(1, behind_body, NULL);
}

/* Each saves what was there before it was ended; one of them sees what ended
 * the other. */
static int both_body(iris_t *iris, void *arg)
{
    iris_stream_t *ge, *eq;
    uint64_t *word, seen;

    (void)arg;
    CHECK_EQUAL(hip_make_word(iris, &word, &eq), 0);
    CHECK_OK(iris_stream_create(iris, &ge)); /* ended before the other */
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_GE, 5, ge));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 7, eq));
    CHECK_STATUS(iris_stream_synchronize(iris, ge), IRIS_ERR_TIMEOUT);
    CHECK_STATUS(iris_stream_synchronize(iris, eq), IRIS_ERR_TIMEOUT);
    CHECK_OK(harness_read(iris, &seen, word, sizeof seen));
    CHECK_EQUAL(seen, 3);
    return 0;
}

static void two_waits_for_one_word_leave_it_as_it_was(void **state)
{
    (void)state;
    harness_run(1, both_body, NULL);
}

/* One that is over, which another stream knows. */
static int over_body(iris_t *iris, void *arg)
{
    iris_stream_t *stream, *other;
    uint64_t *word, *done, value = 1000;

    (void)arg;
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
    CHECK_OK(harness_read(iris, &value, word, sizeof value));
    CHECK_EQUAL(value, 1000);
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    return 0;
}

static void a_wait_that_is_over_is_not_ended(void **state)
{
    (void)state;
    harness_run(1, over_body, NULL);
}

static int setup(void **state)
{
    int ret = hip_setup(state);

    setenv("IRIS_TIMEOUT_MS", "500", 1);
    setenv("FAKEHIP_STREAM_WAITS", "1", 1);
    return ret;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_that_waits_by_itself_says_for_what),
        cmocka_unit_test(a_signal_that_comes_late_is_kept),
        cmocka_unit_test(a_wait_of_another_stream_ends_too),
        cmocka_unit_test(two_waits_for_one_word_leave_it_as_it_was),
        cmocka_unit_test(a_wait_that_is_over_is_not_ended),
    };

    return cmocka_run_group_tests(tests, setup, harness_teardown);
}
