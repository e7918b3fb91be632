/* SPDX-License-Identifier: MIT
 *
 * Products by a BLAS library: within the type's bound of what they should be,
 * and of the same bits however the rows are cut; what a library that is not
 * there is.
 */
#include "config.h"

#include "ops/element.h"
#include "support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A product, and where its matrices are on the heap. */
struct board {
    iris_t *iris;
    iris_dtype_t dtype;
    int64_t m, n, k;
    char *memory;
    char *host; /* as large */
    iris_tensor_t a, b, bias, out, alone;
    struct iris_ops_options options; /* of all ranks */
    struct iris_ops_options self;    /* of this one by itself */
};

/* Where matrices begin, in bytes: enough for 521 rows of 100 floats. */
#define REGION ((size_t)256 << 10)
#define REGIONS 5

/* Between -1 and 1, of as many bits as a float has. */
static float number(uint64_t seed)
{
    seed = (seed + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    seed = (seed ^ seed >> 29) * 0x94d049bb133111ebu;
    return ((float)(seed >> 40) - 0x1p23f) * 0x1p-23f;
}

/* Region `at` as a matrix of numbers that `seed` tells apart. */
static iris_tensor_t fill(struct board *board, int at, int64_t rows,
                          int64_t columns, uint64_t seed)
{
    char *host = board->host + (size_t)at * REGION;
    iris_tensor_t tensor = {.data = board->memory + (size_t)at * REGION,
                            .dtype = board->dtype,
                            .ndim = 2,
                            .shape = {rows, columns},
                            .strides = {columns, 1}};

    for (int64_t i = 0; i < rows * columns; i++) {
        put(host, board->dtype, i, number(seed << 32 | (uint64_t)i));
    }
    return tensor;
}

static int open_board(struct board *board, int with_bias, uint64_t seed)
{
    CHECK((size_t)(board->m * (board->k + board->n)) * sizeof(float) <
          2 * REGION);
    board->a = fill(board, 0, board->m, board->k, seed);
    board->b = fill(board, 1, board->k, board->n, 77);
    board->bias = fill(board, 2, 1, board->n, 78);
    board->out = fill(board, 3, board->m, board->n, 79);
    board->alone = fill(board, 4, board->m, board->n, 80);
    board->bias.ndim = 1;
    board->bias.shape[0] = board->n;
    board->bias.strides[0] = 1;
    board->options.bias = with_bias ? &board->bias : NULL;
    board->self.bias = board->options.bias;
    CHECK_OK(harness_write(board->iris, board->memory, board->host,
                           REGIONS * REGION));
    return 0;
}

static iris_tensor_t rows_of(iris_tensor_t tensor, int64_t begin, int64_t rows)
{
    tensor.data =
        (char *)tensor.data +
        begin * tensor.strides[0] * (int64_t)iris_dtype_size(tensor.dtype);
    tensor.shape[0] = rows;
    return tensor;
}

static int64_t share_begin(int64_t rows, int64_t n, int64_t i)
{
    int64_t more = rows % n;

    return rows / n * i + (i < more ? i : more);
}

static int64_t share_rows(int64_t rows, int64_t n, int64_t i)
{
    return share_begin(rows, n, i + 1) - share_begin(rows, n, i);
}

/* A GPU's library does not promise that a row has the same bits in a product of
 * other rows: its results may differ in the last places. */
static int is_close(const struct board *board, const char *one,
                    const char *other, int64_t count)
{
    const char *library = getenv("IRIS_BLAS");
    double unit = board->dtype == IRIS_DTYPE_F32   ? 0x1p-24
                  : board->dtype == IRIS_DTYPE_F16 ? 0x1p-11
                                                   : 0x1p-8;
    double most = 0, apart = 0;

    if (library == NULL || strstr(library, "blaslt") == NULL) {
        return 0;
    }
    for (int64_t i = 0; i < count; i++) {
        double x = get(one, board->dtype, i), y = get(other, board->dtype, i);

        most = fmax(most, fmax(fabs(x), fabs(y)));
        apart = fmax(apart, fabs(x - y));
    }
    return apart <= (4 * unit + (double)board->k * 0x1p-22) * most;
}

/* Whether `rows` rows of both from row `begin` on have the same bits. */
static int same_bits(struct board *board, const iris_tensor_t *out,
                     int64_t begin)
{
    size_t row = (size_t)board->n * iris_dtype_size(board->dtype);
    size_t bytes = (size_t)out->shape[0] * row;
    char *one = malloc(2 * REGION), *other = one + REGION;
    int same;

    CHECK_OK(harness_read(board->iris, one, out->data, bytes));
    CHECK_OK(harness_read(board->iris, other,
                          (char *)board->alone.data + (size_t)begin * row,
                          bytes));
    same = memcmp(one, other, bytes) == 0 ||
           is_close(board, one, other, out->shape[0] * board->n);
    free(one);
    if (!same) {
        print_error("%s, m %lld, n %lld, k %lld, rows from %lld on differ\n",
                    iris_dtype_name(board->dtype), (long long)board->m,
                    (long long)board->n, (long long)board->k, (long long)begin);
    }
    CHECK(same);
    return 0;
}

/* ---- How near ---- */

/* The product of this rank alone is what it should be: each sum in f32, in any
 * order, then rounded once. */
static int is_near(struct board *board)
{
    double unit = board->dtype == IRIS_DTYPE_F32   ? 0x1p-24
                  : board->dtype == IRIS_DTYPE_F16 ? 0x1p-11
                                                   : 0x1p-8;
    const char *a = board->host, *b = board->host + REGION;
    char *seen = malloc(REGION);

    CHECK_OK(harness_read(board->iris, seen, board->alone.data, REGION));
    for (int64_t at = 0; at < board->m * board->n; at++) {
        int64_t i = at / board->n, j = at % board->n;
        double sum = 0, sizes = 0, bound;

        for (int64_t k = 0; k < board->k; k++) {
            double one = (double)get(a, board->dtype, i * board->k + k) *
                         (double)get(b, board->dtype, k * board->n + j);

            sum += one;
            sizes += fabs(one);
        }
        if (board->options.bias != NULL) {
            double one = get(board->host + 2 * REGION, board->dtype, j);

            sum += one;
            sizes += fabs(one);
        }
        bound = (double)(board->k + 2) * 0x1p-24 * sizes + unit * fabs(sum) +
                0x1p-25;
        CHECK(fabs((double)get(seen, board->dtype, at) - sum) <= bound);
    }
    free(seen);
    return 0;
}

/* ---- Fused and not ---- */

static int multiply_alone(struct board *board, int64_t begin, int64_t rows)
{
    iris_tensor_t a = rows_of(board->a, begin, rows);
    iris_tensor_t out = rows_of(board->alone, begin, rows);

    if (rows > 0) {
        CHECK_OK(iris_matmul_all_reduce(board->iris, &a, &board->b, &out,
                                        &board->self));
    }
    return 0;
}

/* Ops that gather: all ranks' matrices are shares of the same. */
static int check_gather(struct board *board)
{
    int64_t n = iris_num_ranks(board->iris), r = iris_rank(board->iris);
    iris_tensor_t a = rows_of(board->a, share_begin(board->m, n, r),
                              share_rows(board->m, n, r));

    CHECK_EQUAL(multiply_alone(board, 0, board->m), 0);
    CHECK_OK(iris_all_gather_matmul(board->iris, &a, &board->b, &board->out,
                                    &board->options));
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    CHECK_EQUAL(same_bits(board, &board->out, 0), 0);
    CHECK_EQUAL(is_near(board), 0);
    for (int64_t i = 0; i < n; i++) {
        CHECK_EQUAL(multiply_alone(board, share_begin(board->m, n, i),
                                   share_rows(board->m, n, i)),
                    0);
    }
    CHECK_OK(iris_matmul_all_gather(board->iris, &a, &board->b, &board->out,
                                    &board->options));
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    return same_bits(board, &board->out, 0);
}

/* Ops that add: each rank has a matrix of its own, and rank 0 the bias. */
static int check_sum(struct board *board)
{
    int64_t n = iris_num_ranks(board->iris), r = iris_rank(board->iris);
    iris_tensor_t out = rows_of(board->out, 0, share_rows(board->m, n, r));

    board->self.bias = r == 0 ? board->options.bias : NULL;
    CHECK_EQUAL(multiply_alone(board, 0, board->m), 0);
    CHECK_OK(iris_all_reduce(board->iris, board->alone.data, board->alone.data,
                             (size_t)(board->m * board->n), board->dtype,
                             IRIS_REDUCE_SUM, NULL));
    CHECK_OK(iris_matmul_reduce_scatter(board->iris, &board->a, &board->b, &out,
                                        &board->options));
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    CHECK_EQUAL(same_bits(board, &out, share_begin(board->m, n, r)), 0);
    CHECK_OK(iris_matmul_all_reduce(board->iris, &board->a, &board->b,
                                    &board->out, &board->options));
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    return same_bits(board, &board->out, 0);
}

/* Rows that end in a block of rows, and are in several. */
static const int64_t shapes[][3] = {
    {1, 33, 700},   {7, 1, 300},    {67, 64, 65},  {9, 300, 17},
    {521, 37, 100}, {257, 16, 200}, {700, 16, 90},
};
#define NUM_SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

/* Rank threads that share a GPU: a library's kernels are loaded at their first
 * launch, which waits for all that run. So each rank multiplies once as it will
 * later, while no kernel waits for another rank. */
static int warm_up(struct board *board, const iris_dtype_t *dtypes)
{
    int64_t n = iris_num_ranks(board->iris);

    for (int turn = 0; turn < NUM_SHAPES * 6; turn++) {
        board->m = shapes[turn / 6][0];
        board->n = shapes[turn / 6][1];
        board->k = shapes[turn / 6][2];
        board->dtype = dtypes[turn % 3];
        CHECK_EQUAL(open_board(board, turn % 6 < 3, 1), 0);
        CHECK_EQUAL(multiply_alone(board, 0, board->m), 0);
        for (int64_t i = 0; i < n; i++) {
            CHECK_EQUAL(multiply_alone(board, share_begin(board->m, n, i),
                                       share_rows(board->m, n, i)),
                        0);
        }
    }
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    CHECK_OK(iris_barrier(board->iris, NULL, NULL));
    return 0;
}

static int bits_body(iris_t *iris, void *arg)
{
    static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                          IRIS_DTYPE_BF16};
    struct board board = {.iris = iris, .host = calloc(REGIONS, REGION)};
    int self = iris_rank(iris);

    iris_ops_options_init(&board.options);
    iris_ops_options_init(&board.self);
    CHECK_OK(iris_malloc(iris, REGIONS * REGION, (void **)&board.memory));
    CHECK_OK(iris_ccl_prepare(iris));
    CHECK_OK(iris_group_create(iris, &self, 1, &board.self.group));
    if (harness_on_gpu(iris)) {
        CHECK_EQUAL(warm_up(&board, dtypes), 0);
    }
    for (int turn = 0; turn < NUM_SHAPES * 3; turn++) {
        board.m = shapes[turn / 3][0];
        board.n = shapes[turn / 3][1];
        board.k = shapes[turn / 3][2];
        board.dtype = dtypes[turn % 3];
        CHECK_EQUAL(open_board(&board, turn % 2, 1), 0);
        CHECK_EQUAL(check_gather(&board), 0);
        CHECK_EQUAL(open_board(&board, turn % 2, 2 + (uint64_t)self), 0);
        CHECK_EQUAL(check_sum(&board), 0);
    }
    CHECK_OK(iris_group_destroy(iris, board.self.group));
    free(board.host);
    return iris_free(iris, board.memory) == IRIS_OK ? 0 : -1;
}

