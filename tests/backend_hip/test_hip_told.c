/* SPDX-License-Identifier: MIT
 *
 * What a synchronise tells of: errors of streams that several threads, or the
 * program by itself, give work meanwhile, each once.
 */
#include "config.h"

#include "support/hip_job.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

/* Work of which this stream knows nothing; another one that has the same native
 * one stands for the program. */
static int unknown_body(iris_t *iris, void *arg)
{
    iris_stream_t *program, *stream;
    uint64_t *word;

    (void)arg;
    CHECK_EQUAL(hip_make_word(iris, &word, &program), 0);
    CHECK_OK(
        iris_stream_wrap(iris, iris_stream_native(iris, program), &stream));
    CHECK_OK(hip_wait_for(iris, word, 5, program));
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_stream_synchronize(iris, stream)); /* once */
    CHECK_STATUS(iris_stream_synchronize(iris, program), IRIS_ERR_TIMEOUT);
    iris_stream_destroy(iris, stream);
    CHECK_OK(
        iris_stream_wrap(iris, iris_stream_native(iris, program), &stream));
    CHECK_OK(iris_stream_synchronize(iris, stream)); /* what was is not its */
    return 0;
}

static void an_error_of_the_program_s_own_work_is_returned(void **state)
{
    (void)state;
    setenv("IRIS_DEVICE_TIMEOUT_MS", "100", 1);
    setenv("IRIS_TIMEOUT_MS", "60000", 1);
    harness_run(1, unknown_body, NULL);
    setenv("IRIS_DEVICE_TIMEOUT_MS", "0", 1);
    setenv("IRIS_TIMEOUT_MS", "500", 1);
}

/* The same after another stream's synchronise has had the error, and then a
 * call of Iris's. */
static int later_body(iris_t *iris, void *arg)
{
    iris_stream_t *program, *stream, *other;
    uint64_t *word;

    (void)arg;
    CHECK_EQUAL(hip_make_word(iris, &word, &program), 0);
    CHECK_OK(iris_stream_create(iris, &other));
    CHECK_OK(
        iris_stream_wrap(iris, iris_stream_native(iris, program), &stream));
    CHECK_OK(hip_wait_for(iris, word, 5, program));
    CHECK_OK(hip_wait_for(iris, word, 7, other));
    CHECK_STATUS(iris_stream_synchronize(iris, other), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_memset(iris, word, 0, sizeof *word, stream));
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    CHECK_STATUS(iris_stream_synchronize(iris, program), IRIS_ERR_TIMEOUT);
    iris_stream_destroy(iris, stream);
    return 0;
}

static void an_error_is_kept_for_a_stream_that_gets_more(void **state)
{
    (void)state;
    harness_run(1, later_body, NULL);
}

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
static int meanwhile_body(iris_t *iris, void *arg)
{
    struct synchronised first = {.iris = iris};
    uint64_t *word, *second;
    iris_status_t status;
    pthread_t thread;

    (void)arg;
    CHECK_EQUAL(hip_make_word(iris, &word, &first.stream), 0);
    CHECK_OK(iris_calloc(iris, 1, sizeof *second, (void **)&second));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 7, first.stream));
    begin_to_synchronise(&first, &thread);
    usleep(100000);
    status = iris_wait_on_stream(iris, second, IRIS_CMP_EQ, 9, first.stream);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_OK(status);
    CHECK_EQUAL(first.status, IRIS_ERR_TIMEOUT);
    CHECK_STATUS(iris_stream_synchronize(iris, first.stream), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_stream_synchronize(iris, first.stream));
    return 0;
}

static void a_wait_that_comes_meanwhile_is_told_of(void **state)
{
    (void)state;
    harness_run(1, meanwhile_body, NULL);
}

static atomic_bool fed_enough;
static atomic_int in_work;

