/* SPDX-License-Identifier: MIT
 *
 * The modules of GPU libraries over fakes of them: each is called as its
 * interface wants, on the call's stream, and gives the product.
 */
#include "config.h"

#include "fakeblas/toolkit.h"

#include <iris/device/core/half.h>

#include <string.h>

#include "ops/internal.h"

/* ---- Products ---- */

#define SIDE 24 /* rows of each matrix in memory, and elements of a row */
#define ELEMENTS (SIDE * SIDE)
enum { A, B, BIAS, OUT, MATRICES };

struct board {
    iris_t *iris;
    const struct library *library;
    iris_stream_t *stream;
    char *memory;
    uint32_t host[MATRICES * ELEMENTS]; /* of f32, or of half as many bytes */
    iris_dtype_t dtype;
    iris_tensor_t a, b, bias, out;
    struct iris_blas_gaps gaps; /* between rows of out */
};

static float get(const struct board *board, int matrix, int64_t at)
{
    const char *data =
        (const char *)board->host +
        (size_t)matrix * ELEMENTS * iris_dtype_size(board->dtype);

    return board->dtype == IRIS_DTYPE_F32
               ? ((const float *)(const void *)data)[at]
           : board->dtype == IRIS_DTYPE_F16
               ? iris_f16_to_f32(((const iris_f16_t *)(const void *)data)[at])
               : iris_bf16_to_f32(
                     ((const iris_bf16_t *)(const void *)data)[at]);
}

static float rounded(iris_dtype_t dtype, float value)
{
    return dtype == IRIS_DTYPE_F32 ? value
           : dtype == IRIS_DTYPE_F16
               ? iris_f16_to_f32(iris_f16_from_f32(value))
               : iris_bf16_to_f32(iris_bf16_from_f32(value));
}

static int fill(struct board *board)
{
    size_t size = iris_dtype_size(board->dtype);

    for (int i = 0; i < MATRICES * ELEMENTS; i++) {
        float value = (float)((i * 7919 + i / 13) % 251 - 125) / 64;

        if (board->dtype == IRIS_DTYPE_F32) {
            memcpy((char *)board->host + (size_t)i * size, &value, size);
        } else {
            uint16_t bits = board->dtype == IRIS_DTYPE_F16
                                ? (uint16_t)iris_f16_from_f32(value).bits
                                : (uint16_t)iris_bf16_from_f32(value).bits;

            memcpy((char *)board->host + (size_t)i * size, &bits, size);
        }
    }
    CHECK_OK(harness_write(board->iris, board->memory, board->host,
                           MATRICES * ELEMENTS * size));
    return 0;
}

static iris_tensor_t view(const struct board *board, int matrix, int64_t rows,
                          int64_t cols, int64_t row, int64_t col)
{
    iris_tensor_t tensor = {.data = board->memory +
                                    (size_t)matrix * ELEMENTS *
                                        iris_dtype_size(board->dtype),
                            .dtype = board->dtype,
                            .ndim = 2,
                            .shape = {rows, cols},
                            .strides = {row, col}};

    return tensor;
}

/* Element by element, in the order of k, rounded once: what every way of
 * multiplying here gives. */
static int is_product(struct board *board, const iris_tensor_t *bias,
                      int by_row)
{
    const iris_tensor_t *a = &board->a, *b = &board->b, *out = &board->out;
    size_t size = iris_dtype_size(board->dtype);
    struct board *read = malloc(sizeof *read);

    *read = *board;
    CHECK_OK(harness_read(board->iris, read->host, board->memory,
                          MATRICES * ELEMENTS * size));
    for (int64_t i = 0; i < out->shape[0]; i++) {
        int64_t place = iris_i_blas_place(board->gaps, i);

        for (int64_t j = 0; j < out->shape[1]; j++) {
            float sum = 0;

            for (int64_t k = 0; k < a->shape[1]; k++) {
                sum += get(board, A, i * a->strides[0] + k * a->strides[1]) *
                       get(board, B, k * b->strides[0] + j * b->strides[1]);
            }
            if (bias != NULL) {
                sum += get(board, BIAS, (by_row ? i : j) * bias->strides[0]);
            }
            CHECK(get(read, OUT, place * out->strides[0] + j) ==
                  rounded(board->dtype, sum));
        }
    }
    free(read);
    return 0;
}

static int multiply(struct board *board, const iris_tensor_t *bias, int by_row)
{
    struct iris_ops_options options;

    iris_ops_options_init(&options);
    options.stream = board->stream;
    options.bias = bias;
    options.bias_by_row = by_row;
    CHECK_OK(iris_matmul_all_reduce(board->iris, &board->a, &board->b,
                                    &board->out, &options));
    CHECK_OK(iris_stream_synchronize(board->iris, board->stream));
    return is_product(board, bias, by_row);
}

