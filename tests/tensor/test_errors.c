/* SPDX-License-Identifier: MIT
 *
 * Tensors in the memory of others, and what creation refuses: each message says
 * what was given and what is needed.
 */
#include "config.h"

#include "support/harness.h"

#include <string.h>

static struct iris_tensor_options asking(int dtype, const iris_tensor_t *out)
{
    struct iris_tensor_options options;

    iris_tensor_options_init(&options);
    options.dtype = dtype;
    options.out = out;
    return options;
}

static int seen_i32(iris_t *iris, const iris_tensor_t *tensor,
                    const int32_t *wanted)
{
    int32_t seen[64];

    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(harness_read(iris, seen, tensor->data, iris_tensor_bytes(tensor)));
    for (int64_t i = 0; i < iris_tensor_numel(tensor); i++) {
        CHECK_EQUAL(seen[i], wanted[i]);
    }
    return 0;
}

/* ---- out ---- */

static RANK_TEST(out_is_filled_and_seen_in_the_asked_shape, ALL_RANKS)
{
    struct iris_tensor_options options = asking(IRIS_DTYPE_I32, NULL);
    int rank = iris_rank(iris);
    int32_t wanted[12];
    iris_tensor_t out, result;

    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(3, 4), &options, &out));
    options = asking(IRIS_DTYPE_I32, &out);
    /* Local: the ranks make other calls, and as many as they like. */
    for (int i = 0; i <= rank; i++) {
        CHECK_OK(iris_full(iris, IRIS_SHAPE(2, 6), iris_value_int(rank + i),
                           &options, &result));
    }
    CHECK(result.data == out.data && result.owner == NULL);
    CHECK_EQUAL(result.ndim, 2);
    CHECK_EQUAL(result.shape[1], 6);
    CHECK_EQUAL(result.strides[0], 6);
    for (int i = 0; i < 12; i++) {
        wanted[i] = 2 * rank;
    }
    CHECK_EQUAL(seen_i32(iris, &out, wanted), 0);
    CHECK_OK(iris_arange(iris, iris_value_int(rank), iris_value_int(rank + 24),
                         iris_value_int(2), &options, &result));
    for (int i = 0; i < 12; i++) {
        wanted[i] = rank + 2 * i;
    }
    CHECK_EQUAL(seen_i32(iris, &out, wanted), 0);
    CHECK_OK(iris_linspace(iris, iris_value_int(0), iris_value_int(11), 12,
                           &options, &result));
    for (int i = 0; i < 12; i++) {
        wanted[i] = i;
    }
    CHECK_EQUAL(seen_i32(iris, &out, wanted), 0);
    /* The struct itself stays the owner. */
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(12), &options, &out));
    CHECK_EQUAL(out.ndim, 1);
    return iris_tensor_free(iris, &out) != IRIS_OK;
}

static RANK_TEST(out_may_be_a_part_with_gaps, 2)
{
    struct iris_tensor_options options = asking(IRIS_DTYPE_I32, NULL);
    static const int32_t wanted[] = {9, 5, 9, 6, 9, 9, 9, 9, 9, 7, 9, 8};
    static const int32_t rows[] = {9, 0, 9, 2, 9, 9, 9, 9, 9, 4, 9, 6};
    iris_tensor_t all, part, one, result;

    CHECK_OK(
        iris_full(iris, IRIS_SHAPE(3, 4), iris_value_int(9), &options, &all));
    /* Rows 0 and 2, columns 1 and 3. */
    CHECK_OK(iris_tensor_slice(&all, 0, 0, INT64_MAX, 2, &part));
    CHECK_OK(iris_tensor_slice(&part, 1, 1, INT64_MAX, 2, &part));
    for (int i = 0; i < 4; i++) {
        CHECK_OK(iris_tensor_select(&part, 0, i / 2, &one));
        CHECK_OK(iris_tensor_select(&one, 0, i % 2, &one));
        options = asking(IRIS_DTYPE_I32, &one);
        CHECK_OK(iris_full(iris, IRIS_SCALAR_SHAPE, iris_value_int(5 + i),
                           &options, &result));
    }
    CHECK_EQUAL(seen_i32(iris, &all, wanted), 0);
    options = asking(IRIS_DTYPE_I32, &part);
    CHECK_OK(
        iris_full(iris, IRIS_SHAPE(2, 2), iris_value_int(9), &options, &one));
    /* Numbers in a row with a stride, two at a time. */
    for (int i = 0; i < 2; i++) {
        CHECK_OK(iris_tensor_select(&part, 0, i, &one));
        options = asking(IRIS_DTYPE_I32, &one);
        CHECK_OK(iris_arange(iris, iris_value_int(4 * i),
                             iris_value_int(4 * i + 4), iris_value_int(2),
                             &options, &result));
    }
    CHECK_EQUAL(seen_i32(iris, &all, rows), 0);
    options = asking(IRIS_DTYPE_I32, &part);
    CHECK_BAD(iris, iris_zeros(iris, IRIS_SHAPE(4), &options, &result),
              IRIS_ERR_INVALID, "strides do not let it be seen",
              "pass a contiguous one");
    options.format = IRIS_FORMAT_CONTIGUOUS;
    CHECK_BAD(iris, iris_zeros(iris, IRIS_SHAPE(2, 2), &options, &result),
              IRIS_ERR_INVALID, "not in memory format 1", "or no format");
    return iris_tensor_free(iris, &all) != IRIS_OK;
}

