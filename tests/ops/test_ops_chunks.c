/* SPDX-License-Identifier: MIT
 *
 * Fused operations in chunks: the same bits as in one, whatever the shape, the
 * type, the number of chunks and of members, the group's order; of calls in a
 * row, of ranks that come late, and of graphs.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST 32768 /* elements of a matrix */
#define OUTS 5     /* calls in a row */

static const struct operation {
    const char *name;
    __typeof__(iris_matmul_all_reduce) *call;
    __typeof__(iris_matmul_all_reduce_preamble) *prepare;
    int a_rows; /* `a` is a share of the rows */
    int a_columns;
    int out_rows;
} operations[] = {
    {"all_reduce", iris_matmul_all_reduce, iris_matmul_all_reduce_preamble, 0,
     0, 0},
    {"gather rows", iris_all_gather_matmul, iris_all_gather_matmul_preamble, 1,
     0, 0},
    {"gather columns", iris_all_gather_matmul, iris_all_gather_matmul_preamble,
     0, 1, 0},
    {"all_gather", iris_matmul_all_gather, iris_matmul_all_gather_preamble, 1,
     0, 0},
    {"reduce_scatter", iris_matmul_reduce_scatter,
     iris_matmul_reduce_scatter_preamble, 0, 0, 1},
};
#define NUM_OPERATIONS (sizeof operations / sizeof operations[0])

struct board {
    iris_t *iris;
    int members, index;
    char *a, *b, *bias, *out; /* OUTS of out */
    char *once, *seen; /* on the host: what one chunk gives, and chunks */
    iris_tensor_t tensors[3];
    iris_tensor_t bias_tensor;
    size_t out_bytes;
    struct iris_ops_options options;
    const struct operation *operation;
};

static int open_board(iris_t *iris, struct board *board)
{
    size_t bytes = MOST * sizeof(float);

    memset(board, 0, sizeof *board);
    board->iris = iris;
    board->members = iris_num_ranks(iris);
    board->index = iris_rank(iris);
    board->once = malloc(OUTS * bytes);
    board->seen = malloc(OUTS * bytes);
    iris_ops_options_init(&board->options);
    CHECK_OK(iris_malloc(iris, bytes, (void **)&board->a));
    CHECK_OK(iris_malloc(iris, bytes, (void **)&board->b));
    CHECK_OK(iris_malloc(iris, bytes, (void **)&board->bias));
    CHECK_OK(iris_malloc(iris, OUTS * bytes, (void **)&board->out));
    return 0;
}

static int run_body(iris_t *iris, void *arg)
{
    int (**test)(struct board * board) = arg;
    struct board board;
    int ret = open_board(iris, &board);

    ret = ret == 0 ? (*test)(&board) : ret;
    free(board.once);
    free(board.seen);
    return ret;
}

static void run(int members, int (*test)(struct board *board))
{
    harness_run(members, run_body, &test);
}

/* Numbers of all sizes around 1, not the same on any two ranks. */
static int fill(struct board *board, iris_dtype_t dtype, uint32_t seed)
{
    char *heaps[] = {board->a, board->b, board->bias};
    uint16_t *words = (uint16_t *)(void *)board->seen;
    uint32_t state =
        seed * 7919 + (uint32_t)iris_rank(board->iris) * 104729 + 1;
    /* f32 and bf16 have the same exponent. */
    uint16_t one = dtype == IRIS_DTYPE_F16 ? 0x3800 : 0x3f00;
    size_t bytes = MOST * iris_dtype_size(dtype);

    for (int h = 0; h < 3; h++) {
        for (size_t i = 0; i < bytes / 2; i++) {
            state = state * 1664525 + 1013904223;
            words[i] = (uint16_t)(state >> 16);
            if (dtype != IRIS_DTYPE_F32 || i % 2 == 1) {
                words[i] = (uint16_t)((words[i] & 0x80ff) | one);
            }
        }
        CHECK_OK(harness_write(board->iris, heaps[h], words, bytes));
    }
    return 0;
}

static int64_t share(const struct board *board, int64_t rows, int is_share)
{
    int64_t more = rows % board->members;

    return is_share ? rows / board->members + (board->index < more) : rows;
}

static void shape(iris_tensor_t *tensor, char *data, iris_dtype_t dtype,
                  int64_t rows, int64_t columns, int64_t pitch)
{
    memset(tensor, 0, sizeof *tensor);
    tensor->data = data;
    tensor->dtype = dtype;
    tensor->ndim = 2;
    tensor->shape[0] = rows;
    tensor->shape[1] = columns;
    tensor->strides[0] = pitch;
    tensor->strides[1] = 1;
}

