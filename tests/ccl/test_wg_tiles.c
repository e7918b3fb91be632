/* SPDX-License-Identifier: MIT
 *
 * Collectives of workgroups on tiles: ragged ones, of any strides, with the bits
 * of collectives on streams; and tiles that a producer says are ready.
 */
#include "config.h"

#define IRIS_FAR 1 /* in GPU code, too */

#include "ccl/cases.h"

#include <iris/device.h>
#include <iris/device/wg_ccl_tile.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_WGS 3
#define MANY ((size_t)1 << 20) /* bytes of a workgroup's in, and of its out */
#define GUARD 256              /* of these behind the largest tile */

enum what {
    ALL_REDUCE,
    TWO_SHOT,
    REDUCE,
    SCATTER,
    GATHER,
    BRING,
    SWAP,
    SPREAD,
    DEAL,
    NUM_WHATS
};

/* How elements lie: with gaps behind rows, without, by columns. */
enum layout { GAPS, PACKED, COLUMNS, NUM_LAYOUTS };

struct args {
    iris_ccl_device_t handle;
    char *in; /* [workgroup][room] */
    char *out;
    size_t room;   /* at most MANY */
    uint32_t rows; /* of workgroup 0's tile; the others have less */
    uint32_t cols;
    uint32_t elem_bytes;
    int32_t what;
    int32_t dtype;
    int32_t op;
    uint32_t root;
    int32_t in_layout; /* this member's own */
    int32_t out_layout;
    uint32_t in_place;
};

IRIS_HOST_DEVICE uint32_t rows_of(const struct args *args, uint32_t w)
{
    return args->rows > w ? args->rows - w : 1;
}

IRIS_HOST_DEVICE iris_tile_t view(char *data, uint32_t rows, uint32_t cols,
                                  uint32_t elem_bytes, int32_t layout)
{
    if (layout == COLUMNS) {
        return iris_tile_transposed(
            iris_tile(data, cols, rows, rows + 1, elem_bytes));
    }
    return iris_tile(data, rows, cols, layout == GAPS ? cols + 3 : cols,
                     elem_bytes);
}

/* Parts of a member's input and output. */
IRIS_HOST_DEVICE uint32_t in_parts(int32_t what, uint32_t n)
{
    return what == SCATTER || what == SWAP || what == DEAL ? n : 1;
}

IRIS_HOST_DEVICE uint32_t out_parts(int32_t what, uint32_t n)
{
    return what == GATHER || what == BRING || what == SWAP ? n : 1;
}

IRIS_KERNEL(collect, struct args)
{
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);
    uint32_t rows = rows_of(args, wg.id), n = ccl.ccl.count;
    iris_dtype_t dtype = (iris_dtype_t)args->dtype;
    iris_reduce_op_t op = (iris_reduce_op_t)args->op;
    iris_tile_t in =
        view(args->in + wg.id * args->room, rows * in_parts(args->what, n),
             args->cols, args->elem_bytes, args->in_layout);
    iris_tile_t out =
        view(args->out + wg.id * args->room, rows * out_parts(args->what, n),
             args->cols, args->elem_bytes, args->out_layout);

    out = args->in_place ? in : out;
    switch (args->what) {
    case ALL_REDUCE:
        iris_wg_tile_all_reduce(wg, &ccl, in, out, dtype, op);
        break;
    case TWO_SHOT:
        iris_wg_tile_all_reduce_two_shot(wg, &ccl, in, out, dtype, op);
        break;
    case REDUCE:
        iris_wg_tile_reduce(wg, &ccl, in, out, dtype, op, args->root);
        break;
    case DEAL:
        iris_wg_tile_scatter(wg, &ccl, in, out, args->root);
        break;
    case SCATTER:
        iris_wg_tile_reduce_scatter(wg, &ccl, in, out, dtype, op);
        break;
    case GATHER:
        iris_wg_tile_all_gather(wg, &ccl, in, out);
        break;
    case BRING:
        iris_wg_tile_gather(wg, &ccl, in, out, args->root);
        break;
    case SWAP:
        iris_wg_tile_all_to_all(wg, &ccl, in, out);
        break;
    default:
        iris_wg_tile_broadcast(wg, &ccl, in, out, args->root);
    }
    iris_wg_ccl_end(wg, &ccl);
}

/* What one rank has: images of its buffers on the host, and elements in rows
 * without gaps. */
struct board {
    iris_t *iris;
    iris_group_t *group;
    struct args args;
    char *in;
    char *out;
    char *want;
    char *line;
    uint64_t round;
};

