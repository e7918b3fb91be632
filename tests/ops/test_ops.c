/* SPDX-License-Identifier: MIT
 *
 * Fused operations: every rank has the bits of the products, each summed in the
 * order of k, and of the collective, whatever the shape, the type, the strides,
 * the group. With the library's own products, whose order is known; those of a
 * BLAS have test_ops_blas.c.
 */
#include "config.h"

#include "ops/element.h"
#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

enum op { ALL_REDUCE, GATHER_ROWS, GATHER_COLUMNS, ALL_GATHER, REDUCE_SCATTER };
#define NUM_OPS 5

/* One call. */
struct play {
    enum op op;
    iris_dtype_t dtype;
    int64_t m, n, k; /* of the whole product */
    int transposed;  /* bit 0: a, bit 1: b */
    int gap;         /* elements between rows of out */
    int bias;        /* 0: none, 1: by column, 2: by row */
    int off_heap;    /* CPU only: matrices in memory of malloc() */
    struct iris_ops_options options;
};

/* A matrix on the heap, and what is in it. */
struct matrix {
    iris_tensor_t tensor;
    char *host;
    size_t bytes;
};

/* ---- Numbers ---- */

static uint32_t scrambled(uint64_t x)
{
    x = (x + 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 29) * 0x94d049bb133111ebu;
    return (uint32_t)(x >> 32);
}

static float rounded(iris_dtype_t dtype, float value)
{
    uint64_t element = 0;

    put(&element, dtype, 0, value);
    return get(&element, dtype, 0);
}

/* Element (i, j) of what member r has as `which`, of the whole matrix where it
 * has a share. */
static float element(const struct play *play, char which, int64_t r, int64_t i,
                     int64_t j)
{
    uint64_t seed =
        (((uint64_t)r * 131 + (uint64_t)which) * 4099 + (uint64_t)i) * 4099 +
        (uint64_t)j;

    return rounded(play->dtype,
                   ((float)(scrambled(seed) >> 8) - 0x1p23f) * 0x1p-22f);
}

/* Shared matrices are the same whoever asks. */
static float a_of(const struct play *play, int64_t r, int64_t i, int64_t j)
{
    int shared = play->op == GATHER_ROWS || play->op == GATHER_COLUMNS ||
                 play->op == ALL_GATHER;

    return element(play, 'a', shared ? 0 : r, i, j);
}

static float bias_of(const struct play *play, int64_t r, int64_t i, int64_t j)
{
    int is_sum = play->op == ALL_REDUCE || play->op == REDUCE_SCATTER;

    if (play->bias == 0 || (is_sum && r != 0)) {
        return 0;
    }
    return element(play, 'c', r, 0, play->bias == 1 ? j : i);
}

/* Element (i, j) of member r's product of the whole a. */
static float product(const struct play *play, int64_t r, int64_t i, int64_t j)
{
    float sum = 0;

    for (int64_t k = 0; k < play->k; k++) {
        volatile float one = a_of(play, r, i, k) * element(play, 'b', r, k, j);

        sum += one;
    }
    sum += bias_of(play, r, i, j);
    return rounded(play->dtype, sum);
}

/* ---- Shapes ---- */

static int64_t share_begin(int64_t rows, int64_t n, int64_t i)
{
    int64_t more = rows % n;

    return rows / n * i + (i < more ? i : more);
}

static int64_t share_rows(int64_t rows, int64_t n, int64_t i)
{
    return share_begin(rows, n, i + 1) - share_begin(rows, n, i);
}

/* What a call needs of one rank. */
struct board {
    iris_t *iris;
    int64_t n, r; /* of the group */
    char *memory;
    size_t used;
    struct matrix a, b, out, bias;
};

static struct matrix make_matrix(struct board *board, const struct play *play,
                                 int64_t rows, int64_t columns)
{
    struct matrix matrix = {.tensor = {.dtype = play->dtype, .ndim = 2}};
    size_t width = iris_dtype_size(play->dtype);

    matrix.tensor.shape[0] = rows;
    matrix.tensor.shape[1] = columns;
    matrix.tensor.strides[0] = columns;
    matrix.tensor.strides[1] = 1;
    matrix.bytes = (size_t)(rows * columns) * width;
    matrix.host = calloc(1, matrix.bytes + 1);
    if (play->off_heap) {
        matrix.tensor.data = calloc(1, matrix.bytes + 1);
    } else {
        matrix.tensor.data = board->memory + board->used;
        board->used += (matrix.bytes + 255) / 256 * 256;
    }
    return matrix;
}

