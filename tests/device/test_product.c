/* SPDX-License-Identifier: MIT
 *
 * Products of tiles: in order the bits of a plain loop, else within what f32
 * sums may differ by; every type, layout, edge and number of lanes. Nothing but
 * the result's elements is written.
 */
#include "config.h"

#include "support/matrix.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGION ((size_t)1 << 17) /* bytes of each operand and of the result */
#define PAD 8u                   /* elements ahead of the result */

/* How a, b and the result lie: by rows, by columns, with gaps in both. */
enum layout { ROWS, COLUMNS, GAPS, NUM_LAYOUTS };

static const uint32_t shapes[][3] = {
    {1, 1, 1},    {64, 64, 96}, {37, 53, 131},
    {16, 48, 32}, {40, 8, 257}, {5, 64, 0},
};
static const iris_dtype_t dtypes[] = {IRIS_DTYPE_F32, IRIS_DTYPE_F16,
                                      IRIS_DTYPE_BF16};
static const unsigned lanes[] = {256, 64, 100, 31, 512};
#define NUM_SHAPES (sizeof shapes / sizeof shapes[0])
#define NUM_CASES ((unsigned)NUM_SHAPES * 3 * 2 * NUM_LAYOUTS)

struct args {
    const int64_t *context;
    iris_tile_t a;
    iris_tile_t b;
    iris_tile_t c; /* symmetric */
    uint32_t cut;  /* of k: the rest is a second call's */
    int32_t dtype;
    int32_t in_order;
    int32_t to_rank;
};

