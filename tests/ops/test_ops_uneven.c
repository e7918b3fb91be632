/* SPDX-License-Identifier: MIT
 *
 * Rows that the members do not divide: a CPU library multiplies each row once,
 * in as many calls as for the product alone. The library is a fake that gives
 * the number of the call as every element.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>

#define ROWS_MOST 700
#define BLOCK_ROWS 256 /* as of product.c: rows of one call */
#define COLUMNS 3
#define DEPTH 2

struct board {
    iris_t *iris;
    float *a, *b, *out;
    int64_t members;
    int64_t calls; /* of the library on each rank, so far */
};

static iris_tensor_t matrix(float *data, int64_t rows, int64_t columns)
{
    iris_tensor_t tensor = {.data = data,
                            .dtype = IRIS_DTYPE_F32,
                            .ndim = 2,
                            .shape = {rows, columns},
                            .strides = {columns, 1}};

    return tensor;
}

static int64_t share_begin(const struct board *board, int64_t rows,
                           int64_t member)
{
    int64_t more = rows % board->members;

    return rows / board->members * member + (member < more ? member : more);
}

/* Whether each row of `out`, from row `begin` of the product on, is the sum of
 * `sums` products of the call that it has to be in. */
static int has_calls(struct board *board, int64_t begin, int64_t rows,
                     int64_t sums)
{
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    for (int64_t i = 0; i < rows * COLUMNS; i++) {
        int64_t row = begin + i / COLUMNS;
        int64_t call = board->calls + 1 + row / BLOCK_ROWS;

        CHECK_EQUAL((int64_t)board->out[i], sums * call);
    }
    return 0;
}

static int check_rows(struct board *board, int64_t m)
{
    int64_t self = iris_rank(board->iris);
    int64_t begin = share_begin(board, m, self);
    int64_t rows = share_begin(board, m, self + 1) - begin;
    iris_tensor_t a = matrix(board->a, m, DEPTH);
    iris_tensor_t b = matrix(board->b, DEPTH, COLUMNS);
    iris_tensor_t out = matrix(board->out, rows, COLUMNS);

    CHECK_OK(iris_matmul_reduce_scatter(board->iris, &a, &b, &out, NULL));
    CHECK_EQUAL(has_calls(board, begin, rows, board->members), 0);
    board->calls += (m + BLOCK_ROWS - 1) / BLOCK_ROWS;
    a.shape[0] = rows;
    out.shape[0] = m;
    CHECK_OK(iris_all_gather_matmul(board->iris, &a, &b, &out, NULL));
    CHECK_EQUAL(has_calls(board, 0, m, 1), 0);
    board->calls += (m + BLOCK_ROWS - 1) / BLOCK_ROWS;
    return 0;
}

static int rows_body(iris_t *iris, void *arg)
{
    static const int64_t rows[] = {1, 2, 3, 5, 9, 16, 255, 257, ROWS_MOST};
    struct board board = {.iris = iris, .members = iris_num_ranks(iris)};

    CHECK_OK(iris_calloc(iris, ROWS_MOST * DEPTH, sizeof *board.a,
                         (void **)&board.a));
    CHECK_OK(
        iris_calloc(iris, DEPTH * COLUMNS, sizeof *board.b, (void **)&board.b));
    CHECK_OK(iris_calloc(iris, ROWS_MOST * COLUMNS, sizeof *board.out,
                         (void **)&board.out));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        CHECK_EQUAL(check_rows(&board, rows[i]), 0);
    }
    return 0;
}

static TEST(each_row_is_multiplied_once)
{
    static const int members[] = {2, 3, 4, 8};

    if (!HAVE_CBLAS) {
        skip(); /* a library is asked for only if there is one */
    }
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        harness_run(members[i], rows_body, NULL);
    }
}

static int set_up(void **state)
{
    setenv("IRIS_BLAS", "cblas", 1);
    setenv("IRIS_MODULE_DIR", FAKE_BLAS_FOLDER, 1);
    return harness_cpu_setup(state);
}

TEST_GROUP_WITH(set_up, harness_teardown, unit);