struct size {
    int64_t m, n, k;
};

/* `gap`: elements between the rows of a and of out. */
static void lay_out(struct board *board, const struct operation *operation,
                    struct size size, iris_dtype_t dtype, int gap)
{
    int64_t a_rows = share(board, size.m, operation->a_rows);
    int64_t a_columns = share(board, size.k, operation->a_columns);
    int64_t out_rows = share(board, size.m, operation->out_rows);

    board->operation = operation;
    shape(&board->tensors[0], board->a, dtype, a_rows, a_columns,
          a_columns + gap);
    shape(&board->tensors[1], board->b, dtype, size.k, size.n, size.n);
    shape(&board->tensors[2], board->out, dtype, out_rows, size.n,
          size.n + gap);
    board->out_bytes =
        (size_t)(size.m * (size.n + gap) + gap + 1) * iris_dtype_size(dtype);
    board->options.bias = NULL;
}

static void add_bias(struct board *board, int by_row)
{
    const iris_tensor_t *rows_of =
        &board->tensors[board->operation->call == iris_matmul_all_gather ||
                                board->operation->out_rows
                            ? 0
                            : 2];
    int64_t rows = rows_of->shape[0];

    shape(&board->bias_tensor, board->bias, board->tensors[0].dtype,
          by_row ? rows : board->tensors[1].shape[1], 1, 1);
    board->bias_tensor.ndim = 1;
    board->options.bias = &board->bias_tensor;
    board->options.bias_by_row = by_row;
}

/* Call number i of a row, on as many elements further on in b. */
static iris_status_t call(struct board *board, int chunks, int i)
{
    iris_tensor_t b = board->tensors[1], out = board->tensors[2];

    b.data = board->b + (size_t)i * iris_dtype_size(b.dtype) * 64;
    out.data = board->out + (size_t)i * MOST * sizeof(float);
    board->options.chunks = chunks;
    return board->operation->call(board->iris, &board->tensors[0], &b, &out,
                                  &board->options);
}

static int poison(struct board *board)
{
    CHECK_OK(iris_memset(board->iris, board->out, 0xa5,
                         OUTS * MOST * sizeof(float), board->options.stream));
    CHECK_OK(iris_stream_synchronize(board->iris, board->options.stream));
    return 0;
}

static int read_outs(struct board *board, char *to, int count)
{
    size_t pitch = MOST * sizeof(float);

    CHECK_OK(iris_stream_synchronize(board->iris, board->options.stream));
    for (int i = 0; i < count; i++) {
        CHECK_OK(harness_read(board->iris, to + (size_t)i * pitch,
                              board->out + (size_t)i * pitch,
                              board->out_bytes));
    }
    return 0;
}

static int same(const struct board *board, int count, int chunks)
{
    size_t pitch = MOST * sizeof(float);

    for (int i = 0; i < count; i++) {
        if (memcmp(board->once + (size_t)i * pitch,
                   board->seen + (size_t)i * pitch, board->out_bytes) != 0) {
            fprintf(stderr, "%s, %lld rows of out, %d chunks, call %d\n",
                    board->operation->name,
                    (long long)board->tensors[2].shape[0], chunks, i);
            return 0;
        }
    }
    return 1;
}

/* `count` calls in a row, of one chunk; and the same in chunks. */
static int play(struct board *board, char *to, int count, int chunks)
{
    CHECK_EQUAL(poison(board), 0);
    for (int i = 0; i < count; i++) {
        CHECK_OK(call(board, chunks, i));
    }
    return read_outs(board, to, count);
}

static int once(struct board *board, int count)
{
    return play(board, board->once, count, 1);
}

static int again(struct board *board, int count, int chunks)
{
    CHECK_EQUAL(play(board, board->seen, count, chunks), 0);
    CHECK(same(board, count, chunks));
    return 0;
}

static const struct size sizes[] = {{1, 1, 1},    {2, 3, 1},   {3, 1, 5},
                                    {7, 5, 3},    {8, 8, 8},   {16, 16, 2},
                                    {17, 7, 13},  {31, 9, 11}, {64, 8, 16},
                                    {97, 33, 19}, {127, 5, 2}, {130, 24, 31}};
#define NUM_SIZES (sizeof sizes / sizeof sizes[0])

