/* SPDX-License-Identifier: MIT
 *
 * Collectives of matrices: each element of each row gets where it belongs, and
 * what lies between rows stays as it was.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

#define WORDS 80000
#define UNTOUCHED 0x5a5a5a5au

enum op { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL, BROADCAST, OWN };

struct shape {
    size_t rows;
    size_t count;
    size_t in_gap; /* elements between rows */
    size_t out_gap;
    int distribution;
    int variant;
    int cus;
};

/* Element (row, column) of a rank's input. */
static uint32_t element(int rank, size_t row, size_t column)
{
    return (uint32_t)(rank * 1000003) + (uint32_t)row * 8191u +
           (uint32_t)column * 7u + 1u;
}

static uint32_t sum(int num_ranks, size_t row, size_t column)
{
    uint32_t all = 0;

    for (int r = 0; r < num_ranks; r++) {
        all += element(r, row, column);
    }
    return all;
}

/* Whether this rank writes a row. Of blocks, the first (rows mod ranks) have
 * one row more than the others. */
static int is_own(const struct shape *shape, size_t rank, size_t ranks,
                  size_t row)
{
    size_t each = shape->rows / ranks, extra = shape->rows % ranks;

    if (shape->distribution == IRIS_CCL_STRIDING) {
        return row % ranks == rank;
    }
    return (row < extra * (each + 1) ? row / (each + 1)
                                     : (row - extra) / each) == rank;
}

/* What element (row, column) of out has to be. */
static uint32_t expected(const iris_t *iris, const struct shape *shape,
                         enum op op, size_t row, size_t column)
{
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    size_t rows = shape->rows, count = shape->count;

    switch (op) {
    case ALL_REDUCE:
        return sum(num_ranks, row, column);
    case ALL_GATHER:
        return element((int)(row / rows), row % rows, column);
    case REDUCE_SCATTER:
        return sum(num_ranks, (size_t)rank * rows + row, column);
    case ALL_TO_ALL:
        return element((int)(column / count), row,
                       (size_t)rank * count + column % count);
    case BROADCAST:
        return element(num_ranks - 1, row, column);
    default:
        return is_own(shape, (size_t)rank, (size_t)num_ranks, row)
                   ? sum(num_ranks, row, column)
                   : UNTOUCHED;
    }
}

static iris_status_t call(iris_t *iris, enum op op, const struct shape *shape,
                          const uint32_t *in, uint32_t *out)
{
    size_t width = op == ALL_TO_ALL
                       ? shape->count * (size_t)iris_num_ranks(iris)
                       : shape->count;
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.rows = shape->rows;
    options.in_stride = shape->in_gap == 0 ? 0 : width + shape->in_gap;
    options.out_stride = shape->out_gap == 0 ? 0 : width + shape->out_gap;
    options.distribution = (iris_ccl_distribution_t)shape->distribution;
    options.num_cus = shape->cus;
    options.own_rows = op == OWN;
    switch (op) {
    case ALL_REDUCE:
        return iris_all_reduce(iris, in, out, shape->count, IRIS_DTYPE_U32,
                               IRIS_REDUCE_SUM, &options);
    case ALL_GATHER:
        options.all_gather = (iris_ccl_variant_t)shape->variant;
        return iris_all_gather(iris, in, out, shape->count, IRIS_DTYPE_U32,
                               &options);
    case ALL_TO_ALL:
        options.all_to_all = (iris_ccl_variant_t)shape->variant;
        return iris_all_to_all(iris, in, out, shape->count, IRIS_DTYPE_U32,
                               &options);
    case BROADCAST:
        options.broadcast = (iris_ccl_variant_t)shape->variant;
        return iris_ccl_broadcast(iris, in, out, shape->count, IRIS_DTYPE_U32,
                                  iris_num_ranks(iris) - 1, &options);
    default:
        return iris_reduce_scatter(iris, in, out, shape->count, IRIS_DTYPE_U32,
                                   IRIS_REDUCE_SUM, &options);
    }
}

struct memory {
    uint32_t *in; /* on the heap */
    uint32_t *out;
    uint32_t *host;
};

