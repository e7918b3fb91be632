/* SPDX-License-Identifier: MIT
 *
 * Tiles that the host puts and gets on a stream: any strides, ragged edges,
 * several in one call, what is refused, and captured, where a device can.
 */
#include "config.h"

#include <iris/iris.h>

#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

#define EDGE 40u /* elements of a side of what is allocated */
#define CELLS ((size_t)EDGE * EDGE)
#define UNTOUCHED 0xeeu

static int right_of(iris_t *iris)
{
    return (iris_rank(iris) + 1) % iris_num_ranks(iris);
}

static int left_of(iris_t *iris)
{
    return (iris_rank(iris) + iris_num_ranks(iris) - 1) % iris_num_ranks(iris);
}

/* Byte `i` of what a rank sends. */
static unsigned char byte_of(int rank, size_t i)
{
    return (unsigned char)((size_t)(rank + 1) * 37 + i * 11 + i / 251);
}

/* How a tile lies: strides in elements, and where its first element is. */
struct lie {
    int64_t row_stride;
    int64_t col_stride;
    uint32_t first;
};

static const struct lie lies[] = {
    {EDGE, 1, 0},                    /* rows */
    {1, EDGE, 3},                    /* columns */
    {13, 1, 5},                      /* rows that nearly touch, or overlap */
    {EDGE, 3, 1},                    /* neither */
    {-(int64_t)EDGE, 1, 30u * EDGE}, /* from below */
    {-(int64_t)EDGE, -1, 30u * EDGE + 20}, /* from the end */
    {EDGE, -1, 20},                        /* mirrored */
    {0, 1, 7}, /* one row again and again: to be read only */
};
#define NUM_LIES (sizeof lies / sizeof lies[0])

static iris_tile_t tile_at(char *base, const struct lie *lie, uint32_t rows,
                           uint32_t cols, uint32_t elem)
{
    uintptr_t at = (uintptr_t)base + (size_t)lie->first * elem; /* or of NULL */
    iris_tile_t tile = iris_tile((void *)at, rows, cols, lie->row_stride, elem);

    tile.col_stride = lie->col_stride;
    return tile;
}

/* What a copy by elements makes of `to`. */
static void copy_by_elements(iris_tile_t to, iris_tile_t from)
{
    for (uint32_t r = 0; r < to.rows && r < from.rows; r++) {
        for (uint32_t c = 0; c < to.cols && c < from.cols; c++) {
            memcpy((char *)to.data +
                       (r * to.row_stride + c * to.col_stride) * to.elem_bytes,
                   (char *)from.data +
                       (r * from.row_stride + c * from.col_stride) *
                           from.elem_bytes,
                   to.elem_bytes);
        }
    }
}

/* Both sides' memory on the heap, and what it must be, on the host. */
struct board {
    iris_t *iris;
    char *out;
    char *in;
    size_t bytes;
    char *sent; /* the sender's */
    char *expected;
    char *seen;
};

static int open_board(iris_t *iris, uint32_t elem, struct board *board_p)
{
    struct board board = {.iris = iris, .bytes = CELLS * elem};

    CHECK_OK(iris_malloc_typed(iris, board.bytes, &board.out));
    CHECK_OK(iris_malloc_typed(iris, board.bytes, &board.in));
    board.sent = malloc(board.bytes);
    board.expected = malloc(board.bytes);
    board.seen = malloc(board.bytes);
    for (size_t i = 0; i < board.bytes; i++) {
        board.sent[i] = (char)byte_of(iris_rank(iris), i);
    }
    CHECK_OK(iris_memcpy_sync(iris, board.out, board.sent, board.bytes));
    for (size_t i = 0; i < board.bytes; i++) {
        board.sent[i] = (char)byte_of(left_of(iris), i);
    }
    *board_p = board;
    return 0;
}

