/* SPDX-License-Identifier: MIT
 *
 * Fused operations as calls: what is refused, workspaces, graphs.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

struct board {
    float *memory;
    iris_tensor_t a, b, out;
};

/* Matrices for 2 ranks, (8, 4) times (4, 6), all ones and twos. */
static int open_board(iris_t *iris, struct board *board)
{
    iris_tensor_t tensor = {.dtype = IRIS_DTYPE_F32, .ndim = 2};
    float ones[256];

    for (int i = 0; i < 256; i++) {
        ones[i] = i < 64 ? 1 : 2;
    }
    CHECK_OK(iris_malloc(iris, sizeof ones, (void **)&board->memory));
    CHECK_OK(harness_write(iris, board->memory, ones, sizeof ones));
    board->a = board->b = board->out = tensor;
    board->a.data = board->memory;
    board->b.data = board->memory + 64;
    board->out.data = board->memory + 128;
    board->a.shape[0] = board->out.shape[0] = 8;
    board->a.shape[1] = board->b.shape[0] = 4;
    board->b.shape[1] = board->out.shape[1] = 6;
    board->a.strides[0] = 4;
    board->b.strides[0] = board->out.strides[0] = 6;
    board->a.strides[1] = board->b.strides[1] = board->out.strides[1] = 1;
    return 0;
}

static int has(iris_t *iris, const struct board *board, int count, float value)
{
    float seen[128];

    CHECK_OK(harness_read(iris, seen, board->out.data, sizeof seen));
    for (int i = 0; i < 128; i++) {
        CHECK(seen[i] == (i < count ? value : 2));
    }
    return 0;
}

typedef iris_status_t operation_fn(iris_t *iris, const iris_tensor_t *a,
                                   const iris_tensor_t *b,
                                   const iris_tensor_t *out,
                                   const struct iris_ops_options *options);

#define CHECK_REFUSED(call, status, what) \
    do {                                  \
        CHECK_STATUS(call, status);       \
        CHECK_MESSAGE(what);              \
    } while (0)

static RANK_TEST(what_does_not_fit_is_refused, 1, 2)
{
    struct board board, good;
    struct iris_ops_options options;
    iris_ops_workspace_t *none = (iris_ops_workspace_t *)&options;

    iris_ops_options_init(&options);
    CHECK_EQUAL(open_board(iris, &good), 0);
#define TRY(edit, what)                                                        \
    board = good;                                                              \
    edit;                                                                      \
    CHECK_REFUSED(iris_matmul_all_reduce(iris, &board.a, &board.b, &board.out, \
                                         &options),                            \
                  IRIS_ERR_INVALID, what)
    TRY(board.a.ndim = 3, "a has 3 dimensions");
    TRY(board.a.dtype = IRIS_DTYPE_I32, "a is of i32");
    TRY(board.out.dtype = IRIS_DTYPE_F16, "out is of f16");
    TRY(board.b.data = NULL, "its data is NULL");
    TRY(board.a.shape[1] = 3, "a has to be (8, 4)");
    TRY(board.out.shape[0] = 7, "do not fit");
    TRY(board.out.strides[1] = 2, "contiguous rows");
    TRY(board.out.strides[0] = 5, "overlap");
    TRY(board.out.data = good.memory + 60, "out overlaps");
    TRY(options.bias = &board.a, "bias has to be a tensor of 6 elements");
    options.bias = NULL;
    TRY(options.bias_by_row = 2, "bias_by_row is 2");
    options.bias_by_row = 0;
    TRY(options.chunks = 9, "chunks is 9; pass 1 to 8");
    TRY(options.chunks = -1, "chunks is -1");
    options.chunks = 0;
    TRY(options.workspace = none, "is not a live one");
    options.workspace = NULL;
    TRY(options.size = 3, "options of 3 bytes");
#undef TRY
    CHECK_REFUSED(iris_matmul_all_reduce(iris, NULL, &good.b, &good.out, NULL),
                  IRIS_ERR_INVALID, "a is NULL");
    CHECK_STATUS(
        iris_matmul_all_reduce(NULL, &good.a, &good.b, &good.out, NULL),
        IRIS_ERR_INVALID);
    CHECK_OK(iris_ops_workspace_destroy(iris, NULL));
    return has(iris, &good, 0, 0);
}

