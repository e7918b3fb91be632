/* SPDX-License-Identifier: MIT
 *
 * Captures and graphs: what can be captured can be replayed, what cannot says
 * so and does no harm.
 */
#include "config.h"

#include "hip_job.h"

#include <iris/device.h>

#include <stdlib.h>
#include <string.h>

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
        cmocka_unit_test(graphs_and_captures_end_with_their_context),
        cmocka_unit_test(a_wait_in_a_graph_has_a_deadline),
        cmocka_unit_test(the_cpu_has_no_graphs),
    };

    return cmocka_run_group_tests(tests, hip_setup, harness_teardown);
}