static uint64_t seed_of(const struct board *board, int m, unsigned w)
{
    return case_seed(m, board->round * MAX_WGS + w);
}

/* Spreads the elements of `line` to where a view has them, in `image`, which
 * stands for what begins at view.data. */
static void lay(iris_tile_t tile, const char *line, char *image)
{
    for (uint32_t r = 0; r < tile.rows; r++) {
        for (uint32_t c = 0; c < tile.cols; c++) {
            memcpy(image + ((int64_t)r * tile.row_stride +
                            (int64_t)c * tile.col_stride) *
                               tile.elem_bytes,
                   line + ((size_t)r * tile.cols + c) * tile.elem_bytes,
                   tile.elem_bytes);
        }
    }
}

/* The elements that `line` is to have of workgroup w's output; 0: none. */
static size_t expect(const struct board *board, unsigned w,
                     const struct case_type *type, char *line)
{
    const struct args *args = &board->args;
    int n = iris_group_size(board->iris, board->group);
    int me = iris_group_index(board->iris, board->group);
    size_t count = (size_t)rows_of(args, w) * args->cols;
    uint64_t seeds[CASES_MEMBERS];

    for (int m = 0; m < n; m++) {
        seeds[m] = seed_of(board, m, w);
        if (out_parts(args->what, 2) == 2) {
            type->fill(line + (size_t)m * count * type->bytes,
                       args->what == SWAP ? (size_t)me * count : 0, count,
                       seeds[m]);
        }
    }
    if (args->what >= SPREAD) {
        type->fill(line, args->what == DEAL ? (size_t)me * count : 0, count,
                   seeds[args->root]);
    } else if (args->what <= SCATTER) {
        type->reduce(
            line, args->what == SCATTER ? (size_t)me * count : 0, count,
            &(struct case_reduction){(iris_reduce_op_t)args->op, 0, seeds, n});
    }
    return (args->what == BRING || args->what == REDUCE) &&
                   me != (int)args->root
               ? 0
               : count * out_parts(args->what, (uint32_t)n);
}

static int check(const struct board *board, unsigned w, const char *seen)
{
    const struct args *args = &board->args;
    size_t at = 0;

    while (at < args->room && seen[at] == board->want[at]) {
        at++;
    }
    if (at == args->room) {
        return 0;
    }
    fprintf(stderr,
            "member %d of %d: what %d, type %d, op %d, %u x %u, layouts %d and "
            "%d, workgroup %u: byte %zu is %02x, expected %02x\n",
            iris_group_index(board->iris, board->group),
            iris_group_size(board->iris, board->group), args->what, args->dtype,
            args->op, rows_of(args, w), args->cols, args->in_layout,
            args->out_layout, w, at, (unsigned char)seen[at],
            (unsigned char)board->want[at]);
    return 1;
}

/* Puts each workgroup's input, laid out, to where the kernel reads it. */
static int write_in(struct board *board, const struct case_type *type)
{
    struct args *args = &board->args;
    uint32_t n = (uint32_t)iris_group_size(board->iris, board->group);
    int me = iris_group_index(board->iris, board->group);

    memset(board->in, 0xa5, MAX_WGS * args->room);
    for (unsigned w = 0; w < MAX_WGS; w++) {
        uint32_t rows = rows_of(args, w) * in_parts(args->what, n);

        type->fill(board->line, 0, (size_t)rows * args->cols,
                   seed_of(board, me, w));
        lay(view(NULL, rows, args->cols, args->elem_bytes, args->in_layout),
            board->line, board->in + w * args->room);
    }
    return harness_write(board->iris, args->in, board->in,
                         MAX_WGS * args->room) != IRIS_OK;
}

static int play(struct board *board, const struct case_type *type)
{
    iris_t *iris = board->iris;
    struct args *args = &board->args;
    uint32_t n = (uint32_t)iris_group_size(iris, board->group);
    int me = iris_group_index(iris, board->group);

    args->dtype = (int32_t)type->dtype;
    args->elem_bytes = (uint32_t)type->bytes;
    args->root = (uint32_t)(board->round % n);
    args->in_layout = (int32_t)((board->round + (uint64_t)me) % NUM_LAYOUTS);
    args->out_layout =
        args->in_place
            ? args->in_layout
            : (int32_t)((board->round / 3 + (uint64_t)(2 * me)) % NUM_LAYOUTS);
    CHECK_EQUAL(write_in(board, type), 0);
    CHECK_OK(iris_memset(iris, args->out, 0xa5, MAX_WGS * args->room, NULL));
    CHECK_OK(iris_launch(iris, collect, MAX_WGS, 96, args, sizeof *args, NULL));
    CHECK_OK(harness_read(iris, board->out,
                          args->in_place ? args->in : args->out,
                          MAX_WGS * args->room));
    for (unsigned w = 0; w < MAX_WGS; w++) {
        uint32_t rows = rows_of(args, w) * out_parts(args->what, n);

        memset(board->want, 0xa5, args->room);
        if (expect(board, w, type, board->line) != 0) {
            lay(view(NULL, rows, args->cols, args->elem_bytes,
                     args->out_layout),
                board->line, board->want);
        }
        CHECK_EQUAL(check(board, w, board->out + w * args->room), 0);
    }
    board->round++;
    return 0;
}