static void free_matrix(struct matrix *matrix, const struct play *play)
{
    free(matrix->host);
    if (play->off_heap) {
        free(matrix->tensor.data);
    }
}

static int send_matrix(struct board *board, const struct matrix *matrix)
{
    if (matrix->bytes > 0) {
        CHECK_OK(harness_write(board->iris, matrix->tensor.data, matrix->host,
                               matrix->bytes));
    }
    return 0;
}

/* The transposed matrix has its elements in the other order. */
static struct matrix make_input(struct board *board, const struct play *play,
                                int64_t rows, int64_t columns, int transposed)
{
    struct matrix matrix = transposed ? make_matrix(board, play, columns, rows)
                                      : make_matrix(board, play, rows, columns);

    if (transposed) {
        matrix.tensor.shape[0] = rows;
        matrix.tensor.shape[1] = columns;
        matrix.tensor.strides[0] = 1;
        matrix.tensor.strides[1] = rows;
    }
    return matrix;
}

static void set(struct matrix *matrix, int64_t i, int64_t j, float value)
{
    put(matrix->host, matrix->tensor.dtype,
        i * matrix->tensor.strides[0] + j * matrix->tensor.strides[1], value);
}

static int open_inputs(struct board *board, const struct play *play)
{
    int64_t rows = play->m, columns = play->k, row = 0, column = 0;

    if (play->op == GATHER_ROWS || play->op == ALL_GATHER) {
        row = share_begin(play->m, board->n, board->r);
        rows = share_rows(play->m, board->n, board->r);
    } else if (play->op == GATHER_COLUMNS) {
        column = share_begin(play->k, board->n, board->r);
        columns = share_rows(play->k, board->n, board->r);
    }
    board->a = make_input(board, play, rows, columns, play->transposed & 1);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            set(&board->a, i, j, a_of(play, board->r, row + i, column + j));
        }
    }
    board->b = make_input(board, play, play->k, play->n, play->transposed >> 1);
    for (int64_t i = 0; i < play->k; i++) {
        for (int64_t j = 0; j < play->n; j++) {
            set(&board->b, i, j, element(play, 'b', board->r, i, j));
        }
    }
    CHECK_EQUAL(send_matrix(board, &board->a), 0);
    return send_matrix(board, &board->b);
}

static int open_bias(struct board *board, struct play *play)
{
    int64_t row =
        play->op == ALL_GATHER ? share_begin(play->m, board->n, board->r) : 0;
    int64_t count = play->bias == 1 ? play->n
                    : play->op == ALL_GATHER
                        ? share_rows(play->m, board->n, board->r)
                        : play->m;

    board->bias = make_matrix(board, play, 1, count);
    for (int64_t j = 0; j < count; j++) {
        int64_t at = play->bias == 1 ? j : row + j;

        put(board->bias.host, play->dtype, j,
            element(play, 'c', board->r, 0, at));
    }
    board->bias.tensor.ndim = 1;
    board->bias.tensor.shape[0] = count;
    board->bias.tensor.strides[0] = 1;
    play->options.bias = play->bias != 0 ? &board->bias.tensor : NULL;
    play->options.bias_by_row = play->bias == 2;
    return send_matrix(board, &board->bias);
}

/* Guards are in the gaps between rows. */
static int open_out(struct board *board, const struct play *play)
{
    int64_t rows = play->op == REDUCE_SCATTER
                       ? share_rows(play->m, board->n, board->r)
                       : play->m;

    board->out = make_matrix(board, play, rows, play->n + play->gap);
    board->out.tensor.shape[1] = play->n;
    memset(board->out.host, 0x5a, board->out.bytes);
    return send_matrix(board, &board->out);
}

