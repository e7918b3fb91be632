/* SPDX-License-Identifier: MIT
 *
 * Memory formats, copies between any strides, and tensors as text.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <string.h>

/* ---- Formats ---- */

static int has_strides(const iris_tensor_t *tensor, const int64_t *strides)
{
    for (int i = 0; i < tensor->ndim; i++) {
        CHECK_EQUAL(tensor->strides[i], strides[i]);
    }
    return 0;
}

static const int64_t last[] = {60, 1, 15, 3};
static const int64_t dense[] = {60, 20, 5, 1};
static const int64_t last_3d[] = {120, 1, 60, 15, 3};

static int formats(iris_t *iris, void *arg)
{
    struct iris_tensor_options options;
    const int order[] = {0, 3, 1, 2};
    iris_tensor_t made, like, part;

    iris_tensor_options_init(&options);
    options.format = IRIS_FORMAT_CHANNELS_LAST;
    CHECK_OK(iris_empty(iris, IRIS_SHAPE(2, 3, 4, 5), &options, &made));
    CHECK_EQUAL(has_strides(&made, last), 0);
    CHECK(iris_tensor_is_contiguous(&made, IRIS_FORMAT_CHANNELS_LAST));
    CHECK(!iris_tensor_is_contiguous(&made, IRIS_FORMAT_CONTIGUOUS));
    CHECK(!iris_tensor_is_contiguous(&made, IRIS_FORMAT_PRESERVE));
    /* Preserved, asked for, and not. */
    CHECK_OK(iris_zeros_like(iris, &made, NULL, &like));
    CHECK_EQUAL(has_strides(&like, last), 0);
    CHECK(harness_holds(iris, like.data, iris_tensor_bytes(&like), 0));
    CHECK_OK(iris_tensor_free(iris, &like));
    options.format = IRIS_FORMAT_CONTIGUOUS;
    CHECK_OK(iris_zeros_like(iris, &made, &options, &like));
    CHECK_EQUAL(has_strides(&like, dense), 0);
    CHECK_OK(iris_tensor_free(iris, &like));
    /* A part of it is not dense: the order is preserved, without gaps. */
    CHECK_OK(iris_tensor_slice(&made, 3, 0, 2, 1, &part));
    CHECK_OK(iris_zeros_like(iris, &part, NULL, &like));
    CHECK_EQUAL(has_strides(&like, (const int64_t[]){24, 1, 6, 3}), 0);
    CHECK_OK(iris_tensor_free(iris, &like));
    /* As a dense one of any order is. */
    CHECK_OK(iris_tensor_permute(&made, order, &part));
    CHECK_OK(iris_zeros_like(iris, &part, NULL, &like));
    CHECK_EQUAL(has_strides(&like, (const int64_t[]){60, 3, 1, 15}), 0);
    CHECK_OK(iris_tensor_free(iris, &like));
    CHECK_OK(iris_tensor_free(iris, &made));
    options.format = IRIS_FORMAT_CHANNELS_LAST_3D;
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(2, 3, 2, 4, 5), &options, &made));
    CHECK_EQUAL(has_strides(&made, last_3d), 0);
    CHECK_OK(iris_tensor_free(iris, &made));
    /* Of another number of dimensions: contiguous. */
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(2, 3, 4, 5), &options, &made));
    CHECK_EQUAL(has_strides(&made, dense), 0);
    return iris_tensor_free(iris, &made) != IRIS_OK;
}

static TEST(formats_are_strides_and_are_preserved)
{
    harness_run_all(formats, NULL);
}

/* ---- Copies ---- */

#define SIZE0 3
#define SIZE1 5
#define SIZE2 7
#define COUNT (SIZE0 * SIZE1 * SIZE2)

/* Fills all but what is there with 7, copies the numbers to it and back into a
 * row, and looks. */