/* Bytes for n parts, however they lie. */
static size_t room(const struct args *args, size_t elem_bytes, uint32_t n)
{
    size_t bytes = (size_t)(args->rows + 1) * (args->cols + 3) * elem_bytes * n;

    return (bytes + GUARD - 1) / GUARD * GUARD + GUARD;
}

/* Each collective on each shape, types and operations by turns; in a long run
 * all of these. */
static int play_shapes(struct board *board)
{
    static const uint32_t shapes[][2] = {{1, 1},   {1, 300}, {3, 5},
                                         {64, 64}, {33, 17}, {130, 257}};
    size_t types = harness_count(case_num_types, 1), turn = 0;
    int failed = 0;

    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (size_t i = 0; i < NUM_WHATS * types && !failed; i++, turn++) {
            const struct case_type *type =
                &case_types[(turn * 5 + turn / 7) % case_num_types];
            uint32_t n = (uint32_t)iris_group_size(board->iris, board->group);

            board->args.what = (int32_t)(i % NUM_WHATS);
            board->args.rows = shapes[s][0];
            board->args.cols = shapes[s][1];
            board->args.room = room(&board->args, type->bytes, n);
            if (board->args.room > MANY) {
                type = &case_types[turn % 2]; /* of one byte */
                board->args.room = MANY;
            }
            board->args.op = (int32_t)(turn % (type->is_integer ? 7 : 4));
            board->args.in_place =
                board->args.what <= TWO_SHOT && turn % 3 == 0;
            failed = play(board, type);
        }
    }
    return failed;
}

static int play_group(iris_t *iris, iris_group_t *group, char *memory)
{
    struct board board = {.iris = iris, .group = group};
    int failed;

    board.in = (char *)malloc((2 * MAX_WGS + 2) * MANY);
    CHECK(board.in != NULL);
    board.out = board.in + MAX_WGS * MANY;
    board.want = board.out + MAX_WGS * MANY;
    board.line = board.want + MANY;
    board.args.in = memory;
    board.args.out = memory + MAX_WGS * MANY;
    CHECK_OK(
        iris_ccl_device_create(iris, group, MAX_WGS, 1000, &board.args.handle));
    failed = play_shapes(&board);
    free(board.in);
    CHECK_EQUAL(failed, 0);
    return iris_ccl_device_destroy(iris, &board.args.handle);
}

static RANK_TEST(ragged_tiles_have_the_bits_of_streams, 3, ALL_RANKS)
{
    int n = iris_num_ranks(iris), half[CASES_MEMBERS], members = 0;
    iris_group_t *group;
    void *memory;

    CHECK_OK(iris_malloc(iris, 2 * MAX_WGS * MANY, &memory));
    CHECK_EQUAL(play_group(iris, NULL, (char *)memory), 0);
    for (int rank = n - 1; rank >= 0; rank--) { /* two groups, turned around */
        if (rank % 2 == iris_rank(iris) % 2) {
            half[members++] = rank;
        }
    }
    CHECK_OK(iris_group_create(iris, half, members, &group));
    CHECK_EQUAL(play_group(iris, group, (char *)memory), 0);
    return iris_group_destroy(iris, group);
}

static TEST(tiles_of_several_nodes_have_the_same_bits)
{
    static const char *const nodes[] = {"2", "3", "4"};

    for (size_t i = 0; i < sizeof nodes / sizeof nodes[0]; i++) {
        setenv("IRIS_NODES", nodes[i], 1);
        harness_run(4, on_rank_ragged_tiles_have_the_bits_of_streams, NULL);
    }
    setenv("IRIS_NODES", "2", 1);
    harness_run(3, on_rank_ragged_tiles_have_the_bits_of_streams, NULL);
    unsetenv("IRIS_NODES");
}

/* Rank 0 says how; the others' all_reduce is to choose the same, and of one row
 * less the other way. */