static iris_status_t call(const struct board *board, const struct play *play)
{
    static iris_status_t (*const calls[NUM_OPS])(
        iris_t *, const iris_tensor_t *, const iris_tensor_t *,
        const iris_tensor_t *, const struct iris_ops_options *) = {
        iris_matmul_all_reduce, iris_all_gather_matmul, iris_all_gather_matmul,
        iris_matmul_all_gather, iris_matmul_reduce_scatter};

    return calls[play->op](board->iris, &board->a.tensor, &board->b.tensor,
                           &board->out.tensor, &play->options);
}

/* ---- What has to come out ---- */

static float expected(const struct board *board, const struct play *play,
                      int64_t i, int64_t j)
{
    float sum;

    switch (play->op) {
    case ALL_GATHER: /* by whoever has the row */
        for (int64_t r = 0; r < board->n; r++) {
            if (i < share_begin(play->m, board->n, r + 1)) {
                return product(play, r, i, j);
            }
        }
        return 0;
    case REDUCE_SCATTER:
        i += share_begin(play->m, board->n, board->r);
        break;
    case ALL_REDUCE:
        break;
    default:
        return product(play, board->r, i, j);
    }
    sum = product(play, 0, i, j);
    for (int64_t r = 1; r < board->n; r++) {
        sum += product(play, r, i, j);
    }
    return rounded(play->dtype, sum);
}

static int compare(struct board *board, const struct play *play)
{
    const iris_tensor_t *out = &board->out.tensor;
    char *want = malloc(board->out.bytes + 1);
    int same;

    memcpy(want, board->out.host, board->out.bytes);
    for (int64_t i = 0; i < out->shape[0]; i++) {
        for (int64_t j = 0; j < out->shape[1]; j++) {
            put(want, play->dtype, i * out->strides[0] + j,
                expected(board, play, i, j));
        }
    }
    if (board->out.bytes > 0) {
        CHECK_OK(harness_read(board->iris, board->out.host, out->data,
                              board->out.bytes));
    }
    same = memcmp(want, board->out.host, board->out.bytes) == 0;
    free(want);
    if (!same) {
        print_error(
            "operation %d of %s, m %lld, n %lld, k %lld, transposed %d, "
            "gap %d, bias %d, member %lld of %lld\n",
            (int)play->op, iris_dtype_name(play->dtype), (long long)play->m,
            (long long)play->n, (long long)play->k, play->transposed, play->gap,
            play->bias, (long long)board->r, (long long)board->n);
    }
    CHECK(same);
    return 0;
}

#define HEAP_BYTES ((size_t)1 << 20)

static int play_it(iris_t *iris, char *memory, const struct play *what)
{
    struct play play = *what;
    struct board board = {.iris = iris, .memory = memory};

    board.n = play.options.group == NULL
                  ? iris_num_ranks(iris)
                  : iris_group_size(iris, play.options.group);
    board.r = play.options.group == NULL
                  ? iris_rank(iris)
                  : iris_group_index(iris, play.options.group);
    CHECK_EQUAL(open_inputs(&board, &play), 0);
    CHECK_EQUAL(open_bias(&board, &play), 0);
    CHECK_EQUAL(open_out(&board, &play), 0);
    CHECK(board.used <= HEAP_BYTES);
    CHECK_OK(call(&board, &play));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_EQUAL(compare(&board, &play), 0);
    free_matrix(&board.a, &play);
    free_matrix(&board.b, &play);
    free_matrix(&board.out, &play);
    free_matrix(&board.bias, &play);
    return 0;
}

/* ---- Tests ---- */

static const int64_t shapes[][3] = {
    {1, 1, 1},   {2, 3, 5},    {8, 16, 8},  {33, 65, 70}, {7, 1, 300},
    {1, 90, 17}, {48, 32, 64}, {31, 13, 1}, {5, 130, 29}, {16, 64, 257},
};
#define NUM_SHAPES ((int)(sizeof shapes / sizeof shapes[0]))

/* Beyond those: sizes of 1, primes, even, large; few products for the host. */
static void set_shape(struct play *play, int s)
{
    static const int64_t sizes[] = {8192, 1021, 251, 127, 65, 64, 31,
                                    13,   7,    5,   3,   2,  1};
    int64_t *const sides[] = {&play->m, &play->n, &play->k};
    int64_t left = 1 << 14;

    for (int i = s; i < s + 3; i++) {
        uint32_t pick = scrambled((uint64_t)(5 * s + i)) % 13;

        pick += sizes[pick] > left ? 12 - pick : 0;
        *sides[i % 3] = s < NUM_SHAPES ? shapes[s][i % 3] : sizes[pick];
        left /= sizes[pick];
    }
}