static void take_a_while(hipStream_t stream, hipError_t error, void *arg)
{
    (void)stream, (void)error, (void)arg;
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

static int fed_body(iris_t *iris, void *arg)
{
    iris_stream_t *stream;
    iris_status_t status;
    uint64_t *word;
    pthread_t thread;

    (void)arg;
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

static void waiting_ends_while_the_program_gives_work(void **state)
{
    (void)state;
    harness_run(1, fed_body, NULL);
}

static void hold(hipStream_t stream, hipError_t error, void *over)
{
    (void)stream, (void)error;
    while (!atomic_load((atomic_bool *)over)) {
        usleep(1000);
    }
}

/* While another stream's deadline goes on ending kernels, this one's
 * synchronise comes back with the program's kernel still behind. */
static int behind_the_mark_body(iris_t *iris, void *arg)
{
    static atomic_bool before, behind, on_other; /* may outlive this */
    struct synchronised it = {.iris = iris}, other = {.iris = iris};
    iris_stream_t *program;
    hipStream_t native;
    uint64_t *word;
    pthread_t thread, other_thread;
    iris_status_t status;

    (void)arg;
    CHECK_EQUAL(hip_make_word(iris, &word, &program), 0);
    native = iris_stream_native(iris, program);
    CHECK_OK(iris_stream_wrap(iris, native, &it.stream));
    CHECK_OK(iris_stream_create(iris, &other.stream));
    CHECK_EQUAL(hipStreamAddCallback(native, hold, &before, 0), hipSuccess);
    CHECK_EQUAL(hipStreamAddCallback(iris_stream_native(iris, other.stream),
                                     hold, &on_other, 0),
                hipSuccess);
    begin_to_synchronise(&it, &thread);
    begin_to_synchronise(&other, &other_thread);
    usleep(100000); /* for the mark */
    (void)hipStreamAddCallback(native, hold, &behind, 0);
    status = hip_wait_for(iris, word, 5, program);
    usleep(700000); /* past the deadline, within 2 s of grace */
    atomic_store(&before, true);
    (void)pthread_join(thread, NULL);
    atomic_store(&behind, true);
    for (int ms = 0; ms < 1000 && hipStreamQuery(native) != hipSuccess; ms++) {
        usleep(1000);
    }
    atomic_store(&on_other, true);
    (void)pthread_join(other_thread, NULL);
    CHECK_OK(status);
    CHECK_EQUAL(it.status, IRIS_ERR_TIMEOUT);
    CHECK_EQUAL(other.status, IRIS_ERR_TIMEOUT);
    CHECK_STATUS(iris_stream_synchronize(iris, it.stream), IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_stream_synchronize(iris, it.stream));
    CHECK_STATUS(iris_stream_synchronize(iris, program), IRIS_ERR_TIMEOUT);
    iris_stream_destroy(iris, it.stream);
    return 0;
}

static void what_ends_behind_a_synchronise_is_told_of(void **state)
{
    (void)state;
    harness_run(1, behind_the_mark_body, NULL);
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

/* A few, since the thread that fills the stream may wait, too. Each is
 * for what was enqueued when the stream was synchronised and, once more, for
 * what came until then. */
static int always_more_body(iris_t *iris, void *arg)
{
    struct filler filler = {.iris = iris};
    iris_status_t first, status = IRIS_OK;
    pthread_t thread;

    (void)arg;
    CHECK_EQUAL(hip_make_word(iris, &filler.word, &filler.stream), 0);
    CHECK_OK(hip_wait_for(iris, filler.word, 5, filler.stream));
    CHECK_EQUAL(pthread_create(&thread, NULL, fill, &filler), 0);
    first = iris_stream_synchronize(iris, filler.stream);
    for (int i = 0; i < 5; i++) {
        status = iris_stream_synchronize(iris, filler.stream);
    }
    atomic_store(&filler.over, true);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_EQUAL(first, IRIS_ERR_TIMEOUT);
    CHECK_OK(status);
    return 0;
}

static void an_error_ends_for_a_stream_that_always_gets_more(void **state)
{
    (void)state;
    harness_run(1, always_more_body, NULL);
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
        cmocka_unit_test(an_error_of_the_program_s_own_work_is_returned),
        cmocka_unit_test(an_error_is_kept_for_a_stream_that_gets_more),
        cmocka_unit_test(a_wait_that_comes_meanwhile_is_told_of),
        cmocka_unit_test(waiting_ends_while_the_program_gives_work),
        cmocka_unit_test(what_ends_behind_a_synchronise_is_told_of),
        cmocka_unit_test(an_error_ends_for_a_stream_that_always_gets_more),
    };

    return cmocka_run_group_tests(tests, setup, harness_teardown);
}