static RANK_TEST(a_workspace_that_does_not_do_is_refused, 2)
{
    struct iris_ops_options options;
    struct board board;
    iris_tensor_t small;
    iris_stream_t *stream;

    iris_ops_options_init(&options);
    CHECK_EQUAL(open_board(iris, &board), 0);
    board.out.shape[0] = 4;
    small = board.a;
    small.shape[0] = 2;
    board.out.shape[0] = 1;
    CHECK_OK(iris_matmul_reduce_scatter_preamble(
        iris, &small, &board.b, &board.out, &options, &options.workspace));
    board.out.shape[0] = 4;
    CHECK_REFUSED(iris_matmul_reduce_scatter(iris, &board.a, &board.b,
                                             &board.out, &options),
                  IRIS_ERR_NO_MEMORY, "has 48 bytes, this call needs 192");
    CHECK_OK(iris_ops_workspace_destroy(iris, options.workspace));
    CHECK_STATUS(iris_ops_workspace_destroy(iris, options.workspace),
                 IRIS_ERR_INVALID);
    CHECK_OK(iris_matmul_reduce_scatter_preamble(
        iris, &board.a, &board.b, &board.out, NULL, &options.workspace));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_matmul_reduce_scatter(iris, &board.a, &board.b, &board.out,
                                        &options));
    options.stream = stream;
    CHECK_REFUSED(iris_matmul_reduce_scatter(iris, &board.a, &board.b,
                                             &board.out, &options),
                  IRIS_ERR_STATE, "last used on another stream");
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_matmul_reduce_scatter(iris, &board.a, &board.b, &board.out,
                                        &options));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    iris_stream_destroy(iris, stream);
    return has(iris, &board, 24, 16);
}

/* The library's own workspace becomes larger while work uses it. */
static RANK_TEST(the_own_workspace_becomes_larger, 2)
{
    struct iris_heap_stats before, after;
    struct board board;
    iris_tensor_t a, out;

    CHECK_EQUAL(open_board(iris, &board), 0);
    CHECK_OK(iris_ccl_prepare(iris));
    iris_heap_stats(iris, &before);
    a = board.a;
    out = board.out;
    for (int64_t m = 2; m <= 8; m += 2) {
        a.shape[0] = m;
        out.shape[0] = m / 2;
        CHECK_OK(iris_matmul_reduce_scatter(iris, &a, &board.b, &out, NULL));
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_free_deferred(iris));
    iris_heap_stats(iris, &after);
    CHECK_EQUAL(after.num_allocs, before.num_allocs + 1);
    return has(iris, &board, 24, 16);
}

static RANK_TEST(a_smaller_group_needs_a_workspace, 3)
{
    struct iris_ops_options options;
    struct board board;
    int self = iris_rank(iris);

    iris_ops_options_init(&options);
    CHECK_EQUAL(open_board(iris, &board), 0);
    CHECK_OK(iris_ccl_prepare(iris));
    if (self < 2) {
        int ranks[2] = {0, 1};

        CHECK_OK(iris_group_create(iris, ranks, 2, &options.group));
        board.out.shape[0] = 4;
        CHECK_REFUSED(iris_matmul_reduce_scatter(iris, &board.a, &board.b,
                                                 &board.out, &options),
                      IRIS_ERR_STATE, "a group of 2 of 3 ranks needs");
        board.a.shape[0] = 3 - self; /* which works in `out` */
        board.out.shape[0] = 5;
        CHECK_OK(iris_matmul_all_gather(iris, &board.a, &board.b, &board.out,
                                        &options));
        CHECK_EQUAL(has(iris, &board, 30, 8), 0);
        CHECK_OK(iris_group_destroy(iris, options.group));
    } else {
        CHECK_OK(iris_group_create(iris, &self, 1, &options.group));
        CHECK_OK(iris_matmul_reduce_scatter(iris, &board.a, &board.b,
                                            &board.out, &options));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(iris_group_destroy(iris, options.group));
        return has(iris, &board, 48, 8);
    }
    return 0;
}

/* Two of three ranks work. The third one knows nothing of their sizes, or makes
 * a call of its own. */
