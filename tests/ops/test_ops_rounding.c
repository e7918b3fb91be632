/* SPDX-License-Identifier: MIT
 *
 * Products are sums in f32 that are rounded once, whichever library computes
 * them: each element is within half a unit in the last place, and the error of
 * a sum in f32, of the product in f64.
 */
#include "config.h"

#include "ops/element.h"
#include "support/harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define MOST_K 8192
#define MOST (64 * MOST_K) /* elements of a matrix */

struct size {
    int64_t m, n, k;
};

/* Few rows and a large K, for which libraries add parts of a sum. */
static const struct size sizes[] = {{2, 64, 64},    {2, 8, MOST_K},
                                    {16, 16, 4096}, {33, 40, 1000},
                                    {64, 64, 2048}, {7, 5, 3}};
#define NUM_SIZES (sizeof sizes / sizeof sizes[0])

struct board {
    iris_t *iris;
    struct size size;
    iris_dtype_t dtype;
    char *a, *b, *bias, *out; /* on the heap */
    float *values[3];         /* of a, b and the bias */
    char *read;
    iris_tensor_t tensors[4];
    struct iris_ops_options options;
};

/* Numbers from -1 to 1 that the type has, the same on all ranks. */
static int fill_matrix(struct board *board, int which, char *heap, size_t first,
                       size_t count)
{
    uint32_t state = 12345 + 7919 * (uint32_t)which;

    for (size_t i = 0; i < MOST; i++) {
        state = state * 1664525 + 1013904223;
        put(board->read, board->dtype, (int64_t)i,
            (float)(int32_t)state / 2147483648.0F);
        board->values[which][i] = get(board->read, board->dtype, (int64_t)i);
    }
    CHECK_OK(harness_write(board->iris, heap,
                           board->read + first * iris_dtype_size(board->dtype),
                           count * iris_dtype_size(board->dtype)));
    return 0;
}

static iris_tensor_t shape_matrix(const struct board *board, char *data,
                                  int64_t rows, int64_t columns)
{
    iris_tensor_t tensor = {.data = data,
                            .dtype = board->dtype,
                            .ndim = 2,
                            .shape = {rows, columns},
                            .strides = {columns, 1}};

    return tensor;
}

/* Half a unit in the last place of a number of this size. */
static double half_unit(iris_dtype_t dtype, double value)
{
    int bits = dtype == IRIS_DTYPE_F16 ? 11 : dtype == IRIS_DTYPE_BF16 ? 8 : 24;
    int least = dtype == IRIS_DTYPE_F16 ? -14 : -126, exponent;

    (void)frexp(value, &exponent);
    exponent = exponent - 1 < least ? least : exponent - 1;
    return ldexp(1, exponent - bits);
}

static int check_element(const struct board *board, int64_t i, int64_t j)
{
    const float *a = board->values[0], *b = board->values[1];
    double sum = (double)board->values[2][j], sizes_of = fabs(sum), error, most;
    float got =
        get(board->read, board->dtype, (int64_t)(i * board->size.n + j));

    for (int64_t k = 0; k < board->size.k; k++) {
        double one =
            (double)a[i * board->size.k + k] * (double)b[k * board->size.n + j];

        sum += one;
        sizes_of += fabs(one);
    }
    /* k + 1 sums, each rounded to 24 bits; a GPU's units may cut instead. */
    error = (double)(board->size.k + 1) * sizes_of * 0x1p-23;
    most = error + half_unit(board->dtype, fabs(sum) + error);
    if (fabs((double)got - sum) <= most) {
        return 0;
    }
    fprintf(
        stderr,
        "%lld x %lld x %lld of %s, row %lld, column %lld: %.9g is %.3g from "
        "%.12g, more than %.3g\n",
        (long long)board->size.m, (long long)board->size.n,
        (long long)board->size.k, iris_dtype_name(board->dtype), (long long)i,
        (long long)j, (double)got, fabs((double)got - sum), sum, most);
    return 1;
}

static int check_size(struct board *board)
{
    struct size size = board->size;
    int64_t rank = iris_rank(board->iris), ranks = iris_num_ranks(board->iris);
    int64_t more = size.m % ranks, rows = size.m / ranks + (rank < more);
    int64_t first = size.m / ranks * rank + (rank < more ? rank : more);
    iris_tensor_t a = shape_matrix(board, board->a, rows, size.k);
    iris_tensor_t b = shape_matrix(board, board->b, size.k, size.n);
    iris_tensor_t bias = shape_matrix(board, board->bias, size.n, 1);
    iris_tensor_t out = shape_matrix(board, board->out, size.m, size.n);
    int failed = 0;

    bias.ndim = 1;
    bias.strides[0] = 1;
    board->options.bias = &bias;
    CHECK_EQUAL(fill_matrix(board, 0, board->a, (size_t)(first * size.k),
                            (size_t)(rows * size.k)),
                0);
    CHECK_EQUAL(fill_matrix(board, 1, board->b, 0, (size_t)(size.k * size.n)),
                0);
    CHECK_EQUAL(fill_matrix(board, 2, board->bias, 0, (size_t)size.n), 0);
    CHECK_OK(
        iris_all_gather_matmul(board->iris, &a, &b, &out, &board->options));
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    CHECK_OK(harness_read(board->iris, board->read, board->out,
                          (size_t)(size.m * size.n) *
                              iris_dtype_size(board->dtype)));
    for (int64_t i = 0; i < size.m * size.n && !failed; i++) {
        failed = check_element(board, i / size.n, i % size.n);
    }
    return failed;
}

static RANK_TEST(products_are_rounded_once, 1, 2)
{
    static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                          IRIS_DTYPE_BF16};
    struct board board = {.iris = iris};
    char **heaps[] = {&board.a, &board.b, &board.bias, &board.out};
    int failed = 0;

    iris_ops_options_init(&board.options);
    for (int i = 0; i < 4; i++) {
        CHECK_OK(iris_malloc(iris, MOST * sizeof(float), (void **)heaps[i]));
    }
    for (int i = 0; i < 3; i++) {
        board.values[i] = malloc(MOST * sizeof(float));
    }
    board.read = malloc(MOST * sizeof(float));
    for (size_t i = 0; i < 3 * NUM_SIZES && !failed; i++) {
        board.dtype = dtypes[i % 3];
        board.size = sizes[i / 3];
        failed = check_size(&board);
    }
    for (int i = 0; i < 3; i++) {
        free(board.values[i]);
    }
    free(board.read);
    return failed;
}

/* By the library that is there, or by the plain loop. */
TEST_GROUP(rank);
