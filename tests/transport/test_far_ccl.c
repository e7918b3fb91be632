/* SPDX-License-Identifier: MIT
 *
 * Collectives of groups with ranks of several pretended nodes: the values, and
 * of sums the bits, that the group's order gives.
 */
#include "config.h"

#include "context/context.h"
#include "support/harness.h"

#include <iris/ccl.h>

#include <stdlib.h>

#define RANKS 4
#define MOST ((size_t)800003) /* shares of an all_reduce have two pieces */

/* Sums of these depend on their order. */
static float value_of(int rank, size_t i)
{
    return (float)(rank * rank + 1) * 0.37f * (float)((i % 97) + 1) +
           (rank == 1 ? 1e7f : 0.0f);
}

static float sum_of(const int *ranks, int n, size_t i)
{
    float sum = value_of(ranks[0], i);

    for (int m = 1; m < n; m++) {
        sum += value_of(ranks[m], i);
    }
    return sum;
}

struct buffers {
    float *in; /* of each member a part, as out */
    float *out;
    float *near_in; /* the same on the heap */
    float *near_out;
    const int *ranks;
    int n;
    int self;
    size_t count;
    struct iris_ccl_options options;
};

static int fill(iris_t *iris, const struct buffers *b, int rank)
{
    size_t bytes = b->count * (size_t)b->n * sizeof *b->in;

    for (size_t i = 0; i < b->count * (size_t)b->n; i++) {
        b->in[i] = value_of(rank, i);
        b->out[i] = -1;
    }
    CHECK_OK(iris_memcpy_sync(iris, b->near_in, b->in, bytes));
    CHECK_OK(iris_memcpy_sync(iris, b->near_out, b->out, bytes));
    return 0;
}

/* Waits for the calls, and copies what they left in both buffers. */
static int fetch(iris_t *iris, const struct buffers *b)
{
    size_t bytes = b->count * (size_t)b->n * sizeof *b->in;

    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_memcpy_sync(iris, b->in, b->near_in, bytes));
    CHECK_OK(iris_memcpy_sync(iris, b->out, b->near_out, bytes));
    return 0;
}

/* Averages and scaled sums are the sums times one factor, rounded once more. */
static int check_scaled(iris_t *iris, struct buffers *b, int rank)
{
    struct iris_ccl_options scaled = b->options;

    scaled.scale = 0.7;
    CHECK_EQUAL(fill(iris, b, rank), 0);
    CHECK_OK(iris_all_reduce(iris, b->near_in, b->near_out, b->count,
                             IRIS_DTYPE_F32, IRIS_REDUCE_AVG, &b->options));
    CHECK_OK(iris_all_reduce(iris, b->near_in, b->near_out + b->count, b->count,
                             IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &scaled));
    CHECK_EQUAL(fetch(iris, b), 0);
    for (size_t i = 0; i < b->count; i++) {
        float sum = sum_of(b->ranks, b->n, i);

        CHECK(b->out[i] == sum * (float)(1.0 / b->n));
        CHECK(b->out[b->count + i] == sum * 0.7f);
    }
    return 0;
}

static int check_reductions(iris_t *iris, struct buffers *b, int rank)
{
    size_t first = (size_t)b->self * b->count;

    CHECK_EQUAL(fill(iris, b, rank), 0);
    CHECK_OK(iris_all_reduce(iris, b->near_in, b->near_out, b->count,
                             IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &b->options));
    CHECK_OK(iris_reduce_scatter(iris, b->near_in, b->near_out + b->count,
                                 b->count, IRIS_DTYPE_F32, IRIS_REDUCE_SUM,
                                 &b->options));
    CHECK_EQUAL(fetch(iris, b), 0);
    for (size_t i = 0; i < b->count; i++) {
        CHECK(b->out[i] == sum_of(b->ranks, b->n, i));
        CHECK(b->out[b->count + i] == sum_of(b->ranks, b->n, first + i));
    }
    /* In place. */
    CHECK_OK(iris_all_reduce(iris, b->near_in, b->near_in, b->count,
                             IRIS_DTYPE_F32, IRIS_REDUCE_SUM, &b->options));
    CHECK_EQUAL(fetch(iris, b), 0);
    for (size_t i = 0; i < b->count; i++) {
        CHECK(b->in[i] == b->out[i]);
    }
    return check_scaled(iris, b, rank);
}