/* The library made one more product, of these matrices as they are. */
static int check_call(struct board *board, int before,
                      const iris_tensor_t *bias, int adds)
{
    const struct fakeblas_seen *now = toolkit_seen(board->library);
    const struct fakeblas_product *last = &now->last;

    CHECK_EQUAL(now->products, before + 1);
    CHECK_EQUAL(last->m, board->out.shape[1]);
    CHECK_EQUAL(last->n, board->out.shape[0]);
    CHECK_EQUAL(last->k, board->a.shape[1]);
    CHECK(last->a == board->b.data && last->b == board->a.data);
    CHECK(last->c == board->out.data && last->d == board->out.data);
    CHECK_EQUAL(last->trans_a, board->b.strides[1] != 1);
    CHECK_EQUAL(last->trans_b, board->a.strides[1] != 1);
    CHECK_EQUAL(last->ldd, board->out.strides[0]);
    CHECK(last->alpha == 1 && last->beta == (float)adds);
    CHECK(last->bias == (bias == NULL || adds ? NULL : bias->data));
    CHECK(now->stream == iris_stream_native(board->iris, board->stream));
    CHECK_EQUAL(now->device, iris_i_device(board->iris)->device_id);
    CHECK_EQUAL(now->workspaces, 0);
    if (strcmp(board->library->name, "cublaslt") == 0) { /* sums in f32 only */
        CHECK_EQUAL(now->reductions, board->dtype == IRIS_DTYPE_F32 ? 7 : 2);
    }
    return 0;
}

/* a, b and out as rows, as columns, and with gaps. */
static int check_strides(struct board *board)
{
    for (int which = 0; which < 8; which++) {
        int64_t gap = which & 1 ? SIDE : 11;
        int before = toolkit_seen(board->library)->products;

        board->a = which & 2 ? view(board, A, 7, 9, 1, gap)
                             : view(board, A, 7, 9, gap, 1);
        board->b = which & 4 ? view(board, B, 9, 5, 1, gap)
                             : view(board, B, 9, 5, gap, 1);
        board->out = view(board, OUT, 7, 5, which & 1 ? SIDE : 5, 1);
        CHECK_EQUAL(multiply(board, NULL, 0), 0);
        CHECK_EQUAL(check_call(board, before, NULL, 0), 0);
    }
    return 0;
}

static int check_bias(struct board *board)
{
    const int64_t strides[] = {1, 2};

    board->a = view(board, A, 7, 9, 9, 1);
    board->b = view(board, B, 9, 5, 5, 1);
    board->out = view(board, OUT, 7, 5, 5, 1);
    for (int which = 0; which < 4; which++) {
        int by_row = which / 2;
        int before = toolkit_seen(board->library)->products;
        int adds = which > 0;

        board->bias = view(board, BIAS, by_row ? 7 : 5, 0, 0, 0);
        board->bias.ndim = 1;
        board->bias.strides[0] = strides[which % 2];
        CHECK_EQUAL(multiply(board, &board->bias, by_row), 0);
        CHECK_EQUAL(check_call(board, before, &board->bias, adds), 0);
    }
    return 0;
}

/* Rows and columns with gaps: the library's own kernel does it. */
static int check_gaps(struct board *board)
{
    int before = toolkit_seen(board->library)->products;

    board->a = view(board, A, 7, 9, 30, 2);
    board->b = view(board, B, 9, 5, 5, 1);
    board->out = view(board, OUT, 7, 5, 5, 1);
    CHECK_EQUAL(multiply(board, NULL, 0), 0);
    CHECK_EQUAL(toolkit_seen(board->library)->products, before);
    return 0;
}

static int check_none(struct board *board)
{
    int before = toolkit_seen(board->library)->products;

    setenv("FAKEBLAS_NONE", "1", 1);
    board->a = view(board, A, 6, 9, 9, 1);
    board->out = view(board, OUT, 6, 5, 5, 1);
    CHECK_EQUAL(multiply(board, NULL, 0), 0);
    unsetenv("FAKEBLAS_NONE");
    CHECK_EQUAL(toolkit_seen(board->library)->products, before);
    return 0;
}

static int check_error(struct board *board)
{
    struct iris_ops_options options;

    iris_ops_options_init(&options);
    options.stream = board->stream;
    board->a = view(board, A, 7, 9, 9, 1);
    board->out = view(board, OUT, 7, 5, 5, 1);
    setenv("FAKEBLAS_FAIL", board->library->product_fails, 1);
    CHECK_STATUS(iris_matmul_all_reduce(board->iris, &board->a, &board->b,
                                        &board->out, &options),
                 IRIS_ERR_DEVICE);
    unsetenv("FAKEBLAS_FAIL");
    CHECK_MESSAGE(board->library->product_error);
    return multiply(board, NULL, 0); /* goes on */
}

