/* SPDX-License-Identifier: MIT
 *
 * GPUs of several pretended nodes, over the fake HIP runtime whose streams are as
 * late as HIP's: order, graphs, collectives, and no leaks. Every kind of access is in
 * transport/test_far.c.
 */
#include "config.h"

#define IRIS_FAR 1
#include "support/hip_job.h"

#include <iris/ccl.h>
#include <iris/device.h>

#include <stdlib.h>
#include <string.h>

#define WORDS ((size_t)9000) /* three pieces of a put */
#define ROUNDS 40
#define REPLAYS 50
#define CCL_REPLAYS 10 /* 4 to this power fits into a word */

struct far_args {
    const int64_t *context;
    uint64_t *words; /* symmetric: the source, what arrives, then signals */
    uint32_t rounds;
};

enum { ARRIVED, ANSWERED, WRONG, SIGNALS };

/* Message passing: a block, then a signal behind it. The answer makes room for the
 * next. */
IRIS_KERNEL(pass_blocks, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *source = args->words, *block = source + WORDS;
    uint64_t *signals = block + WORDS;
    int other = 1 - dev.rank;

    for (uint64_t i = 1; i <= args->rounds; i++) {
        if (dev.rank == 0) {
            source[0] = source[WORDS / 2] = source[WORDS - 1] = i;
            iris_wg_put(wg, dev, source, block, WORDS * sizeof *block, other);
            iris_signal_set(dev, &signals[ARRIVED], i, other);
            (void)iris_wait_until(dev, &signals[ANSWERED], IRIS_CMP_GE, i);
        } else {
            (void)iris_wait_until(dev, &signals[ARRIVED], IRIS_CMP_GE, i);
            signals[WRONG] +=
                block[0] != i || block[WORDS / 2] != i || block[WORDS - 1] != i;
            iris_signal_set(dev, &signals[ANSWERED], i, other);
        }
    }
}

static int pass_body(iris_t *iris, void *arg)
{
    size_t bytes = (2 * WORDS + SIGNALS) * sizeof(uint64_t);
    struct far_args args = {.context = iris_device_context(iris),
                            .rounds = ROUNDS};
    uint64_t signals[SIGNALS];

    CHECK(!iris_is_reachable(iris, 1 - iris_rank(iris)));
    CHECK_OK(iris_calloc(iris, 1, bytes, (void **)&args.words));
    CHECK_OK(iris_launch(iris, pass_blocks, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(
        harness_read(iris, signals, args.words + 2 * WORDS, sizeof signals));
    CHECK_EQUAL(signals[WRONG], 0);
    CHECK_EQUAL(signals[iris_rank(iris) == 0 ? ANSWERED : ARRIVED], ROUNDS);
    return iris_free(iris, args.words);
}

static TEST(a_signal_comes_behind_the_data_however_late_that_is)
{
    setenv("IRIS_NODES", "2", 1);
    for (char seed[] = "0"; seed[0] <= '3'; seed[0]++) {
        setenv("FAKEHIP_LATE", seed, 1);
        harness_run(2, pass_body, NULL);
    }
    unsetenv("FAKEHIP_LATE");
}

/* ---- Graphs ---- */

static int replay_body(iris_t *iris, void *arg)
{
    int other = 1 - iris_rank(iris);
    uint64_t *words, seen[2];
    iris_stream_t *stream;
    iris_graph_t *graph;

    CHECK_OK(iris_calloc(iris, 4, sizeof *words, (void **)&words));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_OK(iris_put_signal_on_stream(iris, &words[1], &words[0], 8, &words[2],
                                       1, IRIS_SIGNAL_ADD, other, stream));
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    for (uint64_t i = 1; i <= REPLAYS; i++) {
        CHECK_OK(iris_memcpy(iris, &words[0], &i, sizeof i, stream));
        CHECK_OK(iris_graph_launch(iris, graph, stream));
        CHECK_OK(iris_wait_on_stream(iris, &words[2], IRIS_CMP_GE, i, stream));
        CHECK_OK(iris_stream_synchronize(iris, stream));
        CHECK_OK(harness_read(iris, seen, &words[1], sizeof seen));
        CHECK(seen[0] >= i && seen[1] >= i); /* the other may be ahead */
        CHECK_OK(iris_barrier(iris, stream, NULL));
    }
    CHECK_OK(harness_read(iris, seen, &words[1], sizeof seen));
    CHECK_EQUAL(seen[1], REPLAYS);
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, stream);
    return iris_free(iris, words);
}

static TEST(a_graph_that_puts_to_another_node_is_replayed)
{
    setenv("IRIS_NODES", "2", 1);
    harness_run(2, replay_body, NULL);
}

/* ---- Collectives ---- */

/* Sums of integers, in one piece and in several, small and large. */
static int ccl_body(iris_t *iris, void *arg)
{
    static const size_t counts[] = {2, 40000};
    int n = iris_num_ranks(iris);
    iris_stream_t *stream;
    iris_graph_t *graph;
    uint32_t *data, seen[2];

    CHECK_OK(iris_calloc(iris, counts[1], sizeof *data, (void **)&data));
    CHECK_OK(iris_stream_create(iris, &stream));
    for (int c = 0; c < 2; c++) {
        struct iris_ccl_options options;
        uint32_t one = 1, power = 1;

        iris_ccl_options_init(&options);
        options.stream = stream;
        CHECK_OK(iris_memset(iris, data, 0, counts[c] * 4, NULL));
        CHECK_OK(harness_write(iris, &data[counts[c] - 1], &one, 4));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_all_reduce(iris, data, data, counts[c], IRIS_DTYPE_U32,
                                 IRIS_REDUCE_SUM, &options));
        CHECK_OK(iris_capture_begin(iris, stream));
        CHECK_OK(iris_all_reduce(iris, data, data, counts[c], IRIS_DTYPE_U32,
                                 IRIS_REDUCE_SUM, &options));
        CHECK_OK(iris_capture_end(iris, stream, &graph));
        for (int i = 0; i < CCL_REPLAYS; i++) {
            CHECK_OK(iris_graph_launch(iris, graph, stream));
        }
        CHECK_OK(iris_stream_synchronize(iris, stream));
        for (int i = 0; i <= CCL_REPLAYS; i++) {
            power *= (uint32_t)n;
        }
        CHECK_OK(harness_read(iris, seen, &data[counts[c] - 2], sizeof seen));
        CHECK_EQUAL(seen[0], 0);
        CHECK_EQUAL(seen[1], power);
        iris_graph_destroy(iris, graph);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_stream_destroy(iris, stream);
    return iris_free(iris, data);
}

static TEST(a_graph_with_a_collective_of_several_nodes_is_replayed)
{
    setenv("IRIS_NODES", "2", 1);
    for (char seed[] = "0"; seed[0] <= '1'; seed[0]++) {
        setenv("FAKEHIP_LATE", seed, 1);
        harness_run(2, ccl_body, NULL);
        harness_run(4, ccl_body, NULL);
    }
    unsetenv("FAKEHIP_LATE");
}

static TEST(nothing_of_a_job_of_several_nodes_is_left)
{
    struct hip_held before;

    setenv("IRIS_NODES", "2", 1);
    hip_note(&before);
    harness_run(2, pass_body, NULL);
    assert_int_equal(hip_found(&before), 0);
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