static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                      IRIS_DTYPE_BF16};
#define NUM_DTYPES (sizeof dtypes / sizeof dtypes[0])

/* In a long run all sizes of each type, in every number of chunks; else each in
 * one. */
static int all_sizes(struct board *board, size_t which, size_t d)
{
    int is_long = harness_count(2, 1) == 2;

    for (size_t s = 0; s < NUM_SIZES; s++) {
        if (!is_long && (s + which) % NUM_DTYPES != d) {
            continue;
        }
        lay_out(board, &operations[which], sizes[s], dtypes[d],
                s % 3 == 2 ? 3 : 0);
        if (s % 4 != 0) {
            add_bias(board, s % 4 == 2);
        }
        CHECK_EQUAL(once(board, 1), 0);
        for (int chunks = 2; chunks <= 8; chunks++) {
            if (is_long || (size_t)chunks == 2 + (s + d) % 7) {
                CHECK_EQUAL(again(board, 1, chunks), 0);
            }
        }
    }
    return 0;
}

static int sizes_body(struct board *board)
{
    for (size_t d = 0; d < NUM_DTYPES; d++) {
        CHECK_EQUAL(fill(board, dtypes[d], 1), 0);
        for (size_t o = 0; o < NUM_OPERATIONS; o++) {
            CHECK_EQUAL(all_sizes(board, o, d), 0);
        }
    }
    return 0;
}

static TEST(chunks_do_not_change_the_bits)
{
    static const int members[] = {1, 2, 3, 4, 8};

    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        run(members[i], sizes_body);
    }
}

/* Ranks take turns to come late; products take longer than what moves. */
static int late_body(struct board *board)
{
    static const struct size size = {31, 16, 1000};

    CHECK_EQUAL(fill(board, IRIS_DTYPE_BF16, 4), 0);
    for (size_t o = 0; o < NUM_OPERATIONS; o++) {
        lay_out(board, &operations[o], size, IRIS_DTYPE_BF16, 0);
        CHECK_EQUAL(once(board, OUTS), 0);
        for (int late = 0; late <= board->members; late++) {
            if (late == board->index) {
                usleep(20000);
            }
            CHECK_EQUAL(again(board, OUTS, 2 + late), 0);
        }
    }
    return 0;
}

static TEST(calls_in_a_row_wait_for_each_other)
{
    run(2, late_body);
    run(4, late_body);
}

static int prepare(struct board *board)
{
    CHECK_OK(board->operation->prepare(
        board->iris, &board->tensors[0], &board->tensors[1], &board->tensors[2],
        &board->options, &board->options.workspace));
    return 0;
}

static void be_in(struct board *board, iris_group_t *group, int members)
{
    static const int places[] = {1, 3, 0, 2}; /* of ranks among all */
    int rank = iris_rank(board->iris);

    board->members = members;
    board->index = members == 4 ? places[rank] : rank < 3 ? 2 - rank : 3;
    board->options.group = group;
}

/* Two groups, the second of some ranks the other way around, share the workspace
 * that all made: what each pair has counted so far differs. */
static int group_body(struct board *board)
{
    static const struct size size = {29, 15, 21};
    int ranks[] = {2, 1, 0}, all[] = {2, 0, 3, 1};
    int rank = iris_rank(board->iris);
    iris_group_t *groups[2] = {NULL, NULL};

    CHECK_OK(iris_ccl_prepare(board->iris));
    CHECK_EQUAL(fill(board, IRIS_DTYPE_F32, 6), 0);
    CHECK_OK(iris_group_create(board->iris, all, 4, &groups[0]));
    CHECK_OK(
        iris_group_create(board->iris, ranks, rank < 3 ? 3 : 0, &groups[1]));
    for (size_t o = 0; o < NUM_OPERATIONS; o++) {
        be_in(board, groups[0], 4);
        board->options.chunks = 3;
        lay_out(board, &operations[o], size, IRIS_DTYPE_F32, 0);
        CHECK_EQUAL(prepare(board), 0);
        for (int i = 0; i < 4; i++) {
            be_in(board, groups[i % 2], 4 - i % 2);
            lay_out(board, &operations[o], size, IRIS_DTYPE_F32, 0);
            if (board->index < board->members) {
                CHECK_EQUAL(once(board, 2), 0);
                CHECK_EQUAL(again(board, 2, 3), 0);
            }
        }
        CHECK_OK(
            iris_ops_workspace_destroy(board->iris, board->options.workspace));
        board->options.workspace = NULL;
    }
    return 0;
}

