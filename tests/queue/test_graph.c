/* SPDX-License-Identifier: MIT
 *
 * Captures and graphs: what can be captured can be replayed, what cannot says
 * so and does no harm.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REPLAYS 60
#define COUNT 256
#define LARGE 12000 /* kernels of a graph */

/* One on each rank's heap. */
struct board {
    uint64_t errors;
    uint64_t own;       /* rounds; what this rank puts to others */
    uint64_t got;       /* what it got from its left neighbour */
    uint64_t flag;      /* signal */
    uint64_t rounds[8]; /* of each rank */
};

struct count_args {
    const int64_t *context;
    struct board *board;
};

/* Every rank has come as far as this one, by the barrier before; goes on. */
IRIS_KERNEL(count_round, struct count_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = args->board;

    if (iris_wg_leader(wg)) {
        for (int rank = 0; rank < dev.num_ranks; rank++) {
            board->errors += board->rounds[rank] != board->own;
        }
        board->errors += board->got != board->own;
        board->own += 1;
    }
}

/* What the left neighbour put before its signal is here. */
IRIS_KERNEL(look_left, struct count_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = args->board;
    int left = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;

    if (iris_wg_leader(wg)) {
        board->errors += board->rounds[left] != board->own;
    }
}

IRIS_KERNEL(wait_for_flag, struct count_args)
{
    if (iris_wg_leader(wg)) {
        (void)iris_wait_until(iris_dev_init(args->context), &args->board->flag,
                              IRIS_CMP_EQ, 1);
    }
}

/* Each operation that can be captured. */
static int enqueue_round(iris_t *iris, struct count_args args,
                         iris_stream_t *stream)
{
    struct board *board = args.board;
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    int right = (rank + 1) % num_ranks;
    int left = (rank + num_ranks - 1) % num_ranks;

    CHECK_OK(iris_device_barrier(iris, stream, NULL));
    CHECK_OK(iris_launch(iris, count_round, 1, 64, &args, sizeof args, stream));
    CHECK_OK(iris_device_barrier(iris, stream, NULL));
    for (int to = 0; to < num_ranks; to++) {
        CHECK_OK(iris_put_on_stream(iris, &board->rounds[rank], &board->own,
                                    sizeof board->own, to, stream));
    }
    CHECK_OK(iris_get_on_stream(iris, &board->got, &board->own,
                                sizeof board->own, left, stream));
    CHECK_OK(iris_signal_on_stream(iris, &board->flag, 5, right, stream));
    CHECK_OK(iris_wait_on_stream(iris, &board->flag, IRIS_CMP_EQ, 5, stream));
    CHECK_OK(iris_launch(iris, look_left, 1, 64, &args, sizeof args, stream));
    CHECK_OK(iris_memset(iris, &board->flag, 0, sizeof board->flag, stream));
    return 0;
}

static RANK_TEST(a_graph_of_everything_runs_over_and_over, ALL_RANKS)
{
    struct count_args args = {iris_device_context(iris), NULL};
    struct board seen;
    iris_stream_t *stream;
    iris_graph_t *graph;

    CHECK_OK(iris_calloc(iris, 1, sizeof seen, (void **)&args.board));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_EQUAL(enqueue_round(iris, args, stream), 0);
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    CHECK_OK(harness_read(iris, &seen, args.board, sizeof seen));
    CHECK_EQUAL(seen.own, 0); /* nothing has run */
    for (int i = 0; i < REPLAYS; i++) {
        CHECK_OK(iris_graph_launch(iris, graph, stream));
    }
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(harness_read(iris, &seen, args.board, sizeof seen));
    CHECK_EQUAL(seen.errors, 0);
    CHECK_EQUAL(seen.own, REPLAYS);
    CHECK_EQUAL(seen.got, REPLAYS);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, stream);
    return 0;
}

/* Each is refused in the middle of a capture, which goes on as if nothing had
 * been. */