static int there_and_back(iris_t *iris, const iris_tensor_t *row,
                          const iris_tensor_t *part, const iris_tensor_t *all)
{
    struct iris_tensor_options options;
    size_t bytes = iris_tensor_bytes(row);
    static _Thread_local unsigned char before[COUNT * 16], after[COUNT * 16];
    iris_tensor_t shaped, back, result;

    iris_tensor_options_init(&options);
    options.dtype = (int)row->dtype;
    CHECK_OK(harness_read(iris, before, row->data, bytes));
    CHECK_OK(iris_empty(iris, IRIS_SHAPE(COUNT), &options, &back));
    options.out = all;
    CHECK_OK(iris_full(iris, IRIS_SHAPE(all->shape[0]), iris_value_int(1),
                       &options, &result));
    CHECK_OK(
        iris_tensor_reshape(row, IRIS_SHAPE(SIZE0, SIZE1, SIZE2), &shaped));
    CHECK_OK(iris_tensor_copy(iris, part, &shaped, NULL));
    CHECK_OK(
        iris_tensor_reshape(&back, IRIS_SHAPE(SIZE0, SIZE1, SIZE2), &shaped));
    CHECK_OK(iris_tensor_copy(iris, &shaped, part, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(harness_read(iris, after, back.data, bytes));
    CHECK_EQUAL(memcmp(before, after, bytes), 0);
    return iris_tensor_free(iris, &back) != IRIS_OK;
}

/* Ones in `all` beside the part: what the copy has left alone. */
static int count_ones(iris_t *iris, const iris_tensor_t *all, int64_t *count_p)
{
    static _Thread_local unsigned char bytes[8 * COUNT * 16];
    unsigned char one[16];
    size_t width = iris_dtype_size(all->dtype);

    CHECK_OK(harness_read(iris, bytes, all->data, iris_tensor_bytes(all)));
    memcpy(one, bytes + iris_tensor_bytes(all) - width, width); /* outside */
    *count_p = 0;
    for (int64_t i = 0; i < iris_tensor_numel(all); i++) {
        *count_p += memcmp(bytes + (size_t)i * width, one, width) == 0;
    }
    return 0;
}

static int copy_dtype(iris_t *iris, iris_dtype_t dtype)
{
    const int orders[][3] = {{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {2, 0, 1}};
    struct iris_tensor_options options;
    iris_tensor_t row, all, part;
    int64_t ones;

    iris_tensor_options_init(&options);
    options.dtype = (int)dtype;
    CHECK_OK(iris_linspace(iris, iris_value_int(2), iris_value_int(120), COUNT,
                           &options, &row));
    CHECK_OK(iris_empty(iris, IRIS_SHAPE(8 * COUNT), &options, &all));
    for (int i = 0; i < 4; i++) {
        int64_t sizes[3] = {0};
        const int64_t of[] = {SIZE0, SIZE1, SIZE2};
        int inverse[3];

        for (int k = 0; k < 3; k++) {
            sizes[orders[i][k]] = 2 * of[k];
            inverse[k] = orders[i][k];
        }
        CHECK_OK(iris_tensor_reshape(
            &all, IRIS_SHAPE(sizes[0], sizes[1], sizes[2]), &part));
        for (int k = 0; k < 3; k++) {
            CHECK_OK(iris_tensor_slice(&part, k, 0, INT64_MAX, 2, &part));
        }
        CHECK_OK(iris_tensor_permute(&part, inverse, &part));
        CHECK_EQUAL(there_and_back(iris, &row, &part, &all), 0);
        CHECK_EQUAL(count_ones(iris, &all, &ones), 0);
        CHECK_EQUAL(ones, 7 * COUNT);
    }
    CHECK_OK(iris_tensor_free(iris, &all));
    return iris_tensor_free(iris, &row) != IRIS_OK;
}

static RANK_TEST(copies_go_between_any_strides_and_touch_nothing_else, 1, 2)
{
    static const iris_dtype_t widths[] = {IRIS_DTYPE_U8, IRIS_DTYPE_F16,
                                          IRIS_DTYPE_I32, IRIS_DTYPE_COMPLEX64,
                                          IRIS_DTYPE_COMPLEX128};

    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        CHECK_EQUAL(copy_dtype(iris, widths[i]), 0);
    }
    return 0;
}

/* From the next rank's transposed matrix, and to it. */
static RANK_TEST(copies_reach_other_ranks, ALL_RANKS)
{
    int rank = iris_rank(iris), next = (rank + 1) % iris_num_ranks(iris);
    const int swapped[] = {1, 0};
    struct iris_tensor_options options;
    iris_tensor_t own, got, view, other;
    int64_t seen[12];

    CHECK_OK(iris_arange(iris, iris_value_int(100 * rank),
                         iris_value_int(100 * rank + 12), iris_value_int(1),
                         NULL, &own));
    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_I64;
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(4, 3), &options, &got));
    CHECK_OK(iris_tensor_as_remote(iris, &own, next, &other));
    CHECK_OK(iris_tensor_reshape(&other, IRIS_SHAPE(3, 4), &other));
    CHECK_OK(iris_tensor_permute(&other, swapped, &view));
    CHECK_OK(iris_tensor_copy(iris, &got, &view, NULL));
    CHECK_OK(harness_read(iris, seen, got.data, sizeof seen));
    for (int i = 0; i < 12; i++) {
        CHECK_EQUAL(seen[i], 100 * next + i % 3 * 4 + i / 3);
    }
    CHECK_BAD(iris, iris_tensor_copy(iris, &got, &other, NULL),
              IRIS_ERR_INVALID, "differ in dtype or shape",
              "pass two that agree");
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_tensor_free(iris, &got));
    return iris_tensor_free(iris, &own) != IRIS_OK;
}