/* A whole product's algorithm is that of its parts, and asked for once. */
static int check_parts(struct board *board)
{
    const struct fakeblas_seen *now = toolkit_seen(board->library);
    int heuristics = now->heuristics, products = now->products;
    struct iris_ops_product product;

    board->a = view(board, A, 20, 8, 8, 1);
    board->b = view(board, B, 8, 8, 8, 1);
    board->out = view(board, OUT, 20, 8, 8, 1);
    board->gaps = (struct iris_blas_gaps){.first = 3, .each = 5};
    product = (struct iris_ops_product){
        .a = board->a, .b = board->b, .out = board->out, .gaps = board->gaps};
    CHECK_OK(iris_i_ops_product(board->iris, &product, board->stream));
    CHECK_EQUAL(now->rows, 20);
    CHECK_OK(iris_stream_synchronize(board->iris, board->stream));
    CHECK_EQUAL(now->products, products + 5);
    CHECK_EQUAL(now->heuristics, heuristics + 1);
    CHECK_EQUAL(is_product(board, NULL, 0), 0);
    board->gaps.first = INT64_MAX;
    return 0;
}

/* A captured product runs at each launch, not before. */
static int check_capture(struct board *board)
{
    int before = toolkit_seen(board->library)->products;
    struct iris_ops_product product;
    iris_graph_t *graph;

    board->a = view(board, A, 7, 9, 9, 1);
    board->b = view(board, B, 9, 5, 5, 1);
    board->out = view(board, OUT, 7, 5, 5, 1);
    product = (struct iris_ops_product){
        .a = board->a, .b = board->b, .out = board->out, .gaps = board->gaps};
    CHECK_OK(iris_capture_begin(board->iris, board->stream));
    CHECK_OK(iris_i_ops_product(board->iris, &product, board->stream));
    CHECK_OK(iris_capture_end(board->iris, board->stream, &graph));
    CHECK_EQUAL(toolkit_seen(board->library)->products, before + 1);
    for (int i = 0; i < 3; i++) {
        CHECK_EQUAL(fill(board), 0);
        CHECK_OK(iris_graph_launch(board->iris, graph, board->stream));
        CHECK_OK(iris_stream_synchronize(board->iris, board->stream));
        CHECK_EQUAL(is_product(board, NULL, 0), 0);
    }
    iris_graph_destroy(board->iris, graph);
    return 0;
}

/* Ranks take turns, since all are seen by the same library. */
static int all_body(iris_t *iris, void *arg)
{
    static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                          IRIS_DTYPE_BF16};
    struct board *board = calloc(1, sizeof *board);
    int self = iris_rank(iris);
    int failed = 0;

    board->iris = iris;
    board->gaps.first = INT64_MAX;
    board->library = arg;
    toolkit_be_a_gpu(iris);
    CHECK_OK(iris_malloc(iris, sizeof board->host, (void **)&board->memory));
    CHECK_OK(iris_stream_create(iris, &board->stream));
    for (int turn = 0; turn < iris_num_ranks(iris); turn++) {
        for (int i = 0; i < 3 && turn == self && !failed; i++) {
            board->dtype = dtypes[i];
            failed = fill(board) || check_parts(board) || fill(board) ||
                     check_capture(board);
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    iris_stream_destroy(iris, board->stream);
    CHECK_OK(iris_free(iris, board->memory));
    free(board);
    return failed;
}

/* Alone, since collectives are of all ranks. */
static int alone_body(iris_t *iris, void *arg)
{
    static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                          IRIS_DTYPE_BF16};
    struct board *board = calloc(1, sizeof *board);
    int failed = 0;

    board->iris = iris;
    board->gaps.first = INT64_MAX;
    board->library = arg;
    toolkit_be_a_gpu(iris);
    CHECK_OK(iris_malloc(iris, sizeof board->host, (void **)&board->memory));
    for (int i = 0; i < 6 && !failed; i++) {
        board->dtype = dtypes[i % 3];
        if (i == 3) { /* before that the default stream */
            CHECK_OK(iris_stream_create(iris, &board->stream));
        }
        failed = fill(board) || check_strides(board) || check_bias(board) ||
                 check_gaps(board) || check_none(board) || check_error(board);
    }
    CHECK_OK(iris_free(iris, board->memory));
    free(board);
    return failed;
}

static TEST(libraries_multiply)
{
    for (size_t i = 0; i < NUM_TOOLKIT_LIBRARIES; i++) {
        toolkit_use(toolkit_libraries[i].name, harness_folder());
        harness_run(1, alone_body, (void *)(uintptr_t)&toolkit_libraries[i]);
        harness_run(2, all_body, (void *)(uintptr_t)&toolkit_libraries[i]);
        assert_int_equal(toolkit_seen(&toolkit_libraries[i])->live, 0);
    }
}

TEST_GROUP_WITH(toolkit_setup, toolkit_teardown, hip);