static int check_moves(iris_t *iris, struct buffers *b, int rank)
{
    int root = b->n - 1;

    CHECK_EQUAL(fill(iris, b, rank), 0);
    CHECK_OK(iris_all_gather(iris, b->near_in, b->near_out, b->count,
                             IRIS_DTYPE_F32, &b->options));
    CHECK_EQUAL(fetch(iris, b), 0);
    for (size_t i = 0; i < b->count * (size_t)b->n; i++) {
        CHECK(b->out[i] == value_of(b->ranks[i / b->count], i % b->count));
    }
    CHECK_OK(iris_all_to_all(iris, b->near_in, b->near_out, b->count,
                             IRIS_DTYPE_F32, &b->options));
    CHECK_EQUAL(fetch(iris, b), 0);
    for (size_t i = 0; i < b->count * (size_t)b->n; i++) {
        CHECK(b->out[i] == value_of(b->ranks[i / b->count],
                                    (size_t)b->self * b->count + i % b->count));
    }
    CHECK_OK(iris_ccl_broadcast(iris, b->near_in, b->near_out, b->count,
                                IRIS_DTYPE_F32, root, &b->options));
    CHECK_EQUAL(fetch(iris, b), 0);
    for (size_t i = 0; i < b->count; i++) {
        CHECK(b->out[i] == value_of(b->ranks[root], i));
    }
    return 0;
}

static int check_group(iris_t *iris, iris_group_t *group, const int *ranks,
                       int n, float *memory)
{
    static const size_t counts[] = {1, 1000, MOST / RANKS};
    struct buffers b = {
        .near_in = memory, .near_out = memory + MOST, .ranks = ranks, .n = n};
    int rank = iris_rank(iris);

    for (b.self = 0; ranks[b.self] != rank; b.self++) {
    }
    iris_ccl_options_init(&b.options);
    b.options.group = group;
    b.in = malloc(MOST * sizeof *b.in);
    b.out = malloc(MOST * sizeof *b.out);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        b.count = counts[i];
        CHECK_EQUAL(check_reductions(iris, &b, rank), 0);
        CHECK_EQUAL(check_moves(iris, &b, rank), 0);
    }
    free(b.in);
    free(b.out);
    return 0;
}

static int ccl_body(iris_t *iris, void *arg)
{
    static const int all[RANKS] = {0, 1, 2, 3}, some[3] = {3, 0, 2};
    iris_group_t *group = NULL;
    int n = iris_num_ranks(iris), is_member = iris_rank(iris) != 1;
    float *memory;

    CHECK_OK(iris_calloc(iris, 2 * MOST, sizeof *memory, (void **)&memory));
    CHECK_EQUAL(check_group(iris, NULL, all, n, memory), 0);
    if (n < RANKS) {
        return iris_barrier(iris, NULL, NULL);
    }
    CHECK_OK(iris_group_create(iris, some, is_member ? 3 : 0, &group));
    if (is_member) {
        CHECK_EQUAL(check_group(iris, group, some, 3, memory), 0);
        CHECK_OK(iris_group_destroy(iris, group));
    }
    return iris_barrier(iris, NULL, NULL);
}

/* Members that differ are told, and what the workspace then is. */
static int differ_body(iris_t *iris, void *arg)
{
    size_t count = iris_rank(iris) == 3 ? 20 : 10;
    float *in, *out;
    iris_status_t status;

    CHECK_OK(iris_calloc(iris, 40, sizeof *in, (void **)&in));
    out = in + 20;
    for (int i = 0; i < 2; i++) {
        /* A GPU's kernel may end before the call does. */
        status = iris_all_reduce(iris, in, out, count, IRIS_DTYPE_F32,
                                 IRIS_REDUCE_SUM, NULL);
        if (status == IRIS_OK) {
            status = iris_stream_synchronize(iris, NULL);
        }
        CHECK_STATUS(status, i == 0 ? IRIS_ERR_MISMATCH : IRIS_ERR_INVALID);
        CHECK_OK(iris_clear_error(iris));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        count = 10;
    }
    return 0;
}

static TEST(members_of_several_nodes_that_differ_are_told)
{
    setenv("IRIS_NODES", "2", 1);
    harness_run(RANKS, differ_body, NULL);
    unsetenv("IRIS_NODES");
}

/* One node is what the others are held to. */
static TEST(sums_have_the_same_bits_on_any_nodes)
{
    static const char *const nodes[] = {"1", "2", "3", "4"};

    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        setenv("IRIS_NODES", nodes[i], 1);
        if (i < 2) {
            harness_run(2, ccl_body, NULL);
        }
        harness_run(RANKS, ccl_body, NULL);
    }
    unsetenv("IRIS_NODES");
}

TEST_GROUP(rank);