static int others_body(iris_t *iris, void *arg)
{
    int ranks[2] = {0, 1}, self = iris_rank(iris), works = self < 2;
    struct iris_ops_options options;
    struct board board;

    iris_ops_options_init(&options);
    CHECK_EQUAL(open_board(iris, &board), 0);
    CHECK_OK(iris_ccl_prepare(iris));
    CHECK_OK(iris_group_create(iris, works ? ranks : &self, works ? 2 : 1,
                               &options.group));
    board.out.shape[0] = works ? 4 : 8;
    if (arg != NULL && !works) {
        CHECK_OK(iris_matmul_reduce_scatter_preamble(
            iris, NULL, NULL, NULL, &options, &options.workspace));
    } else {
        CHECK_OK(iris_matmul_reduce_scatter_preamble(iris, &board.a, &board.b,
                                                     &board.out, &options,
                                                     &options.workspace));
    }
    CHECK_OK(iris_matmul_reduce_scatter(iris, &board.a, &board.b, &board.out,
                                        &options));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_ops_workspace_destroy(iris, options.workspace));
    CHECK_REFUSED(iris_matmul_reduce_scatter_preamble(
                      iris, works ? &board.a : NULL, &board.b, &board.out,
                      &options, &options.workspace),
                  IRIS_ERR_INVALID, works ? "rank 2" : "a is NULL");
    CHECK_OK(iris_group_destroy(iris, options.group));
    return works ? has(iris, &board, 24, 16) : has(iris, &board, 48, 8);
}

static TEST(ranks_outside_the_group_need_not_know_its_sizes)
{
    harness_run(3, others_body, NULL);
    harness_run(3, others_body, "without matrices");
}

/* A captured call, replayed: rows that are added up or, with `arg`, 7 that are
 * gathered, 4 and 3. */
static int graph_body(iris_t *iris, void *arg)
{
    size_t times = harness_count(1000, 20);
    operation_fn *operation =
        arg == NULL ? iris_matmul_reduce_scatter : iris_matmul_all_gather;
    struct board board;
    iris_stream_t *stream;
    iris_graph_t *graph;
    struct iris_ops_options options;

    iris_ops_options_init(&options);
    CHECK_EQUAL(open_board(iris, &board), 0);
    board.out.shape[0] = arg == NULL ? 4 : 7;
    board.a.shape[0] = arg == NULL ? 8 : 4 - iris_rank(iris);
    CHECK_OK(iris_all_reduce_preamble(iris, NULL));
    if (arg == NULL) {
        CHECK_OK(iris_matmul_reduce_scatter_preamble(
            iris, &board.a, &board.b, &board.out, NULL, &options.workspace));
    }
    CHECK_OK(iris_stream_create(iris, &stream));
    options.stream = stream;
    CHECK_OK(iris_capture_begin(iris, stream));
    CHECK_OK(operation(iris, &board.a, &board.b, &board.out, &options));
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    for (size_t i = 0; i < times; i++) {
        CHECK_OK(iris_graph_launch(iris, graph, stream));
    }
    CHECK_OK(iris_stream_synchronize(iris, stream));
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, stream);
    return arg == NULL ? has(iris, &board, 24, 16) : has(iris, &board, 42, 8);
}

static TEST(a_captured_call_is_replayed)
{
    if (!harness_has_gpu()) {
        skip(); /* graphs need one */
    }
    harness_run(2, graph_body, NULL);
    harness_run(2, graph_body, "shares that differ");
}

/* Sizes that the collective's own count does not tell: K, or M and N with the
 * same product. */
static void shape(iris_tensor_t *tensor, int64_t rows, int64_t columns)
{
    tensor->shape[0] = rows;
    tensor->shape[1] = columns;
    tensor->strides[0] = columns;
}

/* `sizes`: of rank 0 and of rank 1, both of which the message has. Members that
 * meet on the host in a first call are told there. */
static int differ(iris_t *iris, operation_fn *operation, struct board board,
                  const char *name, const char *const *sizes)
{
    int ranks[2] = {0, 1}, self = iris_rank(iris);
    struct iris_ops_options options;
    iris_status_t status;

    iris_ops_options_init(&options);
    CHECK_OK(iris_group_create(iris, ranks, 2, &options.group));
    status = operation(iris, &board.a, &board.b, &board.out, &options);
    if (status == IRIS_OK) {
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
        CHECK_MESSAGE(name);
        CHECK_MESSAGE(self == 0 ? "rank 1 calls" : "rank 0 calls");
    } else {
        CHECK_STATUS(status, IRIS_ERR_MISMATCH);
    }
    CHECK_MESSAGE(sizes[0]);
    CHECK_MESSAGE(sizes[1]);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_group_destroy(iris, options.group));
    return 0;
}