static int try(iris_t *iris, struct memory *memory, enum op op,
               const struct shape *shape)
{
    size_t ranks = (size_t)iris_num_ranks(iris);
    size_t width = op == ALL_TO_ALL ? shape->count * ranks : shape->count;
    size_t in_stride = width + shape->in_gap;
    size_t out_stride = width + shape->out_gap;
    size_t out_rows = shape->rows * (op == ALL_GATHER ? ranks : 1);
    uint32_t *host = memory->host;

    memset(host, 0x5a, WORDS * sizeof *host);
    CHECK_OK(harness_write(iris, memory->out, host, WORDS * sizeof *host));
    for (size_t i = 0; i < WORDS; i++) {
        host[i] = element(iris_rank(iris), i / in_stride, i % in_stride);
    }
    CHECK_OK(harness_write(iris, memory->in, host, WORDS * sizeof *host));
    CHECK_OK(iris_barrier(iris, NULL, NULL)); /* push: outputs are ready */
    CHECK_OK(call(iris, op, shape, memory->in, memory->out));
    CHECK_OK(harness_read(iris, host, memory->out, WORDS * sizeof *host));
    for (size_t i = 0; i < WORDS; i++) {
        size_t row = i / out_stride, column = i % out_stride;

        CHECK_EQUAL(host[i], row < out_rows && column < width
                                 ? expected(iris, shape, op, row, column)
                                 : UNTOUCHED);
    }
    return 0;
}

static int shapes_body(iris_t *iris, void *arg)
{
    static const struct shape shapes[] = {
        {1, 1, 0, 0, 0, 0, 0},
        {7, 33, 0, 5, IRIS_CCL_STRIDING, IRIS_CCL_PUSH, 2},
        {3, 257, 11, 0, IRIS_CCL_BLOCK, IRIS_CCL_PULL, 1},
        {16, 64, 64, 64, IRIS_CCL_STRIDING, 0, 0},
        {2, 600, 3, 9, 0, IRIS_CCL_PUSH, 3},
        {11, 9, 0, 0, IRIS_CCL_BLOCK, IRIS_CCL_PULL, 0},
        {2, 4200, 3, 9, IRIS_CCL_STRIDING, 0, 0}, /* one by one on nodes */
    };
    struct memory memory;

    memory.host = malloc(WORDS * sizeof *memory.host);
    CHECK(memory.host != NULL);
    CHECK_OK(iris_malloc(iris, WORDS * 4, (void **)&memory.in));
    CHECK_OK(iris_malloc(iris, WORDS * 4, (void **)&memory.out));
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (int op = ALL_REDUCE; op <= OWN; op++) {
            CHECK_EQUAL(try(iris, &memory, (enum op)op, &shapes[i]), 0);
        }
    }
    free(memory.host);
    return 0;
}

static TEST(rows_get_where_they_belong)
{
    harness_run_all(shapes_body, NULL);
    harness_run(3, shapes_body, NULL);
}

static TEST(rows_reach_ranks_of_other_nodes)
{
    setenv("IRIS_NODES", "2", 1);
    harness_run(4, shapes_body, NULL);
    setenv("IRIS_NODES", "3", 1);
    harness_run(3, shapes_body, NULL);
    unsetenv("IRIS_NODES");
}

static RANK_TEST(what_is_out_of_range_says_so, 2)
{
    struct iris_ccl_options options;
    uint32_t *words;

    CHECK_OK(iris_malloc(iris, 4096, (void **)&words));
#define REFUSED(argument, remedy, ...)                                     \
    iris_ccl_options_init(&options);                                       \
    __VA_ARGS__;                                                           \
    CHECK_BAD(iris,                                                        \
              iris_all_reduce(iris, words, words + 512, 8, IRIS_DTYPE_U32, \
                              IRIS_REDUCE_SUM, &options),                  \
              IRIS_ERR_INVALID, argument, remedy)
    REFUSED("num_rings is 3", "pass 0 to 2", options.num_rings = 3);
    REFUSED("own_rows is -1", "pass 0 to 1", options.own_rows = -1);
    REFUSED("distribution is 3", "pass 0 to 2",
            options.distribution = (iris_ccl_distribution_t)3);
    REFUSED("in_stride", "pass rows", options.in_stride = 8);
    REFUSED("in_stride is 7", "8 elements", options.rows = 2,
            options.in_stride = 7);
    REFUSED("rows is", "check rows", options.rows = SIZE_MAX);
    REFUSED("in", "heap", options.rows = (size_t)1 << 30);
    REFUSED("variant ring", "without rows", options.rows = 2,
            options.all_reduce = IRIS_CCL_RING);
#undef REFUSED
    return 0;
}

/* Members that do not agree about strides learn it. */
static RANK_TEST(members_have_the_same_strides, 2)
{
    struct iris_ccl_options options;
    uint32_t *words;

    CHECK_OK(iris_calloc(iris, 2, 4096, (void **)&words));
    iris_ccl_options_init(&options);
    options.rows = 4;
    options.out_stride = 8 + (size_t)iris_rank(iris);
    CHECK_OK(iris_all_reduce(iris, words, words + 1024, 8, IRIS_DTYPE_U32,
                             IRIS_REDUCE_SUM, &options));
    CHECK_BAD(iris, iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH,
              "different collective calls", "the same calls");
    CHECK_OK(iris_clear_error(iris));
    return 0;
}

TEST_GROUP(rank);