/* Each shape and operation, in a long run each type, the rest in turn. */
static int shapes_body(iris_t *iris, void *arg)
{
    static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                          IRIS_DTYPE_BF16};
    struct play play = {.off_heap = *(int *)arg};
    void *memory;
    int turn = 0, types = (int)harness_count(3, 1);
    int many = (int)harness_count(300, NUM_SHAPES);

    if (play.off_heap) {
        CPU_ONLY(iris, "matrices are in memory of malloc()");
    }
    iris_ops_options_init(&play.options);
    CHECK_OK(iris_malloc(iris, HEAP_BYTES, &memory));
    for (int s = 0; s < many; s++) {
        set_shape(&play, s);
        for (int i = 0; i < NUM_OPS * types; i++, turn++) {
            play.op = (enum op)(i % NUM_OPS);
            play.dtype = dtypes[turn % 3];
            play.transposed = turn % 4;
            play.gap = turn % 7 == 3 ? 5 : 0;
            play.bias = turn / 2 % 3;
            CHECK_EQUAL(play_it(iris, memory, &play), 0);
        }
    }
    return iris_free(iris, memory) == IRIS_OK ? 0 : -1;
}

static TEST(each_shape_has_the_bits_of_product_and_collective)
{
    int off_heap = 0;

    harness_run_all(shapes_body, &off_heap);
    harness_run(1, shapes_body, &off_heap);
    harness_run(3, shapes_body, &off_heap);
}

static TEST(matrices_may_be_off_the_heap)
{
    int off_heap = 1;

    harness_run(2, shapes_body, &off_heap);
    harness_run(3, shapes_body, &off_heap);
}

static TEST(several_nodes_give_the_same_bits)
{
    int off_heap = 0;

    setenv("IRIS_NODES", "2", 1);
    harness_run(2, shapes_body, &off_heap);
    harness_run(4, shapes_body, &off_heap);
    unsetenv("IRIS_NODES");
}

/* Pairs of ranks, the second first, each pair with numbers of its own. */
static RANK_TEST(a_group_has_a_workspace_of_its_own, 4)
{
    int rank = iris_rank(iris), low = rank / 2 * 2;
    int ranks[2] = {low + 1, low};
    iris_ops_workspace_t *workspace;
    struct play play = {.dtype = IRIS_DTYPE_F16, .m = 15, .n = 20, .k = 33};
    iris_tensor_t a = {.data = &ranks, .dtype = IRIS_DTYPE_F16, .ndim = 2};
    iris_tensor_t b = a, out = a;
    void *memory;

    iris_ops_options_init(&play.options);
    CHECK_OK(iris_malloc(iris, HEAP_BYTES, &memory));
    CHECK_OK(iris_ccl_prepare(iris));
    CHECK_OK(iris_group_create(iris, ranks, 2, &play.options.group));
    a.shape[0] = 32;
    b.shape[0] = a.shape[1] = a.strides[0] = 40;
    b.shape[1] = b.strides[0] = out.shape[1] = out.strides[0] = 40;
    out.shape[0] = 16;
    a.strides[1] = b.strides[1] = out.strides[1] = 1;
    a.data = (char *)memory;
    b.data = (char *)memory + 65536;
    out.data = (char *)memory + 2 * 65536;
    CHECK_OK(iris_matmul_reduce_scatter_preamble(iris, &a, &b, &out,
                                                 &play.options, &workspace));
    play.options.workspace = workspace;
    for (int op = 0; op < NUM_OPS; op++) {
        play.op = (enum op)op;
        CHECK_EQUAL(play_it(iris, memory, &play), 0);
    }
    CHECK_OK(iris_ops_workspace_destroy(iris, workspace));
    CHECK_OK(iris_group_destroy(iris, play.options.group));
    return iris_free(iris, memory) == IRIS_OK ? 0 : -1;
}

static int set_up(void **state)
{
    setenv("IRIS_BLAS", "none", 1);
    return harness_setup(state);
}

TEST_GROUP_WITH(set_up, harness_teardown, matrix, slow);