static int close_board(struct board *board)
{
    free(board->sent);
    free(board->expected);
    free(board->seen);
    CHECK_OK(iris_free(board->iris, board->out));
    CHECK_OK(iris_free(board->iris, board->in));
    return 0;
}

static int clear_board(struct board *board)
{
    memset(board->expected, UNTOUCHED, board->bytes);
    CHECK_OK(
        iris_memset(board->iris, board->in, UNTOUCHED, board->bytes, NULL));
    CHECK_OK(iris_barrier(board->iris, NULL, NULL));
    return 0;
}

static int check_board(struct board *board)
{
    CHECK_OK(iris_barrier(board->iris, NULL, NULL));
    CHECK_OK(
        iris_memcpy_sync(board->iris, board->seen, board->in, board->bytes));
    CHECK_EQUAL(memcmp(board->seen, board->expected, board->bytes), 0);
    CHECK_OK(iris_barrier(board->iris, NULL, NULL));
    return 0;
}

/* A put to the right, or a get from the left: the same arrives. */
static int move(struct board *board, iris_tile_t to, iris_tile_t from, int gets)
{
    iris_t *iris = board->iris;
    iris_tile_t sent = from, expected = to;

    sent.data = board->sent + ((char *)from.data - board->out);
    expected.data = board->expected + ((char *)to.data - board->in);
    CHECK_EQUAL(clear_board(board), 0);
    copy_by_elements(expected, sent);
    if (gets) {
        CHECK_OK(iris_tiles_on_stream(iris, IRIS_GET, &to, &from, 1,
                                      left_of(iris), NULL));
    } else {
        CHECK_OK(iris_tiles_on_stream(iris, IRIS_PUT, &to, &from, 1,
                                      right_of(iris), NULL));
    }
    return check_board(board);
}

static int strides_body(iris_t *iris, void *arg)
{
    static const uint32_t elems[] = {1, 4, 12};
    static const uint32_t sizes[][2] = {{1, 1}, {1, 9}, {11, 1}, {7, 9}};
    size_t step = harness_is_long() ? 1 : 3; /* all of them take a while */
    struct board board;
    size_t n = 0;

    for (size_t e = 0; e < sizeof elems / sizeof elems[0]; e++) {
        CHECK_EQUAL(open_board(iris, elems[e], &board), 0);
        for (size_t i = 0; i < NUM_LIES * NUM_LIES * 4; i++) {
            const struct lie *to = &lies[i % NUM_LIES];
            const struct lie *from = &lies[i / NUM_LIES % NUM_LIES];
            const uint32_t *size = sizes[i / NUM_LIES / NUM_LIES];

            if (to == &lies[NUM_LIES - 1] || (n++ + e) % step != 0) {
                continue;
            }
            CHECK_EQUAL(
                move(&board, tile_at(board.in, to, size[0], size[1], elems[e]),
                     tile_at(board.out, from, size[0], size[1], elems[e]),
                     (int)(n % 2)),
                0);
        }
        CHECK_EQUAL(close_board(&board), 0);
    }
    return 0;
}

static TEST(tiles_of_any_strides_arrive)
{
    harness_run_all(strides_body, NULL);
}

/* The blocks of a matrix of 37 by 29, of which those at its edges are smaller,
 * each to its own place, by one call; every other rank gets. */