static TEST(groups_share_a_workspace)
{
    run(4, group_body);
}

/* A workspace of one chunk may be too small for more. */
static int small_body(struct board *board)
{
    static const struct size size = {24, 6, 5};

    lay_out(board, &operations[4], size, IRIS_DTYPE_F32, 0);
    board->options.chunks = 1;
    CHECK_EQUAL(prepare(board), 0);
    CHECK_BAD(board->iris, call(board, 4, 0), IRIS_ERR_NO_MEMORY,
              "the workspace has 576 bytes, this call needs 1152",
              "iris_matmul_reduce_scatter_preamble");
    CHECK_OK(call(board, 1, 0));
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    CHECK_OK(iris_ops_workspace_destroy(board->iris, board->options.workspace));
    return 0;
}

static TEST(a_workspace_of_one_chunk_is_refused)
{
    run(2, small_body);
}

/* All members are told of another number of chunks, on a GPU maybe by the call. */
static int differ_body(struct board *board)
{
    iris_status_t status;

    if (getenv("IRIS_SPAWN") == NULL && harness_launched() == 0) {
        CPU_ONLY(board->iris, "threads may wait (docs/known-limits.md)");
    }
    lay_out(board, &operations[3], (struct size){24, 6, 5}, IRIS_DTYPE_F32, 0);
    status = call(board, 2 + iris_rank(board->iris), 0);
    CHECK_STATUS(status ? status : iris_stream_synchronize(board->iris, NULL),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("chunks 2");
    CHECK_MESSAGE("chunks 3");
    return iris_clear_error(board->iris);
}

static TEST(another_number_of_chunks_is_a_mismatch)
{
    run(2, differ_body);
}

/* A graph of two calls, launched again and again, each time with other numbers. */
static int replay(struct board *board, iris_graph_t *graph, uint32_t round)
{
    iris_dtype_t dtype = board->tensors[0].dtype;

    if (board->index == (int)(round % (uint32_t)board->members) && round < 20) {
        usleep(2000);
    }
    if (round % 10 != 0) {
        CHECK_OK(iris_graph_launch(board->iris, graph, board->options.stream));
        return 0;
    }
    CHECK_OK(iris_stream_synchronize(board->iris, board->options.stream));
    CHECK_EQUAL(fill(board, dtype, 100 + round), 0);
    CHECK_EQUAL(once(board, 2), 0);
    CHECK_EQUAL(poison(board), 0);
    CHECK_OK(iris_graph_launch(board->iris, graph, board->options.stream));
    CHECK_EQUAL(read_outs(board, board->seen, 2), 0);
    CHECK(same(board, 2, board->options.chunks));
    return 0;
}

static int graph_body(struct board *board)
{
    static const struct size size = {45, 17, 23};
    iris_graph_t *graph;

    if (!harness_on_gpu(board->iris)) {
        return harness_left_out(__func__, "the CPU has no graphs");
    }
    CHECK_EQUAL(fill(board, IRIS_DTYPE_F16, 9), 0);
    CHECK_OK(iris_stream_create(board->iris, &board->options.stream));
    for (size_t o = 0; o < NUM_OPERATIONS; o++) {
        int chunks = 2 + (int)o;

        lay_out(board, &operations[o], size, IRIS_DTYPE_F16, 0);
        CHECK_EQUAL(once(board, 1), 0);
        CHECK_EQUAL(again(board, 1, chunks), 0); /* the workspace is there */
        CHECK_OK(iris_capture_begin(board->iris, board->options.stream));
        CHECK_OK(call(board, chunks, 0));
        CHECK_OK(call(board, chunks, 1));
        CHECK_OK(iris_capture_end(board->iris, board->options.stream, &graph));
        for (uint32_t i = 0; i < harness_count(1000, 30); i++) {
            CHECK_EQUAL(replay(board, graph, i), 0);
        }
        CHECK_OK(iris_stream_synchronize(board->iris, board->options.stream));
        iris_graph_destroy(board->iris, graph);
    }
    iris_stream_destroy(board->iris, board->options.stream);
    return 0;
}

static TEST(graphs_are_replayed)
{
    run(2, graph_body);
    run(4, graph_body);
}

static int set_up(void **state)
{
    /* A CPU library gives parts of a product other bits. */
    setenv("IRIS_BLAS", "none", 1);
    return harness_setup(state);
}

TEST_GROUP_WITH(set_up, harness_teardown, rank, one_node);