static int play_shots(iris_t *iris, void *arg)
{
    struct args args = {.cols = 64, .elem_bytes = 4, .in_place = 1};
    void *memory;

    CHECK_OK(iris_calloc(iris, 1, MANY, &memory));
    CHECK_OK(iris_ccl_device_create(iris, NULL, 1, 8192, &args.handle));
    args.in = args.out = (char *)memory;
    args.dtype = IRIS_DTYPE_I32;
    args.in_layout = PACKED;
    args.what = iris_rank(iris) == 0 ? TWO_SHOT : ALL_REDUCE;
    args.rows = 32;
    CHECK_OK(iris_launch(iris, collect, 1, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    args.rows = 31;
    CHECK_OK(iris_launch(iris, collect, 1, 64, &args, sizeof args, NULL));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
    return iris_clear_error(iris);
}

static TEST(all_reduce_takes_two_shots_for_many_bytes)
{
    harness_run_sim(3, play_shots, NULL);
}

/* ---- Tiles that become ready --------------------------------------------- */

struct ready_args {
    iris_ccl_device_t handle;
    const int64_t *context;
    float *tiles; /* [TILES][4][4] */
    float *sums;
    uint64_t *ready; /* [TILES] */
    uint64_t epochs;
    uint64_t *wrong;
};

#define TILES 5

/* Workgroup 0: makes tile t of epoch e, once its sum has been looked at. */
IRIS_DEVICE void make(iris_wg_t wg, iris_dev_t dev,
                      const struct ready_args *args, uint64_t e, uint32_t t)
{
    iris_wg_tile_await(wg, dev, &args->ready[t], 2 * (e - 1));
    IRIS_WG_LANES (wg, k, 16) {
        args->tiles[t * 16 + k] = (float)(e * (t + k)) + (float)dev.rank;
    }
    iris_wg_tile_ready(wg, dev, &args->ready[t], 2 * e - 1);
}

/* Workgroup 1: reduces it when it is ready, and looks at the sum. */
IRIS_DEVICE void reduce(iris_wg_t wg, iris_dev_t dev, iris_wg_ccl_t *ccl,
                        const struct ready_args *args, uint64_t e, uint32_t t)
{
    iris_tile_t tile = iris_tile(args->tiles + t * 16, 4, 4, 4, 4);
    iris_tile_t sum = iris_tile(args->sums + t * 16, 4, 4, 4, 4);
    uint64_t n = ccl->ccl.count;

    iris_wg_tile_await(wg, dev, &args->ready[t], 2 * e - 1);
    iris_wg_tile_all_reduce(wg, ccl, tile, sum, IRIS_DTYPE_F32,
                            IRIS_REDUCE_SUM);
    IRIS_WG_LANES (wg, k, 16) {
        if (args->sums[t * 16 + k] !=
            (float)(n * e * (t + k) + n * (n - 1) / 2)) {
            iris_store_volatile_u64(dev, args->wrong, e, dev.rank);
        }
    }
    iris_wg_tile_ready(wg, dev, &args->ready[t], 2 * e);
}

/* One makes the last tile first, the other one begins with the first. `ready`
 * counts both, and nothing is reset. */
IRIS_KERNEL(make_and_reduce, struct ready_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    iris_wg_ccl_t ccl = iris_wg_ccl_begin(wg, &args->handle, wg.id);

    for (uint64_t i = 0; i < args->epochs * TILES; i++) {
        uint32_t t = (uint32_t)(i % TILES);

        if (wg.id == 0) {
            make(wg, dev, args, i / TILES + 1, TILES - 1 - t);
        } else {
            reduce(wg, dev, &ccl, args, i / TILES + 1, t);
        }
    }
    iris_wg_ccl_end(wg, &ccl);
}

static RANK_TEST(tiles_are_reduced_when_they_are_ready, 2, 4)
{
    struct ready_args args = {.context = iris_device_context(iris)};
    void *memory;
    uint64_t where;

    args.epochs = harness_count(4000, 60);
    CHECK_OK(iris_calloc(iris, 1, 4096, &memory));
    args.tiles = (float *)memory;
    args.sums = args.tiles + TILES * 16;
    args.ready = (uint64_t *)(args.sums + TILES * 16);
    args.wrong = args.ready + TILES;
    CHECK_OK(iris_ccl_device_create(iris, NULL, 2, 0, &args.handle));
    CHECK_OK(
        iris_launch(iris, make_and_reduce, 2, 64, &args, sizeof args, NULL));
    CHECK_OK(harness_read(iris, &where, args.wrong, sizeof where));
    CHECK_EQUAL(where, 0);
    return iris_ccl_device_destroy(iris, &args.handle);
}

TEST_GROUP(matrix, slow);