static int blocks_body(iris_t *iris, void *arg)
{
    enum { ROWS = 37, COLS = 29, BLOCK = 8, MAX = 5 * 4 };
    const struct lie plain = {EDGE, 1, 2};
    iris_tile_t to[MAX], from[MAX];
    size_t count = 0;
    struct board board;

    CHECK_EQUAL(open_board(iris, 4, &board), 0);
    CHECK_EQUAL(clear_board(&board), 0);
    for (uint32_t m = 0; m * BLOCK < ROWS; m++) {
        for (uint32_t n = 0; n * BLOCK < COLS; n++, count++) {
            to[count] = iris_tile_block(
                tile_at(board.in, &plain, ROWS, COLS, 4), m, n, BLOCK, BLOCK);
            from[count] = iris_tile_block(
                tile_at(board.out, &plain, ROWS, COLS, 4), m, n, BLOCK, BLOCK);
            /* What one side has only is left out. */
            (count % 2 == 0 ? &from[count] : &to[count])->rows += 3;
        }
    }
    copy_by_elements(tile_at(board.expected, &plain, ROWS, COLS, 4),
                     tile_at(board.sent, &plain, ROWS, COLS, 4));
    CHECK_EQUAL(count, MAX);
    CHECK_OK(iris_tiles_on_stream(iris, IRIS_PUT, to, from, count,
                                  right_of(iris), NULL));
    CHECK_EQUAL(check_board(&board), 0);
    CHECK_OK(iris_memset(iris, board.in, UNTOUCHED, board.bytes, NULL));
    CHECK_OK(iris_tiles_on_stream(iris, IRIS_GET, to, from, count,
                                  left_of(iris), NULL));
    CHECK_EQUAL(check_board(&board), 0);
    return close_board(&board);
}

static TEST(several_ragged_tiles_go_in_one_call)
{
    harness_run_all(blocks_body, NULL);
}