/* ---- Text ---- */

static int formatted(iris_t *iris, const iris_tensor_t *tensor,
                     const char *wanted)
{
    char text[1024];
    size_t needed = 0;

    CHECK_OK(iris_tensor_format(iris, tensor, text, sizeof text, &needed));
    if (strcmp(text, wanted) != 0) {
        print_message("\"%s\", not \"%s\"\n", text, wanted);
        return 1;
    }
    CHECK_EQUAL(needed, strlen(wanted) + 1);
    return 0;
}

static RANK_TEST(tensors_are_text_of_what_they_hold, 1, 2)
{
    struct iris_tensor_options options;
    iris_tensor_t t, view;
    char cut[8];
    size_t needed;

    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_I32;
    CHECK_OK(iris_arange(iris, iris_value_int(-3), iris_value_int(9),
                         iris_value_int(1), &options, &t));
    CHECK_OK(iris_tensor_reshape(&t, IRIS_SHAPE(2, 2, 3), &view));
    CHECK_EQUAL(formatted(iris, &view,
                          "i32 (2, 2, 3)\n[[[-3, -2, -1],\n  [0, 1, 2]],\n\n"
                          " [[3, 4, 5],\n  [6, 7, 8]]]"),
                0);
    CHECK_OK(iris_tensor_slice(&view, 2, 0, 3, 2, &view));
    CHECK_EQUAL(formatted(iris, &view,
                          "i32 (2, 2, 2)\n[[[-3, -1],\n  [0, 2]],\n\n"
                          " [[3, 5],\n  [6, 8]]]"),
                0);
    CHECK_OK(iris_tensor_format(iris, &t, cut, sizeof cut, &needed));
    CHECK(strcmp(cut, "i32 (12") == 0);
    CHECK_EQUAL(needed, strlen("i32 (12) [-3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, "
                               "8]") +
                            1);
    CHECK_OK(iris_tensor_format(iris, &t, NULL, 0, NULL));
    CHECK_BAD(iris, iris_tensor_format(iris, NULL, cut, 8, NULL),
              IRIS_ERR_INVALID, "tensor is NULL", "pass a tensor");
    CHECK_OK(iris_tensor_free(iris, &t));
    options.dtype = IRIS_DTYPE_BF16;
    CHECK_OK(iris_full(iris, IRIS_SCALAR_SHAPE, iris_value_float(0.1), &options,
                       &t));
    CHECK_EQUAL(formatted(iris, &t, "bf16 () 0.1001"), 0);
    CHECK_OK(iris_tensor_free(iris, &t));
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(2, 0), NULL, &t));
    CHECK_EQUAL(formatted(iris, &t, "f32 (2, 0)\n[[],\n []]"), 0);
    CHECK_OK(iris_tensor_free(iris, &t));
    CHECK_OK(
        iris_full(iris, IRIS_SHAPE(2), iris_value_complex(1, -2), NULL, &t));
    CHECK_EQUAL(formatted(iris, &t, "complex64 (2) [1-2i, 1-2i]"), 0);
    CHECK_OK(iris_tensor_free(iris, &t));
    CHECK_OK(iris_full(iris, IRIS_SHAPE(2), iris_value_bool(1), NULL, &t));
    CHECK_EQUAL(formatted(iris, &t, "bool (2) [true, true]"), 0);
    CHECK_OK(iris_tensor_free(iris, &t));
    options.dtype = IRIS_DTYPE_I64;
    CHECK_OK(iris_arange(iris, iris_value_int(0), iris_value_int(2000),
                         iris_value_int(1), &options, &t));
    CHECK_OK(iris_tensor_reshape(&t, IRIS_SHAPE(2, 1000), &view));
    CHECK_EQUAL(formatted(iris, &view,
                          "i64 (2, 1000)\n[[0, 1, 2, ..., 997, 998, 999],\n"
                          " [1000, 1001, 1002, ..., 1997, 1998, 1999]]"),
                0);
    return iris_tensor_free(iris, &t) != IRIS_OK;
}

TEST_GROUP(rank, one_node);