static TEST(fused_has_the_bits_of_product_and_collective)
{
    if (!HAVE_CBLAS && !HAVE_CUBLASLT && !HAVE_HIPBLASLT) {
        skip(); /* the plain loop has its own test */
    }
    harness_run_all(bits_body, NULL);
    harness_run(3, bits_body, NULL);
}

/* ---- Libraries that are not there ---- */

struct call {
    iris_status_t status;
    const char *message;
};

static int one_product_body(iris_t *iris, void *arg)
{
    const struct call *call = arg;
    struct board board = {.iris = iris,
                          .dtype = IRIS_DTYPE_F32,
                          .m = 5,
                          .n = 6,
                          .k = 7,
                          .host = calloc(REGIONS, REGION)};

    iris_ops_options_init(&board.options);
    iris_ops_options_init(&board.self);
    CHECK_OK(iris_malloc(iris, REGIONS * REGION, (void **)&board.memory));
    CHECK_EQUAL(open_board(&board, 1, 1), 0);
    CHECK_STATUS(iris_matmul_all_reduce(iris, &board.a, &board.b, &board.alone,
                                        &board.self),
                 call->status);
    if (call->message != NULL) {
        CHECK_MESSAGE(call->message);
    } else {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_EQUAL(is_near(&board), 0);
    }
    free(board.host);
    return iris_free(iris, board.memory) == IRIS_OK ? 0 : -1;
}