static RANK_TEST(what_cannot_be_captured_says_so, ALL_RANKS)
{
    iris_stream_t *stream;
    iris_graph_t *graph, *kept;
    uint64_t host[COUNT] = {0};
    uint64_t *words;

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
    iris_graph_destroy(iris, graph);
    CHECK_BAD(iris, iris_graph_launch(iris, kept, stream), IRIS_ERR_INVALID,
              "not a live graph", "iris_capture_end");
    CHECK_BAD(iris, iris_graph_launch(iris, NULL, stream), IRIS_ERR_INVALID,
              "not a live graph", "iris_capture_end");
    return 0;
}

/* The memory that was not given is the next call's, and no graph's. */
static RANK_TEST(memory_refused_in_a_capture_is_in_no_graph, ALL_RANKS)
{
    uint64_t *words = NULL, host[COUNT], seen[COUNT];
    iris_graph_t *graph;

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

/* It waits for the default stream, and must not become a part of the graph. */
static RANK_TEST(a_blocking_copy_is_refused_in_a_capture, ALL_RANKS)
{
    iris_graph_t *graph;
    uint64_t host = 7, *words;

    CHECK_OK(iris_calloc(iris, 2, sizeof *words, (void **)&words));
    CHECK_OK(iris_memcpy_sync(iris, &words[1], &host, sizeof host));
    CHECK_OK(iris_capture_begin(iris, NULL));
    CHECK_BAD(iris, iris_memcpy_sync(iris, &words[0], &words[1], sizeof *words),
              IRIS_ERR_STATE, "waiting for a stream",
              "before or after the capture");
    CHECK_OK(iris_capture_end(iris, NULL, &graph));
    CHECK_OK(iris_graph_launch(iris, graph, NULL));
    CHECK_OK(iris_memcpy_sync(iris, &host, &words[0], sizeof host));
    CHECK_EQUAL(host, 0);
    iris_graph_destroy(iris, graph);
    return 0;
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
    struct late_capture *capture = (struct late_capture *)arg;
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
static RANK_TEST(waiting_for_a_stream_leaves_its_capture_alone, 1)
{
    struct late_capture capture = {iris, NULL, NULL, NULL, IRIS_OK};
    iris_status_t status;
    pthread_t thread;

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

/* A rank's kernel waits until another is done with a large graph. */
static int large_body(iris_t *iris, void *arg)
{
    struct count_args args = {iris_device_context(iris), NULL};
    iris_stream_t *stream;
    iris_graph_t *graph;

    CHECK_OK(iris_calloc(iris, 1, sizeof *args.board, (void **)&args.board));
    CHECK_OK(iris_stream_create(iris, &stream));
    if (iris_rank(iris) == 0) {
        CHECK_OK(
            iris_launch(iris, wait_for_flag, 1, 1, &args, sizeof args, stream));
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (iris_rank(iris) == 1) {
        CHECK_OK(iris_capture_begin(iris, stream));
        for (int i = 0; i < LARGE; i++) {
            CHECK_OK(iris_launch(iris, look_left, 1, 64, &args, sizeof args,
                                 stream));
        }
        CHECK_OK(iris_capture_end(iris, stream, &graph));
        CHECK_OK(iris_graph_launch(iris, graph, stream));
        CHECK_OK(iris_stream_synchronize(iris, stream));
        iris_graph_destroy(iris, graph);
        CHECK_OK(iris_signal_on_stream(iris, &args.board->flag, 1, 0, stream));
    }
    CHECK_OK(iris_stream_synchronize(iris, stream));
    return 0;
}

static TEST(large_graphs_are_made_while_others_wait)
{
    harness_run_sim(2, large_body, NULL);
}

static int deadline_body(iris_t *iris, void *arg)
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
    CHECK_OK(harness_write(iris, word, &one, sizeof one));
    CHECK_OK(iris_graph_launch(iris, graph, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    return 0;
}

static TEST(a_wait_in_a_graph_has_a_deadline)
{
    setenv("IRIS_DEVICE_TIMEOUT_MS", "100", 1);
    harness_run(1, deadline_body, NULL);
    unsetenv("IRIS_DEVICE_TIMEOUT_MS");
}

TEST_GROUP_WITH(harness_gpu_setup, harness_teardown, rank, one_gpu);
