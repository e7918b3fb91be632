/* SPDX-License-Identifier: MIT
 *
 * GPUs of several pretended nodes, over the fake HIP runtime whose streams are as
 * late as HIP's: order, graphs, collectives, and what is left. What every access
 * does is in transport/test_far.c.
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
#define COUNT ((size_t)3000)

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

static const struct {
    iris_dtype_t dtype;
    size_t bytes;
    uint64_t values[4]; /* bits */
} types[] = {
    {IRIS_DTYPE_F32, 4, {0x3f800001, 0x40490fdb, 0xbe99999a, 0x4b189680}},
    {IRIS_DTYPE_F16, 2, {0x3c01, 0x4248, 0xb4cd, 0x6400}},
    {IRIS_DTYPE_BF16, 2, {0x3f81, 0x4049, 0xbe9a, 0x4b18}},
    {IRIS_DTYPE_F64,
     8,
     {0x3ff0000000000001, 0x400921fb54442d18, 0xbfd3333333333333,
      0x416312d000000000}},
    {IRIS_DTYPE_I32, 4, {1, 0xfffffff0, 1234567, 77}},
    {IRIS_DTYPE_I64, 8, {1, 0xfffffffffffffff0, 123456789012, 77}},
};
#define TYPES (sizeof types / sizeof types[0])
#define RESULT (COUNT * 8)

/* Of each number of nodes, type and rank. */
static unsigned char results[2][TYPES][4][RESULT];

static int ccl_body(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris);
    unsigned char bytes[RESULT];
    void *in, *out;

    CHECK_OK(iris_malloc(iris, RESULT, &in));
    CHECK_OK(iris_malloc(iris, 4 * RESULT, &out));
    for (size_t t = 0; t < TYPES; t++) {
        size_t size = types[t].bytes;

        for (size_t i = 0; i < COUNT; i++) {
            memcpy(bytes + i * size, &types[t].values[(i + (size_t)rank) % 4],
                   size);
        }
        CHECK_OK(harness_write(iris, in, bytes, COUNT * size));
        CHECK_OK(iris_all_reduce(iris, in, out, COUNT, types[t].dtype,
                                 IRIS_REDUCE_SUM, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(harness_read(iris, results[*(int *)arg - 1][t][rank], out,
                              COUNT * size));
        CHECK_OK(iris_all_gather(iris, in, out, COUNT, types[t].dtype, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(harness_read(iris, bytes, (char *)out + 3 * COUNT * size,
                              COUNT * size));
        for (size_t i = 0; i < COUNT; i++) {
            CHECK(memcmp(bytes + i * size, &types[t].values[(i + 3) % 4],
                         size) == 0);
        }
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, out));
    return iris_free(iris, in);
}

/* The fake GPUs' kernels are those of CPUs, which have this. */
static TEST(sums_have_the_bits_of_one_node)
{
    setenv("IRIS_SPAWN", "threads", 1);
    for (int nodes = 1; nodes <= 2; nodes++) {
        setenv("IRIS_NODES", nodes == 1 ? "1" : "2", 1);
        harness_run(4, ccl_body, &nodes);
    }
    assert_memory_equal(results[0], results[1], sizeof results[0]);
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