/* harness_run() on the CPU, with these settings. */
static int run_with(const char *blas, const char *folder, struct call *call)
{
    static const char *const names[] = {"IRIS_BLAS", "IRIS_MODULE_DIR",
                                        "IRIS_BACKEND", "IRIS_SIM_DEVICE"};
    const char *values[] = {blas, folder, "sim", "cpu"};
    char *before[4];
    int ran;

    for (int i = 0; i < 4; i++) {
        before[i] = getenv(names[i]) == NULL ? NULL : strdup(getenv(names[i]));
        if (values[i] != NULL) {
            setenv(names[i], values[i], 1);
        }
    }
    ran = harness_run(1, one_product_body, call);
    for (int i = 0; i < 4; i++) {
        unsetenv(names[i]);
        if (before[i] != NULL) {
            setenv(names[i], before[i], 1);
        }
        free(before[i]);
    }
    return ran;
}

/* First of all tests: a module that is loaded stays. */
static TEST(without_its_module_the_plain_loop_multiplies)
{
    struct call fine = {IRIS_OK, NULL};
    struct harness_capture capture;
    char *level = strdup(getenv("IRIS_LOG_LEVEL"));
    int ran;

    setenv("IRIS_LOG_LEVEL", "info", 1);
    harness_capture(&capture);
    ran = run_with("auto", harness_folder(), &fine);
    harness_captured(&capture);
    assert_true(!ran || strstr(capture.text, "take the library's own loop"));
    free(capture.text);
    harness_capture(&capture);
    run_with("auto", harness_folder(), &fine);
    harness_captured(&capture);
    assert_null(strstr(capture.text, "take the library's own loop"));
    free(capture.text);
    setenv("IRIS_LOG_LEVEL", level, 1);
    free(level);
}

static TEST(a_library_that_is_asked_for_has_to_be_there)
{
    struct call missing = {IRIS_ERR_BACKEND, "IRIS_BLAS=cblas cannot be used"};
    struct call wrong = {IRIS_ERR_BACKEND, "it is not for this rank's device"};

    run_with("cblas", harness_folder(), &missing);
    run_with("cublaslt", NULL, &wrong);
}

static TEST(a_library_is_found_by_name)
{
    struct call fine = {IRIS_OK, NULL};

    if (!HAVE_CBLAS) {
        skip(); /* configure found none */
    }
    run_with("cblas", NULL, &fine);
}

TEST_GROUP(rank, standard);
