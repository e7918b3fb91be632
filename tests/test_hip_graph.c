/* SPDX-License-Identifier: MIT
 *
 * Captures and graphs: what can be captured can be replayed, what cannot says
 * so and does no harm. And what threads that share a context or the runtime do
 * to each other's streams.
 */
#include "config.h"

#include "hip_job.h"

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

#define REPLAYS 60
#define COUNT 256

struct count_args {
    const int64_t *context;
    uint64_t *rounds; /* one for each rank, on every rank */
    uint64_t *errors;
    uint64_t *own; /* what this rank puts to others */
};

/* Every rank has come as far as this one, by the barrier before; goes on. */
IRIS_KERNEL(count_round, struct count_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        for (int rank = 0; rank < dev.num_ranks; rank++) {
            *args->errors += args->rounds[rank] != *args->own;
        }
        *args->own += 1;
    }
}

static int replay_body(iris_t *iris, void *arg)
{
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    struct count_args args = {.context = iris_device_context(iris)};
    uint64_t *words, *flag, seen[2];
    iris_stream_t *stream;
    iris_graph_t *graph;

    (void)arg;
    CHECK_OK(iris_calloc(iris, COUNT, sizeof *words, (void **)&words));
    CHECK_OK(iris_calloc(iris, 1, sizeof *flag, (void **)&flag));
    args.rounds = words + 2;
    args.errors = words;
    args.own = words + 1;
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_OK(iris_device_barrier(iris, stream, NULL));
    CHECK_OK(iris_launch(iris, count_round, 1, 64, &args, sizeof args, stream));
    CHECK_OK(iris_device_barrier(iris, stream, NULL));
    for (int to = 0; to < num_ranks; to++) {
        CHECK_OK(iris_put_on_stream(iris, &args.rounds[rank], args.own,
                                    sizeof *words, to, stream));
    }
    CHECK_OK(iris_signal_on_stream(iris, flag, 5, rank, stream));
    CHECK_OK(iris_wait_on_stream(iris, flag, IRIS_CMP_EQ, 5, stream));
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    CHECK_OK(harness_read(iris, seen, words, sizeof seen));
    CHECK_EQUAL(seen[1], 0); /* nothing has run */
    for (int i = 0; i < REPLAYS; i++) {
        CHECK_OK(iris_graph_launch(iris, graph, stream));
    }
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(harness_read(iris, seen, words, sizeof seen));
    CHECK_EQUAL(seen[0], 0);
    CHECK_EQUAL(seen[1], REPLAYS);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_graph_free(iris, graph);
    iris_stream_destroy(iris, stream);
    return 0;
}

static void a_graph_of_everything_runs_over_and_over(void **state)
{
    struct hip_held before;

    (void)state;
    harness_run(1, replay_body, NULL);
    hip_note(&before);
    harness_run_all(replay_body, NULL);
    assert_int_equal(hip_found(&before), 0);
}

/* Each is refused in the middle of a capture, which goes on as if nothing had
 * been. */
