/* SPDX-License-Identifier: MIT
 *
 * Tiles: every element size, layout and way, to every rank; nothing but the
 * tile's elements is touched.
 */
#include "config.h"

#include "support/matrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGION ((size_t)1 << 20)
#define LEAD ((size_t)4096) /* ahead of a region's first element */

enum way { PUT, GET, LOAD, STORE, PUT_SIGNAL, PUT_SIGNAL_ADD, NUM_WAYS };

/* Element strides of both sides. */
enum layout { ROWS, PACKED, COLUMNS, TURNED, STRIDED, REVERSED, NUM_LAYOUTS };

static const uint32_t shapes[][2] = {{1, 1}, {1, 33},  {33, 1},
                                     {7, 5}, {64, 64}, {130, 257}};
#define NUM_SHAPES (sizeof shapes / sizeof shapes[0])
#define NUM_CASES ((unsigned)NUM_SHAPES * 4 * NUM_LAYOUTS)

struct args {
    const int64_t *context;
    uint64_t *signals;
    iris_tile_t from;
    iris_tile_t to;
    uint64_t value; /* of the signal */
    int32_t to_rank;
    int32_t from_rank;
    uint32_t way;
    uint32_t unused;
};

IRIS_KERNEL(move, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    switch (args->way) {
    case PUT:
        iris_wg_tile_put(wg, dev, args->from, args->to, args->to_rank);
        break;
    case GET:
        iris_wg_tile_get(wg, dev, args->from, args->to, args->from_rank);
        break;
    case LOAD:
        iris_wg_tile_load(wg, dev, args->from, args->to.data, args->from_rank);
        break;
    case STORE:
        iris_wg_tile_store(wg, dev, args->to, args->from.data, args->to_rank);
        break;
    case PUT_SIGNAL:
        iris_wg_tile_put_signal(wg, dev, args->from, args->to,
                                &args->signals[0], args->value, args->to_rank);
        (void)iris_wait_until(dev, &args->signals[0], IRIS_CMP_EQ, args->value);
        break;
    default:
        iris_wg_tile_put_signal_add(wg, dev, args->from, args->to,
                                    &args->signals[1], 1, args->to_rank);
        (void)iris_wait_until(dev, &args->signals[1], IRIS_CMP_EQ, args->value);
    }
}

static void set_strides(struct args *args, enum layout layout)
{
    int64_t rows = args->to.rows, cols = args->to.cols;
    const int64_t strides[NUM_LAYOUTS][4] = {
        [ROWS] = {cols + 3, 1, cols + 5, 1},
        [PACKED] = {cols, 1, cols, 1},
        [COLUMNS] = {1, rows + 1, 1, rows + 2},
        [TURNED] = {cols + 1, 1, 1, rows},
        [STRIDED] = {2 * cols + 1, 2, 1, 2 * rows},
        [REVERSED] = {-(cols + 2), 1, cols + 2, 1},
    };

    args->from.row_stride = strides[layout][0];
    args->from.col_stride = strides[layout][1];
    args->to.row_stride = strides[layout][2];
    args->to.col_stride = strides[layout][3];
    if (layout == ROWS && args->way != LOAD) { /* more than `to` has room for */
        args->from.rows += 1;
        args->from.cols += 2;
    } else if (layout == REVERSED) {
        args->from.data = (char *)args->from.data +
                          (rows - 1) * (cols + 2) * args->from.elem_bytes;
    }
}

/* The tiles of case i, in the two regions. */
static struct args case_of(const struct args *all, unsigned i)
{
    const uint32_t *shape = shapes[i / (4 * NUM_LAYOUTS)];
    uint32_t elem = 1u << i / NUM_LAYOUTS % 4;
    size_t shift = LEAD + elem * (i % 17);
    struct args args = *all;

    args.way = (i + i / NUM_LAYOUTS) % NUM_WAYS;
    args.from =
        iris_tile((char *)all->from.data + shift, shape[0], shape[1], 0, elem);
    args.to = iris_tile((char *)all->to.data + LEAD + elem * (i % 5), shape[0],
                        shape[1], 0, elem);
    set_strides(&args, (enum layout)(i % NUM_LAYOUTS));
    if (args.way == LOAD) {
        args.to.row_stride = args.to.cols;
        args.to.col_stride = 1;
    } else if (args.way == STORE) {
        args.from = iris_tile((char *)all->from.data + shift, shape[0],
                              shape[1], shape[1], elem);
    }
    return args;
}

static size_t place(const iris_tile_t *tile, const void *region, uint32_t r,
                    uint32_t c)
{
    ptrdiff_t first = (char *)tile->data - (const char *)region;

    return (size_t)(first + (r * tile->row_stride + c * tile->col_stride) *
                                (int64_t)tile->elem_bytes);
}

/* What the target region has to be. */
static void expect(const struct args *all, const struct args *args, unsigned i,
                   unsigned char *want)
{
    memset(want, 0xa5, REGION);
    for (uint32_t r = 0; r < args->to.rows; r++) {
        for (uint32_t c = 0; c < args->to.cols; c++) {
            size_t from = place(&args->from, all->from.data, r, c);
            size_t to = place(&args->to, all->to.data, r, c);

            for (size_t b = 0; b < args->to.elem_bytes; b++) {
                want[to + b] =
                    (unsigned char)matrix_mark(args->from_rank, from + b, i);
            }
        }
    }
}

