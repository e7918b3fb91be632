/* SPDX-License-Identifier: MIT
 *
 * Collectives in graphs: captured once, launched many times, between calls that
 * are not.
 */
#include "config.h"

#include "ccl/play.h"

#include <string.h>

/* Few in a row: the sums of 2, 4 or 8 ranks soon have no bits left. */
#define REPLAYS 5
#define WORDS 3000

/* Each call of the graph makes the next one's input. */
static int capture(iris_t *iris, uint32_t *words, const size_t *counts,
                   struct iris_ccl_options *options, iris_graph_t **graph_p)
{
    CHECK_OK(iris_capture_begin(iris, options->stream));
    for (int i = 0; play_variant(PLAY_ALL_REDUCE, i) != IRIS_CCL_AUTO; i++) {
        options->all_reduce = play_variant(PLAY_ALL_REDUCE, i);
        if (options->all_reduce != IRIS_CCL_ONE_SHOT) {
            CHECK_OK(iris_all_reduce(iris, words, words, counts[i],
                                     IRIS_DTYPE_U32, IRIS_REDUCE_SUM, options));
        }
    }
    options->all_reduce = IRIS_CCL_AUTO;
    return iris_capture_end(iris, options->stream, graph_p) != IRIS_OK;
}

/* What count[i] elements each become, multiplied by the number of ranks. */
static void reduce(uint32_t *expected, const size_t *counts, uint32_t ranks)
{
    for (int i = 1; i < 4; i++) {
        for (size_t k = 0; k < counts[i]; k++) {
            expected[k] *= ranks;
        }
    }
}

/* Some replays from new words, whose sums are checked. */
static int replay(iris_t *iris, iris_graph_t *graph, uint32_t *words,
                  const size_t *counts, const struct iris_ccl_options *options)
{
    uint32_t ranks = (uint32_t)iris_num_ranks(iris);
    uint32_t seen[WORDS], expected[WORDS];

    for (uint32_t k = 0; k < WORDS; k++) {
        expected[k] = 2 * k + 1; /* odd: products stay different */
    }
    CHECK_OK(harness_write(iris, words, expected, sizeof expected));
    for (int i = 0; i < REPLAYS; i++) {
        CHECK_OK(iris_graph_launch(iris, graph, options->stream));
        reduce(expected, counts, ranks);
        if (i % 4 == 0) { /* one that is in no graph, between them */
            CHECK_OK(iris_all_reduce(iris, words, words, 1, IRIS_DTYPE_U32,
                                     IRIS_REDUCE_SUM, options));
            expected[0] *= ranks;
        }
    }
    CHECK_OK(iris_stream_synchronize(iris, options->stream));
    CHECK_OK(harness_read(iris, seen, words, sizeof expected));
    CHECK(memcmp(seen, expected, sizeof seen) == 0);
    return 0;
}

/* In a long run 10,000 times. */
static RANK_TEST(a_captured_call_can_be_replayed, ALL_RANKS)
{
    static const size_t counts[] = {0, WORDS, 17, 700};
    struct iris_ccl_options options;
    iris_graph_t *graph;
    uint32_t *words;

    iris_ccl_options_init(&options);
    CHECK_OK(iris_malloc(iris, WORDS * sizeof *words, (void **)&words));
    CHECK_OK(iris_stream_create(iris, &options.stream));
    CHECK_OK(iris_all_reduce_preamble(iris, &options));
    CHECK_EQUAL(capture(iris, words, counts, &options, &graph), 0);
    for (size_t i = 0; i < harness_count(10000 / REPLAYS, 5); i++) {
        CHECK_EQUAL(replay(iris, graph, words, counts, &options), 0);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, options.stream);
    return 0;
}

/* The group's workspace is made before, or not at all. */
static RANK_TEST(the_first_call_can_be_captured_on_a_stream_of_its_own, 2)
{
    struct iris_ccl_options options;
    iris_graph_t *graph;
    uint32_t *word;

    iris_ccl_options_init(&options);
    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_stream_create(iris, &options.stream));
    CHECK_OK(iris_capture_begin(iris, options.stream));
    CHECK_OK(iris_all_reduce(iris, word, word, 1, IRIS_DTYPE_U32,
                             IRIS_REDUCE_SUM, &options));
    CHECK_OK(iris_capture_end(iris, options.stream, &graph));
    CHECK_OK(iris_graph_launch(iris, graph, options.stream));
    CHECK_OK(iris_stream_synchronize(iris, options.stream));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, options.stream);
    return 0;
}