static int refused_body(iris_t *iris, void *arg)
{
    iris_stream_t *stream;
    iris_graph_t *graph, *kept;
    uint64_t host[COUNT] = {0};
    uint64_t *words;

    (void)arg;
    CHECK_OK(iris_calloc(iris, COUNT, sizeof *words, (void **)&words));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_BAD(iris, iris_capture_end(iris, stream, &graph), IRIS_ERR_STATE,
              "iris_capture_end", "iris_capture_begin");
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_BAD(iris, iris_capture_begin(iris, stream), IRIS_ERR_STATE,
              "cannot be captured", "before or after the capture");
    CHECK_BAD(iris, iris_memcpy(iris, host, words, sizeof host, stream),
              IRIS_ERR_STATE, "host memory that is not pinned",
              "before or after the capture");
    CHECK_BAD(iris, iris_memset(iris, host, 0, sizeof host, stream),
              IRIS_ERR_STATE, "host memory that is not pinned",
              "before or after the capture");
    CHECK_OK(iris_memset(iris, words, 1, sizeof host, stream));
    CHECK_BAD(iris, iris_stream_synchronize(iris, stream), IRIS_ERR_STATE,
              "waiting for a stream", "before or after the capture");
    CHECK_BAD(iris, iris_capture_end(iris, stream, NULL), IRIS_ERR_INVALID,
              "graph_p is NULL", "pass where");
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    CHECK_OK(harness_read(iris, host, words, sizeof host));
    CHECK_EQUAL(host[COUNT - 1], 0);
    CHECK_OK(iris_graph_launch(iris, graph, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(harness_read(iris, host, words, sizeof host));
    CHECK_EQUAL(host[COUNT - 1], 0x0101010101010101);
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_BAD(iris, iris_graph_launch(iris, graph, stream), IRIS_ERR_STATE,
              "the launch of a graph cannot be captured",
              "before or after the capture");
    CHECK_OK(iris_capture_end(iris, stream, &kept));
    CHECK_OK(iris_graph_launch(iris, kept, stream)); /* of nothing */
    kept = graph;
    iris_graph_free(iris, graph);
    CHECK_BAD(iris, iris_graph_launch(iris, kept, stream), IRIS_ERR_INVALID,
              "not a live graph", "iris_capture_end");
    CHECK_BAD(iris, iris_graph_launch(iris, NULL, stream), IRIS_ERR_INVALID,
              "not a live graph", "iris_capture_end");
    return 0;
}

static void what_cannot_be_captured_says_so(void **state)
{
    (void)state;
    harness_run(2, refused_body, NULL);
}

/* The memory that was not given is the next call's, and no graph's. */
static int calloc_body(iris_t *iris, void *arg)
{
    uint64_t *words = NULL, host[COUNT], seen[COUNT];
    iris_graph_t *graph;

    (void)arg;
    memset(host, 7, sizeof host);
    CHECK_OK(iris_capture_begin(iris, NULL));
    CHECK_BAD(iris, iris_calloc(iris, COUNT, sizeof *words, (void **)&words),
              IRIS_ERR_STATE, "waiting for a stream",
              "before or after the capture");
    CHECK_OK(iris_capture_end(iris, NULL, &graph));
    CHECK_OK(iris_malloc(iris, sizeof host, (void **)&words));
    CHECK_OK(harness_write(iris, words, host, sizeof host));
    CHECK_OK(iris_graph_launch(iris, graph, NULL));
    CHECK_OK(harness_read(iris, seen, words, sizeof seen));
    CHECK_EQUAL(memcmp(seen, host, sizeof host), 0);
    return 0;
}

static void memory_refused_in_a_capture_is_in_no_graph(void **state)
{
    (void)state;
    harness_run(2, calloc_body, NULL);
}

/* A capture and a graph that are left to iris_finalize(). */
static int careless_body(iris_t *iris, void *arg)
{
    iris_stream_t *stream;
    iris_graph_t *graph;
    uint64_t *words;

    (void)arg;
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

static void graphs_and_captures_end_with_their_context(void **state)
{
    struct hip_held before;

    (void)state;
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

static int starve_body(iris_t *iris, void *arg)
{
    struct chain chain = {.iris = iris};
    pthread_t thread;

    (void)arg;
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

static void waiting_for_a_stream_ends_while_others_give_it_work(void **state)
{
    (void)state;
    harness_run(1, starve_body, NULL);
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

static void jobs_and_captures_of_other_threads_do_not_disturb(void **state)
{
    static const char *const allocators[] = {"pool", "vmem"};

    (void)state;
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
    unsetenv("IRIS_ALLOCATOR");
}

struct late_capture {
    iris_t *iris;
    iris_stream_t *stream;
    iris_stream_t *other;
    uint64_t *word;
    iris_status_t status;
};

static void *capture_late(void *arg)
{
    struct late_capture *capture = arg;
    iris_graph_t *graph;

    usleep(50000);
    capture->status = iris_capture_begin(capture->iris, capture->stream);
    usleep(50000); /* for some looks at the stream */
    if (capture->status == IRIS_OK) {
        capture->status = iris_memset(capture->iris, capture->word, 0,
                                      sizeof(uint64_t), capture->stream);
    }
    if (capture->status == IRIS_OK) {
        capture->status =
            iris_capture_end(capture->iris, capture->stream, &graph);
    }
    if (iris_signal_on_stream(capture->iris, capture->word, 1, 0,
                              capture->other) != IRIS_OK) {
        capture->status = IRIS_ERR_DEVICE;
    }
    return NULL;
}

/* A stream that is captured while the host waits for what it was given before.
 */
static int late_body(iris_t *iris, void *arg)
{
    struct late_capture capture = {.iris = iris};
    iris_status_t status;
    pthread_t thread;

    (void)arg;
    CHECK_OK(iris_calloc(iris, 1, sizeof(uint64_t), (void **)&capture.word));
    CHECK_OK(iris_stream_create(iris, &capture.stream));
    CHECK_OK(iris_stream_create(iris, &capture.other));
    CHECK_OK(iris_wait_on_stream(iris, capture.word, IRIS_CMP_EQ, 1,
                                 capture.stream));
    CHECK_EQUAL(pthread_create(&thread, NULL, capture_late, &capture), 0);
    status = iris_stream_synchronize(iris, capture.stream);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_OK(capture.status);
    if (status == IRIS_ERR_STATE) { /* the capture had begun before */
        status = iris_stream_synchronize(iris, capture.stream);
    }
    CHECK_OK(status);
    CHECK_OK(iris_stream_synchronize(iris, capture.other));
    return 0;
}

static void waiting_for_a_stream_leaves_its_capture_alone(void **state)
{
    (void)state;
    harness_run(1, late_body, NULL);
}

/* A wait whose lane cannot report, since the right to do so stays with the one
 * before, ends as an error all the same; and the next one can. */
static int unclaimed(iris_t *iris, iris_stream_t *stream, iris_graph_t *graph)
{
    static const char *const texts[] = {"lane ", "soon after another one",
                                        "lane "};

    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_graph_launch(iris, graph, stream));
        (void)fakehip_fail(i == 0 ? "hipMemcpyAsync:1:700" : NULL);
        CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE(texts[i]);
        CHECK_EQUAL(fakehip_fail(NULL), i == 0);
    }
    return 0;
}

static int endless_body(iris_t *iris, void *arg)
{
    iris_stream_t *stream;
    iris_graph_t *graph;
    uint64_t *word, one = 1;

    (void)arg;
    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_OK(iris_wait_on_stream(iris, word, IRIS_CMP_EQ, 1, stream));
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    CHECK_OK(iris_graph_launch(iris, graph, stream));
    CHECK_STATUS(iris_stream_synchronize(iris, stream), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("(IRIS_DEVICE_TIMEOUT_MS)");
    CHECK_EQUAL(unclaimed(iris, stream, graph), 0);
    CHECK_OK(harness_write(iris, word, &one, sizeof one));
    CHECK_OK(iris_graph_launch(iris, graph, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    return 0;
}

static void a_wait_in_a_graph_has_a_deadline(void **state)
{
    (void)state;
    setenv("IRIS_DEVICE_TIMEOUT_MS", "100", 1);
    harness_run(1, endless_body, NULL);
    unsetenv("IRIS_DEVICE_TIMEOUT_MS");
}

static void the_cpu_has_no_graphs(void **state)
{
    struct iris_config config;
    iris_t *iris;

    (void)state;
    iris_config_init(&config);
    config.backend = "sim";
    config.sim_device = "cpu";
    assert_int_equal(iris_init(&config, &iris), IRIS_OK);
    assert_int_equal(iris_capture_begin(iris, NULL), IRIS_ERR_UNSUPPORTED);
    assert_true(harness_message_has("the CPU has no graphs"));
    assert_int_equal(iris_finalize(iris), IRIS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_of_everything_runs_over_and_over),
        cmocka_unit_test(what_cannot_be_captured_says_so),
        cmocka_unit_test(memory_refused_in_a_capture_is_in_no_graph),
        cmocka_unit_test(graphs_and_captures_end_with_their_context),
        cmocka_unit_test(waiting_for_a_stream_ends_while_others_give_it_work),
        cmocka_unit_test(jobs_and_captures_of_other_threads_do_not_disturb),
        cmocka_unit_test(waiting_for_a_stream_leaves_its_capture_alone),
        cmocka_unit_test(a_wait_in_a_graph_has_a_deadline),
        cmocka_unit_test(the_cpu_has_no_graphs),
    };

    return cmocka_run_group_tests(tests, hip_setup, harness_teardown);
}
