/* SPDX-License-Identifier: MIT
 *
 * What is left of captures and graphs, a wait in a graph that reports more
 * than once, and what threads that share a context or the runtime do to each
 * other's streams. What graphs do is in test_graph.
 */
#include "config.h"

#include "support/hip_job.h"

#include <iris/device.h>

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

/* A capture and a graph that are left to iris_finalize(). */
static int careless_body(iris_t *iris, void *arg)
{
    iris_stream_t *stream;
    iris_graph_t *graph;
    uint64_t *words;

    CHECK_OK(iris_malloc(iris, sizeof *words, (void **)&words));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_OK(iris_memset(iris, words, 1, sizeof *words, stream));
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    CHECK_OK(iris_graph_launch(iris, graph, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_OK(iris_memset(iris, words, 1, sizeof *words, stream));
    iris_stream_destroy(iris, stream);
    return 0;
}

static TEST(graphs_and_captures_end_with_their_context)
{
    struct hip_held before;

    hip_note(&before);
    harness_run(2, careless_body, NULL);
    assert_int_equal(hip_found(&before), 0);
}

/* ---- Several threads ---- */

#define LINKS 20000

struct chain {
    iris_t *iris;
    iris_stream_t *stream, *other;
    uint64_t *word;
    atomic_int linked; /* so far */
    atomic_bool done;
    iris_status_t status;
};

/* Gives the stream work without end: each piece lets the one before it end. */
static void *link_chain(void *arg)
{
    struct chain *chain = arg;
    iris_t *iris = chain->iris;

    for (uint64_t i = 1;
         i <= LINKS && chain->status == IRIS_OK && !atomic_load(&chain->done);
         i++) {
        chain->status = iris_wait_on_stream(iris, chain->word, IRIS_CMP_GE, i,
                                            chain->stream);
        if (chain->status == IRIS_OK) {
            chain->status = iris_signal_on_stream(iris, chain->word, i - 1, 0,
                                                  chain->other);
        }
        atomic_store(&chain->linked, (int)i);
    }
    (void)iris_signal_on_stream(iris, chain->word, LINKS, 0, chain->other);
    return NULL;
}

static RANK_TEST(waiting_for_a_stream_ends_while_others_give_it_work, 1)
{
    struct chain chain = {.iris = iris};
    pthread_t thread;

    CHECK_OK(iris_calloc(iris, 1, sizeof *chain.word, (void **)&chain.word));
    CHECK_OK(iris_stream_create(iris, &chain.stream));
    CHECK_OK(iris_stream_create(iris, &chain.other));
    CHECK_EQUAL(pthread_create(&thread, NULL, link_chain, &chain), 0);
    while (atomic_load(&chain.linked) < 10) {
        sched_yield();
    }
    CHECK_OK(iris_stream_synchronize(iris, chain.stream));
    CHECK(atomic_load(&chain.linked) < LINKS);
    atomic_store(&chain.done, true);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_OK(chain.status);
    CHECK_OK(iris_stream_synchronize(iris, chain.stream));
    iris_stream_destroy(iris, chain.stream);
    iris_stream_destroy(iris, chain.other);
    return 0;
}

/* ---- Captures of other threads ---- */

struct capture {
    atomic_int begun, done;
    hipError_t error;
};

/* The program's own capture, in the mode that forbids the most. */
static void *capture_globally(void *arg)
{
    struct capture *capture = arg;
    hipStream_t native;
    hipGraph_t graph;

    (void)hipSetDevice(7);
    (void)hipStreamCreateWithFlags(&native, hipStreamNonBlocking);
    (void)hipStreamBeginCapture(native, hipStreamCaptureModeGlobal);
    atomic_store(&capture->begun, 1);
    while (atomic_load(&capture->done) == 0) {
        usleep(1000);
    }
    capture->error = hipStreamEndCapture(native, &graph);
    if (capture->error == hipSuccess) {
        (void)hipGraphDestroy(graph);
    }
    (void)hipStreamDestroy(native);
    return NULL;
}

static TEST(jobs_and_captures_of_other_threads_do_not_disturb)
{
    static const char *const allocators[] = {"pool", "vmem"};

    for (int i = 0; i < 2; i++) {
        hipStreamCaptureMode mode = hipStreamCaptureModeRelaxed;
        struct capture capture = {.error = hipErrorUnknown};
        pthread_t thread;
        iris_status_t status;

        setenv("IRIS_ALLOCATOR", allocators[i], 1);
        assert_int_equal(
            pthread_create(&thread, NULL, capture_globally, &capture), 0);
        while (atomic_load(&capture.begun) == 0) {
            usleep(1000);
        }
        status = hip_job();
        if (status != IRIS_OK) {
            print_error("%s\n", iris_last_error());
        }
        atomic_store(&capture.done, 1);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(status, IRIS_OK);
        assert_int_equal(capture.error, hipSuccess);
        /* This thread has the mode that it had. */
        assert_int_equal(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
        assert_int_equal(mode, hipStreamCaptureModeGlobal);
        assert_int_equal(hipThreadExchangeStreamCaptureMode(&mode), hipSuccess);
    }
}

/* The right to report is given anew when the error is cleared; where that fails
 * the error stays. */
static int again(iris_t *iris, iris_stream_t *stream, iris_graph_t *graph)
{
    for (int i = 0; i < 2; i++) {
        CHECK_OK(iris_graph_launch(iris, graph, stream));
        CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("lane ");
        (void)fakehip_fail("hipMemcpyAsync:1:700");
        CHECK_STATUS(iris_clear_error(iris), IRIS_ERR_STATE);
        CHECK_EQUAL(fakehip_fail(NULL), 1);
        CHECK_STATUS(iris_graph_launch(iris, graph, stream), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("lane ");
        CHECK_OK(iris_clear_error(iris));
    }
    return 0;
}

static int endless_body(iris_t *iris, void *arg)
{
    iris_stream_t *stream;
    iris_graph_t *graph;
    uint64_t *word, one = 1;

    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 1, stream));
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    CHECK_OK(iris_graph_launch(iris, graph, stream));
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("(IRIS_DEVICE_TIMEOUT_MS)");
    CHECK_OK(iris_clear_error(iris));
    CHECK_EQUAL(again(iris, stream, graph), 0);
    CHECK_OK(harness_write(iris, word, &one, sizeof one));
    CHECK_OK(iris_graph_launch(iris, graph, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    return 0;
}

static TEST(a_wait_in_a_graph_reports_each_time)
{
    setenv("IRIS_DEVICE_TIMEOUT_MS", "100", 1);
    harness_run(1, endless_body, NULL);
}

static TEST(the_cpu_has_no_graphs)
{
    struct iris_config config;
    iris_t *iris;

    iris_config_init(&config);
    config.backend = "sim";
    config.sim_device = "cpu";
    assert_int_equal(iris_init(&config, &iris), IRIS_OK);
    assert_int_equal(iris_capture_begin(iris, NULL), IRIS_ERR_UNSUPPORTED);
    assert_true(harness_message_has("the sim backend has no graphs"));
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