/* From an address that is a multiple of 8 bytes, or of the element's size, but
 * not of 16, to another: neither side of it is touched. */
static int fill_between(iris_t *iris, iris_dtype_t dtype)
{
    struct iris_tensor_options options = asking((int)dtype, NULL);
    size_t width = iris_dtype_size(dtype), step = width < 8 ? width : 8;
    iris_value_t value = dtype < IRIS_DTYPE_COMPLEX64
                             ? iris_value_int(37)
                             : iris_value_complex(3, 5);
    unsigned char seen[512], one[16];
    iris_tensor_t all, part, result;

    CHECK_OK(iris_full(iris, IRIS_SHAPE(1), value, &options, &all));
    CHECK_OK(harness_read(iris, one, all.data, width));
    CHECK_OK(iris_tensor_free(iris, &all));
    CHECK_OK(
        iris_zeros(iris, IRIS_SHAPE((int64_t)(512 / width)), &options, &all));
    CHECK_OK(iris_tensor_wrap((char *)all.data + step, dtype,
                              IRIS_SHAPE((int64_t)(400 / width)), &part));
    options = asking((int)dtype, &part);
    CHECK_OK(iris_full(iris, IRIS_SHAPE((int64_t)(400 / width)), value,
                       &options, &result));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(harness_read(iris, seen, all.data, sizeof seen));
    for (size_t i = 0; i < sizeof seen; i++) {
        int inside = i >= step && i < step + 400 / width * width;

        CHECK_EQUAL(seen[i], inside ? one[(i - step) % width] : 0);
    }
    return iris_tensor_free(iris, &all) != IRIS_OK;
}

static RANK_TEST(a_fill_begins_and_ends_where_it_should, 1)
{
    static const iris_dtype_t widths[] = {IRIS_DTYPE_U8, IRIS_DTYPE_I16,
                                          IRIS_DTYPE_I32, IRIS_DTYPE_COMPLEX64,
                                          IRIS_DTYPE_COMPLEX128};

    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        CHECK_EQUAL(fill_between(iris, widths[i]), 0);
    }
    return 0;
}

static RANK_TEST(a_wrong_out_is_refused_in_upstreams_order, 2)
{
    struct iris_tensor_options options;
    int32_t memory[6] = {1, 2, 3, 4, 5, 6};
    iris_tensor_t out, outside, result = {.ndim = 5};

    CHECK_OK(iris_tensor_wrap(memory, IRIS_DTYPE_I32, IRIS_SHAPE(6), &outside));
    options = asking(IRIS_DTYPE_F32, NULL);
    CHECK_OK(iris_zeros(iris, IRIS_SHAPE(2, 3), &options, &out));
    /* Wrong in all three, in two, in one: the first is what is said. */
    options = asking(IRIS_DTYPE_F32, &outside);
    CHECK_BAD(iris, iris_zeros(iris, IRIS_SHAPE(2, 4), &options, &result),
              IRIS_ERR_INVALID, "has 6 elements, but 8 are required",
              "pass one of this size");
    CHECK_BAD(iris, iris_zeros(iris, IRIS_SHAPE(2, 3), &options, &result),
              IRIS_ERR_INVALID, "has dtype i32, but f32 is required",
              "pass one of it");
    options.dtype = IRIS_DTYPE_I32;
    CHECK_BAD(iris, iris_zeros(iris, IRIS_SHAPE(2, 3), &options, &result),
              IRIS_ERR_INVALID, "is not on the symmetric heap",
              "a creation call made");
    CHECK_EQUAL(memory[0], 1);
    CHECK_EQUAL(result.ndim, 5);
    options = asking(IRIS_DTYPE_F32, &out);
    CHECK_BAD(iris,
              iris_arange(iris, iris_value_int(0), iris_value_int(5),
                          iris_value_int(1), &options, &result),
              IRIS_ERR_INVALID, "has 6 elements, but 5 are required",
              "iris_arange");
    CHECK_BAD(iris,
              iris_linspace(iris, iris_value_int(0), iris_value_int(5), 7,
                            &options, &result),
              IRIS_ERR_INVALID, "has 6 elements, but 7 are required",
              "iris_linspace");
    out.data = (char *)out.data + 2;
    CHECK_BAD(iris, iris_zeros(iris, IRIS_SHAPE(6), &options, &result),
              IRIS_ERR_INVALID, "is not aligned",
              "pass memory that is aligned");
    out.data = out.owner;
    return iris_tensor_free(iris, &out) != IRIS_OK;
}