/* A type that the compiler knows makes the code that programs have. */
/* clang-format off */
#define PRODUCT(NAME)                                                          \
    if (args->dtype == IRIS_DTYPE_##NAME && args->in_order) {                  \
        iris_wg_tile_product_in_order(wg, sums, a, b, IRIS_DTYPE_##NAME);      \
    } else if (args->dtype == IRIS_DTYPE_##NAME) {                             \
        iris_wg_tile_product(wg, sums, a, b, IRIS_DTYPE_##NAME);               \
    }
/* clang-format on */

IRIS_KERNEL(multiply, struct args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_dev_t dev = iris_dev_init(args->context);

    iris_wg_tile_sums_zero(wg, sums);
    for (uint32_t call = 0; call < 2; call++) {
        iris_tile_t a = args->a, b = args->b;
        uint32_t k = call == 0 ? 0 : args->cut;

        a.cols = b.rows = call == 0 ? args->cut : a.cols - k;
        a.data = (char *)a.data + k * a.col_stride * (int64_t)a.elem_bytes;
        b.data = (char *)b.data + k * b.row_stride * (int64_t)b.elem_bytes;
        PRODUCT(F32)
        PRODUCT(F16)
        PRODUCT(BF16)
    }
    iris_wg_tile_sums_put(wg, dev, sums, args->c, (iris_dtype_t)args->dtype,
                          args->to_rank);
}

static void set_strides(iris_tile_t *tile, enum layout layout, unsigned i)
{
    int64_t rows = tile->rows, cols = tile->cols;
    const int64_t strides[NUM_LAYOUTS][2] = {
        [ROWS] = {cols + i % 3, 1},
        [COLUMNS] = {1, rows + i % 5},
        [GAPS] = {2 * cols + 1, 2},
    };

    tile->row_stride = strides[layout][0];
    tile->col_stride = strides[layout][1];
}

static float element(const void *at, iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F32 ? *(const float *)at
           : dtype == IRIS_DTYPE_F16
               ? iris_f16_to_f32(*(const iris_f16_t *)at)
               : iris_bf16_to_f32(*(const iris_bf16_t *)at);
}

static void set_element(void *at, iris_dtype_t dtype, float value)
{
    if (dtype == IRIS_DTYPE_F32) {
        *(float *)at = value;
    } else if (dtype == IRIS_DTYPE_F16) {
        *(iris_f16_t *)at = iris_f16_from_f32(value);
    } else {
        *(iris_bf16_t *)at = iris_bf16_from_f32(value);
    }
}

/* Where element (r, c) of a tile on the heap is in the host's copy. */
static char *at(const iris_tile_t *tile, char *host, const void *region,
                uint32_t r, uint32_t c)
{
    ptrdiff_t first = (char *)tile->data - (const char *)region;

    return host + first +
           (r * tile->row_stride + c * tile->col_stride) *
               (int64_t)tile->elem_bytes;
}

/* One element as the host has it, and how far away it may be. */
static float expected(const struct args *args, char *host, char *heap,
                      uint32_t r, uint32_t c, double *bound_p)
{
    iris_dtype_t dtype = (iris_dtype_t)args->dtype;
    double exact = 0, size = 0;
    float sum = 0;
    const double last = dtype == IRIS_DTYPE_F32   ? 0x1p-24
                        : dtype == IRIS_DTYPE_F16 ? 0x1p-11
                                                  : 0x1p-8;

    for (uint32_t k = 0; k < args->a.cols; k++) {
        float x = element(at(&args->a, host, heap, r, k), dtype);
        float y =
            element(at(&args->b, host + REGION, heap + REGION, k, c), dtype);

        sum += iris_d_product_f32(x, y);
        exact += (double)x * y;
        size += fabs((double)x * y);
    }
    *bound_p = args->a.cols * 0x1p-23 * size + last * fabs(exact) + 0x1p-25;
    return args->in_order ? sum : (float)exact;
}

static int check_element(const struct args *args, char *host, char *heap,
                         uint32_t r, uint32_t c, unsigned i)
{
    iris_dtype_t dtype = (iris_dtype_t)args->dtype;
    char *seen = at(&args->c, host + 2 * REGION, heap + 2 * REGION, r, c);
    float value = element(seen, dtype), rounded;
    double bound;
    float want = expected(args, host, heap, r, c, &bound);
    int good = fabs(value - (double)want) <= bound;

    if (args->in_order) {
        set_element(&rounded, dtype, want);
        good = memcmp(&rounded, seen, args->c.elem_bytes) == 0;
    }
    if (!good) {
        char text[100];

        snprintf(text, sizeof text, "case %u, element (%u, %u): %.9g, not %.9g",
                 i, r, c, value, want);
        return harness_failed(__FILE__, __LINE__, text, 0, 1);
    }
    memset(seen, 0xa5, args->c.elem_bytes); /* as what is around it */
    return 0;
}

static struct args case_of(const struct args *all, char *heap, unsigned i)
{
    const uint32_t *shape = shapes[i / 6 / NUM_LAYOUTS];
    struct args args = *all;
    uint32_t elem;

    args.dtype = (int32_t)dtypes[i % 3];
    args.in_order = (int32_t)(i / 3 % 2);
    elem = args.dtype == IRIS_DTYPE_F32 ? 4 : 2;
    args.a = iris_tile(heap, shape[0], shape[2], 0, elem);
    args.b = iris_tile(heap + REGION, shape[2], shape[1], 0, elem);
    args.c =
        iris_tile(heap + 2 * REGION + PAD * elem, shape[0], shape[1], 0, elem);
    set_strides(&args.a, (enum layout)(i / 6 % NUM_LAYOUTS), i);
    set_strides(&args.b, (enum layout)((i / 6 + i) % NUM_LAYOUTS), i);
    set_strides(&args.c, (enum layout)((i / 6 + 1) % NUM_LAYOUTS), i);
    args.cut = i % 4 == 0 ? 0 : shape[2] * (i % 4) / 5;
    return args;
}

static int play_case(iris_t *iris, const struct args *all, char *heap,
                     char *host, unsigned i)
{
    struct args args = case_of(all, heap, i);
    size_t count = 2 * REGION / args.c.elem_bytes;

    for (size_t e = 0; e < count; e++) { /* on all ranks the same */
        set_element(host + e * args.c.elem_bytes, (iris_dtype_t)args.dtype,
                    (float)(int32_t)matrix_mark(0, e, i) * 0x1p-31f);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL)); /* the peer has read its result */
    CHECK_OK(harness_write(iris, heap, host, 2 * REGION));
    CHECK_OK(iris_memset(iris, heap + 2 * REGION, 0xa5, REGION, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_launch(iris, multiply, 1,
                         lanes[i % (sizeof lanes / sizeof lanes[0])], &args,
                         sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, host + 2 * REGION, heap + 2 * REGION, REGION));
    for (uint32_t r = 0; r < args.c.rows; r++) {
        for (uint32_t c = 0; c < args.c.cols; c++) {
            CHECK_EQUAL(check_element(&args, host, heap, r, c, i), 0);
        }
    }
    for (size_t b = 2 * REGION; b < 3 * REGION; b++) {
        CHECK_EQUAL((unsigned char)host[b], 0xa5);
    }
    return 0;
}

static RANK_TEST(products_of_every_layout_are_right_and_in_order_exact, 2)
{
    struct args all = {.context = iris_device_context(iris)};
    char *host = (char *)malloc(3 * REGION);
    void *heap;
    int failed = host == NULL;

    all.to_rank = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    CHECK_OK(iris_malloc(iris, 3 * REGION, &heap));
    for (unsigned i = 0; i < NUM_CASES && !failed; i++) {
        failed = play_case(iris, &all, (char *)heap, host, i);
    }
    free(host);
    return failed;
}

/* A type without products, and one without elements of its own. */
IRIS_KERNEL(multiply_nothing, struct args)
{
    IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES (wg, i, IRIS_SUMS_ROWS * IRIS_SUMS_COLS) {
        sums->values[i / IRIS_SUMS_COLS][i % IRIS_SUMS_COLS] = 7;
    }
    iris_wg_tile_product(wg, sums, args->a, args->b, IRIS_DTYPE_I32);
    iris_wg_tile_product_in_order(wg, sums, args->a, args->b, IRIS_DTYPE_F64);
    iris_wg_tile_sums_put(wg, dev, sums, args->a, IRIS_DTYPE_I32, dev.rank);
    iris_wg_tile_sums_put(wg, dev, sums, args->c, IRIS_DTYPE_F32, dev.rank);
}

static RANK_TEST(other_types_and_larger_tiles_leave_the_rest_alone, 1)
{
    struct args args = {.context = iris_device_context(iris)};
    float host[1 << 14];
    void *heap;

    CHECK_OK(iris_calloc(iris, 2, sizeof host, &heap));
    args.a = iris_tile(heap, 8, 8, 8, 4);
    args.b = args.a;
    /* More than the sums are. */
    args.c = iris_tile((char *)heap + sizeof host, 80, 128, 128, 4);
    CHECK_OK(
        iris_launch(iris, multiply_nothing, 1, 256, &args, sizeof args, NULL));
    CHECK_OK(harness_read(iris, host, heap, sizeof host));
    for (size_t i = 0; i < 1 << 14; i++) {
        CHECK_EQUAL((int)host[i], 0);
    }
    CHECK_OK(harness_read(iris, host, args.c.data, sizeof host));
    for (uint32_t i = 0; i < 1 << 14; i++) {
        int inside = i / 128 < IRIS_SUMS_ROWS && i % 128 < IRIS_SUMS_COLS;

        CHECK_EQUAL((int)host[i], inside ? 7 : 0);
    }
    return 0;
}

TEST_GROUP(rank);