static size_t used(const struct args *args)
{
    size_t elems = (size_t)(args->to.rows + 2) * (args->to.cols + 6) * 2;

    return LEAD + 64 * 8 + elems * args->to.elem_bytes;
}

static int play_case(struct matrix *matrix, struct args *all, unsigned i,
                     unsigned char *bytes)
{
    iris_t *iris = matrix->iris;
    int n = iris_num_ranks(iris), rank = iris_rank(iris), by = (int)i % n;
    unsigned char *want = bytes + REGION;
    struct args args;
    size_t size;

    all->to_rank = (rank + by) % n;
    all->from_rank = (rank + n - by) % n;
    args = case_of(all, i);
    size = used(&args);
    args.value = args.way == PUT_SIGNAL_ADD ? ++all->value : i + 1;
    for (size_t b = 0; b < size; b++) {
        bytes[b] = (unsigned char)matrix_mark(rank, b, i);
    }
    CHECK_OK(harness_write(iris, all->from.data, bytes, size));
    CHECK_OK(iris_memset(iris, all->to.data, 0xa5, size, NULL));
    CHECK_OK(matrix_meet(matrix));
    CHECK_OK(iris_launch(iris, move, 1, 192, &args, sizeof args, NULL));
    if (args.way < PUT_SIGNAL) { /* a signal says enough */
        CHECK_OK(matrix_meet(matrix));
    }
    CHECK_OK(harness_read(iris, bytes, all->to.data, size));
    expect(all, &args, i, want);
    for (size_t b = 0; b < size; b++) {
        if (bytes[b] != want[b]) {
            char text[80];

            snprintf(text, sizeof text, "case %u, way %u: byte %zu", i,
                     args.way, b);
            return harness_failed(__FILE__, __LINE__, text, bytes[b], want[b]);
        }
    }
    return 0;
}

static RANK_TEST(tiles_of_every_layout_arrive_and_touch_nothing_else, ALL_RANKS)
{
    struct matrix matrix = {0};
    struct args all = {0};
    unsigned char *bytes = (unsigned char *)malloc(2 * REGION);
    void *from, *to, *signals;
    int failed = bytes == NULL;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_malloc(iris, REGION, &from));
    CHECK_OK(iris_malloc(iris, REGION, &to));
    CHECK_OK(iris_calloc(iris, 2, sizeof(uint64_t), &signals));
    all.context = iris_device_context(iris);
    all.from.data = from;
    all.to.data = to;
    all.signals = (uint64_t *)signals;
    for (unsigned i = 0; i < NUM_CASES && !failed; i++) {
        failed = play_case(&matrix, &all, i, bytes);
    }
    free(bytes);
    return failed;
}

/* Tiles of no elements need no address, and signal all the same. */
IRIS_KERNEL(move_nothing, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    iris_tile_t none = iris_tile(NULL, 0, 4, 4, 4);

    iris_wg_tile_put(wg, dev, none, none, args->to_rank);
    iris_wg_tile_get(wg, dev, none, iris_tile_transposed(none), args->to_rank);
    iris_wg_tile_put_signal(wg, dev, none, none, args->signals, 1,
                            args->to_rank);
    (void)iris_wait_until(dev, args->signals, IRIS_CMP_EQ, 1);
}

static RANK_TEST(a_tile_of_no_elements_signals, ALL_RANKS)
{
    struct args args = {0};
    void *signals;

    CHECK_OK(iris_calloc(iris, 1, sizeof(uint64_t), &signals));
    args.context = iris_device_context(iris);
    args.signals = (uint64_t *)signals;
    args.to_rank = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    CHECK_OK(iris_launch(iris, move_nothing, 1, 64, &args, sizeof args, NULL));
    return iris_stream_synchronize(iris, NULL);
}

static void check_block(uint32_t m, uint32_t n, uint32_t rows, uint32_t cols)
{
    static double values[130 * 300];
    iris_tile_t view = iris_tile(values, 130, 257, 300, sizeof(double));
    iris_tile_t tile = iris_tile_block(view, m, n, 64, 128);

    assert_int_equal(tile.rows, rows);
    assert_int_equal(tile.cols, cols);
    assert_int_equal(tile.row_stride, 300);
    assert_int_equal(tile.elem_bytes, sizeof(double));
    if (rows != 0) {
        assert_ptr_equal(tile.data, &values[64 * m * 300 + 128 * n]);
    }
}

static TEST(blocks_end_with_their_view)
{
    check_block(0, 0, 64, 128);
    check_block(1, 1, 64, 128);
    check_block(2, 0, 2, 128);
    check_block(0, 2, 64, 1);
    check_block(2, 2, 2, 1);
    check_block(3, 0, 0, 0);
    check_block(0, 3, 0, 0);
    check_block(UINT32_MAX, UINT32_MAX, 0, 0);
}

TEST_GROUP(matrix);