/* To and from memory of the host, which a GPU copies row by row. */
static int host_body(iris_t *iris, void *arg)
{
    const struct lie plain = {EDGE, 1, 2}, close = {9, 1, 0};
    char host[9 * 7 * 4];
    struct board board;
    iris_tile_t on_heap, on_host = tile_at(host, &close, 7, 9, 4);

    CHECK_EQUAL(open_board(iris, 4, &board), 0);
    CHECK_EQUAL(clear_board(&board), 0);
    on_heap = tile_at(board.out, &plain, 7, 9, 4);
    CHECK_OK(iris_tiles_on_stream(iris, IRIS_GET, &on_host, &on_heap, 1,
                                  left_of(iris), NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    on_heap = tile_at(board.in, &plain, 7, 9, 4);
    CHECK_OK(iris_tiles_on_stream(iris, IRIS_PUT, &on_heap, &on_host, 1,
                                  iris_rank(iris), NULL));
    copy_by_elements(tile_at(board.expected, &plain, 7, 9, 4),
                     tile_at(board.sent, &plain, 7, 9, 4));
    CHECK_EQUAL(check_board(&board), 0);
    return close_board(&board);
}

static TEST(tiles_of_the_hosts_memory_go_and_come)
{
    harness_run_all(host_body, NULL);
}

/* What is refused, and that nothing of the call is enqueued then. */
static RANK_TEST(what_is_wrong_is_refused_before_anything_is_copied, ALL_RANKS)
{
    const struct lie plain = {EDGE, 1, 0};
    const iris_status_t invalid = IRIS_ERR_INVALID;
    int self = iris_rank(iris), ranks = iris_num_ranks(iris);
    struct iris_heap_stats stats;
    char host[64] = {0}, *end;
    struct board board;
    iris_tile_t to[2], from[2], bad;

    CHECK_EQUAL(open_board(iris, 4, &board), 0);
    CHECK_EQUAL(clear_board(&board), 0);
    to[0] = to[1] = tile_at(board.in, &plain, 4, 4, 4);
    from[0] = from[1] = tile_at(board.out, &plain, 4, 4, 4);
#define REFUSED(dst, src, rank)                                              \
    CHECK_STATUS(                                                            \
        iris_tiles_on_stream(iris, IRIS_PUT, (dst), (src), 1, (rank), NULL), \
        invalid)
    REFUSED(NULL, from, self);
    REFUSED(to, NULL, self);
    REFUSED(to, from, -1);
    REFUSED(to, from, ranks);
    bad = tile_at(host, &plain, 1, 4, 4);
    REFUSED(&bad, from, self); /* not symmetric */
    bad = tile_at(board.out, &plain, 4, 4, 2);
    REFUSED(to, &bad, self); /* elements of another size */
    bad.elem_bytes = 0;
    REFUSED(&bad, &bad, self);
    bad = tile_at(board.in, &plain, 4, 4, 4);
    bad.row_stride = (int64_t)1 << 40; /* past the heap's end */
    REFUSED(&bad, from, self);
    bad.row_stride = -bad.row_stride; /* ahead of its start */
    REFUSED(&bad, from, self);
    bad.row_stride = INT64_MAX; /* more than there can be */
    REFUSED(&bad, from, self);
    REFUSED(to, &bad, self);
    CHECK_OK(iris_heap_stats(iris, &stats));
    end = (char *)(uintptr_t)iris_heap_bases(iris)[self] + stats.reserved_bytes;
    bad = tile_at(end - 12, &plain, 1, 4, 4); /* by one element */
    CHECK_BAD(iris,
              iris_tiles_on_stream(iris, IRIS_PUT, &bad, from, 1, self, NULL),
              IRIS_ERR_INVALID, "16 bytes at dst", "go past the end");
    bad = tile_at(end - stats.reserved_bytes, &plain, 2, 4, 4);
    bad.row_stride = -8; /* by a row, ahead of the heap */
    CHECK_STATUS(iris_tiles_on_stream(iris, IRIS_GET, to, &bad, 1, self, NULL),
                 invalid);
#undef REFUSED
    to[1].elem_bytes = from[1].elem_bytes = 0;
    CHECK_STATUS(iris_tiles_on_stream(iris, IRIS_PUT, to, from, 2, self, NULL),
                 invalid);
    CHECK_STATUS(iris_tiles_on_stream(iris, IRIS_GET, to, from, 2, self, NULL),
                 invalid);
    /* Nothing to copy is fine wherever it is. */
    bad = tile_at(NULL, &plain, 0, 4, 4);
    CHECK_OK(iris_tiles_on_stream(iris, IRIS_PUT, &bad, from, 1, self, NULL));
    CHECK_OK(iris_tiles_on_stream(iris, IRIS_PUT, NULL, NULL, 0, self, NULL));
    CHECK_EQUAL(check_board(&board), 0);
    return close_board(&board);
}

/* A graph plays its tiles again. */
static RANK_TEST(a_graph_plays_its_tiles_again, ALL_RANKS)
{
    const struct lie plain = {EDGE, 1, 1}, turned = {1, EDGE, 0};
    iris_stream_t *stream;
    iris_graph_t *graph;
    struct board board;
    iris_tile_t to, from;
    iris_status_t status;

    CHECK_OK(iris_stream_create(iris, &stream));
    status = iris_capture_begin(iris, stream);
    if (status == IRIS_ERR_UNSUPPORTED) {
        iris_stream_destroy(iris, stream);
        return 0;
    }
    CHECK_OK(status);
    CHECK_EQUAL(open_board(iris, 4, &board), 0);
    to = tile_at(board.in, &plain, 6, 5, 4);
    from = tile_at(board.out, &turned, 6, 5, 4);
    CHECK_OK(iris_tiles_on_stream(iris, IRIS_PUT, &to, &from, 1, right_of(iris),
                                  stream));
    CHECK_OK(iris_capture_end(iris, stream, &graph));
    for (int round = 0; round < 3; round++) {
        CHECK_EQUAL(clear_board(&board), 0);
        copy_by_elements(tile_at(board.expected, &plain, 6, 5, 4),
                         tile_at(board.sent, &turned, 6, 5, 4));
        CHECK_OK(iris_graph_launch(iris, graph, stream));
        CHECK_OK(iris_stream_synchronize(iris, stream));
        CHECK_EQUAL(check_board(&board), 0);
    }
    iris_graph_destroy(iris, graph);
    iris_stream_destroy(iris, stream);
    return close_board(&board);
}

/* Behind a tile its signal, as behind any put. */
static int signal_body(iris_t *iris, void *arg)
{
    const struct lie plain = {EDGE, 1, 0};
    uint64_t rounds = harness_count(200, 20), *arrived;
    struct board board;
    iris_tile_t to, from;

    CHECK_EQUAL(open_board(iris, 4, &board), 0);
    CHECK_OK(iris_calloc_typed(iris, 2, &arrived));
    to = tile_at(board.in, &plain, EDGE, EDGE - 1, 4);
    from = tile_at(board.out, &plain, EDGE, EDGE - 1, 4);
    memset(board.expected, UNTOUCHED, board.bytes);
    copy_by_elements(tile_at(board.expected, &plain, EDGE, EDGE - 1, 4),
                     tile_at(board.sent, &plain, EDGE, EDGE - 1, 4));
    for (uint64_t round = 1; round <= rounds; round++) {
        CHECK_OK(iris_memset(iris, board.in, UNTOUCHED, board.bytes, NULL));
        CHECK_OK(iris_signal_on_stream(iris, &arrived[1], round, left_of(iris),
                                       NULL));
        CHECK_OK(
            iris_wait_on_stream(iris, &arrived[1], IRIS_CMP_EQ, round, NULL));
        CHECK_OK(iris_tiles_on_stream(iris, IRIS_PUT, &to, &from, 1,
                                      right_of(iris), NULL));
        CHECK_OK(iris_signal_on_stream(iris, &arrived[0], round, right_of(iris),
                                       NULL));
        CHECK_OK(
            iris_wait_on_stream(iris, &arrived[0], IRIS_CMP_EQ, round, NULL));
        CHECK_OK(iris_memcpy_sync(iris, board.seen, board.in, board.bytes));
        CHECK_EQUAL(memcmp(board.seen, board.expected, board.bytes), 0);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, arrived));
    return close_board(&board);
}

static TEST(a_signal_never_overtakes_a_tile)
{
    harness_run_all(signal_body, NULL);
}

/* From each rank's heap to each other's, there and back. */
static RANK_TEST(addresses_translate_between_any_two_heaps, ALL_RANKS)
{
    int ranks = iris_num_ranks(iris);
    void *there, *back;
    char *own, outside;

    CHECK_OK(iris_malloc_typed(iris, 64, &own));
    for (int from = 0; from < ranks; from++) {
        void *start;

        CHECK_OK(iris_as_remote(iris, own + 5, from, &start));
        for (int to = 0; to < ranks; to++) {
            CHECK_OK(iris_as_remote(iris, own + 5, to, &back));
            CHECK_OK(iris_translate(iris, start, from, to, &there));
            CHECK_EQUAL(there == back, 1);
        }
        CHECK_STATUS(iris_translate(iris, start, from, ranks, &there),
                     IRIS_ERR_INVALID);
        CHECK_BAD(iris, iris_translate(iris, &outside, from, 0, &there),
                  IRIS_ERR_INVALID, "is not on rank", "pass a pointer into it");
    }
    CHECK_STATUS(iris_translate(iris, own, -1, 0, &there), IRIS_ERR_INVALID);
    CHECK_STATUS(iris_translate(iris, own, 0, 0, NULL), IRIS_ERR_INVALID);
    CHECK_OK(iris_free(iris, own));
    return 0;
}

/* There is no address on the other side, and the values are the same. */
static TEST(tiles_reach_ranks_of_other_nodes)
{
    static const iris_rank_fn bodies[] = {strides_body, blocks_body,
                                          signal_body, host_body};

    setenv("IRIS_NODES", "2", 1);
    /* A GPU's kernel cannot read the host's memory. */
    for (size_t i = 0; i < (harness_has_gpu() ? 3 : 4); i++) {
        harness_run(2, bodies[i], NULL);
        harness_run(4, bodies[i], NULL);
    }
    unsetenv("IRIS_NODES");
}

TEST_GROUP(rank);