static RANK_TEST(sizes_that_differ_are_found_by_all, 2)
{
    static const char *const depths[] = {"K 3", "K 4"};
    static const char *const rows[] = {"M 8, N 6", "M 7, N 6"};
    struct board board;
    int self = iris_rank(iris);
    int64_t k = self == 0 ? 3 : 4;

    CHECK_EQUAL(open_board(iris, &board), 0);
    shape(&board.b, k, 6);
    shape(&board.a, 8, k);
    shape(&board.out, 8, 6);
    CHECK_EQUAL(differ(iris, iris_matmul_all_reduce, board,
                       "iris_matmul_all_reduce of f32, M 8, N 6", depths),
                0);
    shape(&board.out, 4, 6);
    CHECK_EQUAL(differ(iris, iris_matmul_reduce_scatter, board,
                       "iris_matmul_reduce_scatter of f32, M 8, N 6", depths),
                0);
    shape(&board.a, 4, k);
    shape(&board.out, 8, 6);
    CHECK_EQUAL(differ(iris, iris_matmul_all_gather, board,
                       "iris_matmul_all_gather of f32, M 8, N 6", depths),
                0);
    shape(&board.a, 4 - self, k);
    shape(&board.out, 7, 6);
    CHECK_EQUAL(differ(iris, iris_matmul_all_gather, board,
                       "iris_matmul_all_gather of f32, M 7, N 6", depths),
                0);
    shape(&board.b, 3, 6);
    shape(&board.a, 4 - self, 3); /* 4 of 8 rows, 3 of 7 */
    shape(&board.out, 8 - self, 6);
    CHECK_EQUAL(differ(iris, iris_matmul_all_gather, board,
                       "iris_matmul_all_gather of f32", rows),
                0);
    return 0;
}

/* A variant that takes no buffers in place, where `out` is the only memory that
 * the call would need, and where it has gaps. */
static int apart_body(iris_t *iris, void *arg)
{
    struct board board;
    float seen[56];

    CHECK_EQUAL(open_board(iris, &board), 0);
    CHECK_OK(
        iris_matmul_all_reduce(iris, &board.a, &board.b, &board.out, NULL));
    CHECK_EQUAL(has(iris, &board, 48, 16), 0);
    CHECK_OK(iris_memset(iris, board.out.data, 0, sizeof seen, NULL));
    board.out.strides[0] = 7;
    CHECK_OK(
        iris_matmul_all_reduce(iris, &board.a, &board.b, &board.out, NULL));
    CHECK_OK(harness_read(iris, seen, board.out.data, sizeof seen));
    for (int i = 0; i < 55; i++) {
        CHECK(seen[i] == (i % 7 == 6 ? 0 : 16));
    }
    return 0;
}

static TEST(a_variant_that_is_not_in_place_will_do)
{
    setenv("IRIS_CCL", "all_reduce=one_shot", 1);
    harness_run(2, apart_body, NULL);
    unsetenv("IRIS_CCL");
}

#define LARGE_ROWS 515
#define LARGE_COLUMNS 1024

/* Messages of several pieces, which their receivers read in place. */
static RANK_TEST(large_shares_that_differ_are_gathered, 2)
{
    size_t bytes = (size_t)LARGE_ROWS * LARGE_COLUMNS * sizeof(float);
    int self = iris_rank(iris), rows = LARGE_ROWS / 2 + (self == 0);
    int begin = self == 0 ? 0 : LARGE_ROWS / 2 + 1;
    float *host = malloc(bytes);
    struct board board;
    char *out, *b;

    CHECK_EQUAL(open_board(iris, &board), 0);
    CHECK_OK(iris_malloc(iris, bytes, (void **)&out));
    CHECK_OK(iris_malloc(iris, bytes, (void **)&b));
    for (int i = 0; i < 2 * LARGE_COLUMNS; i++) {
        host[i] = (float)(i < LARGE_COLUMNS ? begin + i : 1);
    }
    CHECK_OK(harness_write(iris, b, host, 2 * LARGE_COLUMNS * sizeof(float)));
    board.a.data = b;
    board.b.data = b + LARGE_COLUMNS * sizeof(float);
    board.out.data = out;
    shape(&board.a, rows, 1);
    shape(&board.b, 1, LARGE_COLUMNS);
    shape(&board.out, LARGE_ROWS, LARGE_COLUMNS);
    for (int i = 0; i < 3; i++) {
        CHECK_OK(iris_memset(iris, out, 0xff, bytes, NULL));
        CHECK_OK(
            iris_matmul_all_gather(iris, &board.a, &board.b, &board.out, NULL));
        CHECK_OK(harness_read(iris, host, out, bytes));
        for (int e = 0; e < LARGE_ROWS * LARGE_COLUMNS; e++) {
            CHECK(host[e] == (float)(e / LARGE_COLUMNS));
        }
    }
    free(host);
    return 0;
}

TEST_GROUP(rank);