/* A workspace has one stream at a time, whoever captured its calls. */
static iris_status_t reduce_word(iris_t *iris, uint32_t *word,
                                 const struct iris_ccl_options *options,
                                 iris_reduce_op_t op)
{
    return iris_all_reduce(iris, word, word, 1, IRIS_DTYPE_U32, op, options);
}

static int capture_word(iris_t *iris, uint32_t *word,
                        const struct iris_ccl_options *options,
                        iris_reduce_op_t op, iris_graph_t **graph_p)
{
    CHECK_OK(iris_capture_begin(iris, options->stream));
    CHECK_OK(reduce_word(iris, word, options, op));
    CHECK_OK(iris_capture_end(iris, options->stream, graph_p));
    return 0;
}

static RANK_TEST(a_graph_takes_the_workspace_where_it_is_launched, 2)
{
    struct iris_ccl_options one, other;
    iris_graph_t *graph;
    uint32_t *word;

    iris_ccl_options_init(&one);
    iris_ccl_options_init(&other);
    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_stream_create(iris, &one.stream));
    CHECK_OK(iris_stream_create(iris, &other.stream));
    CHECK_OK(iris_all_reduce_preamble(iris, &one));
    /* Capturing uses nothing, so another stream may be at work. */
    CHECK_OK(reduce_word(iris, word, &other, IRIS_REDUCE_SUM));
    CHECK_EQUAL(capture_word(iris, word, &one, IRIS_REDUCE_SUM, &graph), 0);
    CHECK_BAD(iris, iris_graph_launch(iris, graph, one.stream), IRIS_ERR_STATE,
              "last used on another stream", "iris_stream_synchronize");
    CHECK_OK(iris_graph_launch(iris, graph, other.stream));
    CHECK_BAD(iris, reduce_word(iris, word, &one, IRIS_REDUCE_SUM),
              IRIS_ERR_STATE, "last used on another stream",
              "iris_stream_synchronize");
    CHECK_OK(iris_stream_synchronize(iris, other.stream));
    CHECK_OK(iris_graph_launch(iris, graph, one.stream));
    CHECK_BAD(iris, iris_graph_launch(iris, graph, other.stream),
              IRIS_ERR_STATE, "last used on another stream",
              "iris_stream_synchronize");
    CHECK_BAD(iris, reduce_word(iris, word, &other, IRIS_REDUCE_SUM),
              IRIS_ERR_STATE, "last used on another stream",
              "iris_stream_synchronize");
    CHECK_OK(iris_stream_synchronize(iris, one.stream));
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, one.stream);
    iris_stream_destroy(iris, other.stream);
    return 0;
}

static RANK_TEST(a_graph_does_not_outlive_its_workspace, 2)
{
    struct iris_ccl_options options;
    iris_graph_t *graph;
    uint32_t *word;

    iris_ccl_options_init(&options);
    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_stream_create(iris, &options.stream));
    CHECK_OK(iris_ccl_workspace_create(iris, NULL, &options.workspace));
    CHECK_EQUAL(capture_word(iris, word, &options, IRIS_REDUCE_SUM, &graph), 0);
    CHECK_OK(iris_graph_launch(iris, graph, options.stream));
    CHECK_OK(iris_stream_synchronize(iris, options.stream));
    CHECK_OK(iris_ccl_workspace_destroy(iris, options.workspace));
    CHECK_BAD(iris, iris_graph_launch(iris, graph, options.stream),
              IRIS_ERR_STATE, "is gone", "capture");
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, options.stream);
    return 0;
}

/* Graphs of members that captured different calls. */
static RANK_TEST(captured_calls_that_differ_are_found, 2, 3)
{
    struct iris_ccl_options options;
    iris_graph_t *graph;
    uint32_t *word;

    iris_ccl_options_init(&options);
    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_stream_create(iris, &options.stream));
    CHECK_OK(iris_all_reduce_preamble(iris, &options));
    CHECK_EQUAL(
        capture_word(iris, word, &options,
                     iris_rank(iris) == 1 ? IRIS_REDUCE_MAX : IRIS_REDUCE_SUM,
                     &graph),
        0);
    CHECK_OK(reduce_word(iris, word, &options, IRIS_REDUCE_BOR));
    CHECK_OK(iris_graph_launch(iris, graph, options.stream));
    CHECK_STATUS(iris_stream_synchronize(iris, options.stream),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("call 2 of the group");
    CHECK_MESSAGE("(max, ");
    CHECK_MESSAGE("(sum, ");
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, options.stream);
    return 0;
}

TEST_GROUP_WITH(harness_gpu_setup, harness_teardown, rank);