/* ---- What else is refused ---- */

static RANK_TEST(what_makes_no_sense_is_refused_on_all_ranks, ALL_RANKS)
{
    struct iris_tensor_options options = asking(IRIS_DTYPE_DEFAULT, NULL);
    iris_shape_t many = IRIS_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1);
    iris_tensor_t t = {.ndim = 5};

    CHECK_BAD(iris, iris_zeros(iris, IRIS_SHAPE(2, -3), NULL, &t),
              IRIS_ERR_INVALID, "dimension 1 of the shape has size -3",
              "pass 0 or more");
    CHECK_BAD(iris, iris_zeros(iris, many, NULL, &t), IRIS_ERR_INVALID,
              "the shape has 9 dimensions", "pass 0 to 8");
    CHECK_BAD(iris,
              iris_zeros(iris, IRIS_SHAPE((int64_t)1 << 40, (int64_t)1 << 40),
                         NULL, &t),
              IRIS_ERR_INVALID, "more elements of 4 bytes", "pass less");
    CHECK_BAD(iris, iris_zeros(iris, IRIS_SHAPE((int64_t)1 << 40), NULL, &t),
              IRIS_ERR_NO_MEMORY, "no 4398046511104 bytes",
              "raise IRIS_HEAP_SIZE");
    CHECK_BAD(iris, iris_empty(iris, IRIS_SHAPE(2), NULL, NULL),
              IRIS_ERR_INVALID, "tensor_p is NULL", "where to put the tensor");
    CHECK_BAD(iris, iris_zeros_like(iris, NULL, NULL, &t), IRIS_ERR_INVALID,
              "like is NULL", "pass a tensor");
    options.dtype = 17;
    CHECK_BAD(iris, iris_empty(iris, IRIS_SHAPE(2), &options, &t),
              IRIS_ERR_INVALID, "dtype 17 is not valid", "IRIS_DTYPE_DEFAULT");
    options = asking(IRIS_DTYPE_DEFAULT, NULL);
    options.format = (iris_memory_format_t)9;
    CHECK_BAD(iris, iris_empty(iris, IRIS_SHAPE(2), &options, &t),
              IRIS_ERR_INVALID, "format 9 is not valid",
              "iris_memory_format_t");
    memset(&options, 0, sizeof options);
    CHECK_BAD(iris, iris_empty(iris, IRIS_SHAPE(2), &options, &t),
              IRIS_ERR_INVALID, "options of 0 bytes",
              "call iris_tensor_options_init() before");
    CHECK_EQUAL(t.ndim, 5);
    return 0;
}

static iris_status_t full(iris_t *iris, int dtype, iris_value_t value)
{
    struct iris_tensor_options options = asking(dtype, NULL);
    iris_tensor_t tensor;

    return iris_full(iris, IRIS_SHAPE(2), value, &options, &tensor);
}

static iris_status_t arange(iris_t *iris, int dtype, double start, double end,
                            double step)
{
    struct iris_tensor_options options = asking(dtype, NULL);
    iris_tensor_t tensor;

    return iris_arange(iris, iris_value_float(start), iris_value_float(end),
                       iris_value_float(step), &options, &tensor);
}

static RANK_TEST(numbers_that_do_not_fit_are_refused, 2)
{
    struct iris_tensor_options options = asking(IRIS_DTYPE_F32, NULL);
    const double infinity = 1e308 * 10;
    iris_tensor_t t;

    CHECK_BAD(iris, full(iris, IRIS_DTYPE_I8, iris_value_int(300)),
              IRIS_ERR_INVALID, "value 300 cannot be converted to i8",
              "from -128 to 127; pass such a number");
    CHECK_BAD(iris, full(iris, IRIS_DTYPE_U64, iris_value_float(-0.5)),
              IRIS_ERR_INVALID, "value -0.5 cannot be converted to u64",
              "whole numbers from 0");
    CHECK_BAD(iris, full(iris, IRIS_DTYPE_I64, iris_value_float(infinity)),
              IRIS_ERR_INVALID, "value inf cannot be converted to i64",
              "ask for another dtype");
    CHECK_BAD(iris, full(iris, IRIS_DTYPE_I64, iris_value_uint(UINT64_MAX)),
              IRIS_ERR_INVALID, "value 18446744073709551615 cannot",
              "ask for another dtype");
    CHECK_BAD(iris, full(iris, IRIS_DTYPE_F32, iris_value_complex(1, 2)),
              IRIS_ERR_INVALID, "value 1+2i cannot be converted to f32",
              "real numbers");
    CHECK_BAD(iris, arange(iris, IRIS_DTYPE_F32, 0, 1, 0), IRIS_ERR_INVALID,
              "step must be non-zero", "start 0, end 1, step 0");
    CHECK_BAD(iris, arange(iris, IRIS_DTYPE_I32, 0, 1, 0.25), IRIS_ERR_INVALID,
              "step must be non-zero", "step 0.25, dtype i32");
    CHECK_BAD(iris, arange(iris, IRIS_DTYPE_F32, 1, 1, 1), IRIS_ERR_INVALID,
              "no element", "pass a range that has some");
    CHECK_BAD(iris, arange(iris, IRIS_DTYPE_F32, 0, 5, -1), IRIS_ERR_INVALID,
              "no element", "start 0, end 5, step -1");
    CHECK_BAD(iris, arange(iris, IRIS_DTYPE_F64, 0, infinity, 1),
              IRIS_ERR_INVALID, "not finite", "pass numbers that are");
    CHECK_BAD(iris, arange(iris, IRIS_DTYPE_F64, 0, 1e300, 1), IRIS_ERR_INVALID,
              "too many elements", "pass a larger step");
    CHECK_BAD(iris, arange(iris, IRIS_DTYPE_BOOL, 0, 2, 1), IRIS_ERR_INVALID,
              "dtype bool", "integers or real numbers");
    CHECK_BAD(
        iris,
        iris_linspace(iris, iris_value_int(0), iris_value_int(1), -1, NULL, &t),
        IRIS_ERR_INVALID, "steps is -1", "pass 0 or more");
    CHECK_BAD(iris,
              iris_linspace(iris, iris_value_complex(0, 1), iris_value_int(1),
                            3, &options, &t),
              IRIS_ERR_INVALID, "dtype f32 from complex numbers",
              "pass a complex dtype");
    return 0;
}

/* ---- One rank's mistake, and another call ---- */

static RANK_TEST(ranks_that_differ_are_told, 2, 4)
{
    struct iris_heap_stats before = {0}, after = {0};
    int odd = iris_rank(iris) == 1;
    iris_tensor_t t;

    iris_heap_stats(iris, &before);
    CHECK_STATUS(iris_zeros(iris, IRIS_SHAPE(odd ? -1 : 4), NULL, &t),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE(odd ? "has size -1" : "rank 1");
    CHECK_STATUS(iris_zeros(iris, IRIS_SHAPE(odd ? 5 : 4), NULL, &t),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("iris_full(bytes 16");
    CHECK_STATUS(odd ? iris_empty(iris, IRIS_SHAPE(4), NULL, &t)
                     : iris_ones(iris, IRIS_SHAPE(4), NULL, &t),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("iris_full(");
    iris_heap_stats(iris, &after);
    CHECK_EQUAL(after.used_bytes, before.used_bytes);
    CHECK_OK(iris_full(iris, IRIS_SHAPE(4), iris_value_int(odd), NULL, &t));
    /* A view is nobody's to free, and that is every rank's error. */
    if (odd) {
        t.owner = NULL;
    }
    CHECK_STATUS(iris_tensor_free(iris, &t), IRIS_ERR_INVALID);
    CHECK_MESSAGE(odd ? "owns no memory" : "rank 1");
    t.owner = t.data;
    CHECK_OK(iris_tensor_free(iris, &t));
    CHECK(t.data == NULL && t.owner == NULL);
    CHECK_BAD(iris, iris_tensor_free(iris, &t), IRIS_ERR_INVALID,
              "freed before", "pass the tensor of a creation call, once");
    return 0;
}

TEST_GROUP(matrix);
