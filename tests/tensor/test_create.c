/* SPDX-License-Identifier: MIT
 *
 * Creating tensors: dtypes, shapes, values, `out`, streams, on every rank.
 */
#include "config.h"

#include "support/float8.h"
#include "support/harness.h"

#include <iris/device/core/half.h>

#include <string.h>

#define MAX_BYTES (20000 * 16)

static const iris_dtype_t dtypes[] = {
#define DTYPE(NAME, value, name, bytes) IRIS_DTYPE_##NAME,
    IRIS_DTYPE_ROWS(DTYPE)
#undef DTYPE
};

#define NUM_DTYPES (sizeof dtypes / sizeof dtypes[0])

static struct iris_tensor_options asking(int dtype)
{
    struct iris_tensor_options options;

    iris_tensor_options_init(&options);
    options.dtype = dtype;
    return options;
}

/* A small whole number as an element of any dtype. */
static void element_of(int number, iris_dtype_t dtype, void *element)
{
    int64_t whole = dtype == IRIS_DTYPE_BOOL ? number != 0 : number;
    iris_f16_t f16 = iris_f16_from_f32((float)number);
    iris_bf16_t bf16 = iris_bf16_from_f32((float)number);
    uint8_t e4m3 = (uint8_t)float8_nearest((float)number, 3);
    uint8_t e5m2 = (uint8_t)float8_nearest((float)number, 2);
    float f32[2] = {(float)number, 0};
    double f64[2] = {number, 0};
    size_t bytes = iris_dtype_size(dtype);

    switch (dtype) {
    case IRIS_DTYPE_F16:
        memcpy(element, &f16, bytes);
        break;
    case IRIS_DTYPE_BF16:
        memcpy(element, &bf16, bytes);
        break;
    case IRIS_DTYPE_F8E4M3:
        memcpy(element, &e4m3, bytes);
        break;
    case IRIS_DTYPE_F8E5M2:
        memcpy(element, &e5m2, bytes);
        break;
    case IRIS_DTYPE_F32:
    case IRIS_DTYPE_COMPLEX64:
        memcpy(element, f32, bytes);
        break;
    case IRIS_DTYPE_F64:
    case IRIS_DTYPE_COMPLEX128:
        memcpy(element, f64, bytes);
        break;
    default:
        memcpy(element, &whole, bytes);
        break;
    }
}

/* Whether element i of a contiguous tensor is start + step * i. */
static int holds(iris_t *iris, const iris_tensor_t *tensor, int start, int step)
{
    static _Thread_local unsigned char seen[MAX_BYTES];
    size_t width = iris_dtype_size(tensor->dtype);
    int64_t count = iris_tensor_numel(tensor);
    unsigned char wanted[16];

    CHECK(iris_tensor_bytes(tensor) <= MAX_BYTES);
    if (count != 0) {
        CHECK_OK(
            harness_read(iris, seen, tensor->data, iris_tensor_bytes(tensor)));
    }
    for (int64_t i = 0; i < count; i++) {
        element_of(start + step * (int)i, tensor->dtype, wanted);
        CHECK_EQUAL(memcmp(seen + (size_t)i * width, wanted, width), 0);
    }
    return 0;
}

/* ---- The matrix: dtypes, shapes, functions ---- */

static const iris_shape_t shapes[] = {
    {1, {1}},          {1, {5}},
    {2, {2, 3}},       {3, {3, 4, 5}},
    {3, {1, 1, 1}},    {2, {10, 20}},
    {0, {0}},          {1, {0}},
    {2, {0, 7}},       {2, {3, 0}},
    {2, {100, 100}},   {1, {4099}},
    {4, {2, 3, 4, 5}}, {8, {1, 2, 1, 2, 1, 2, 1, 2}},
};

#define NUM_SHAPES (sizeof shapes / sizeof shapes[0])

static int is_new(iris_t *iris, const iris_tensor_t *tensor,
                  const iris_shape_t *shape, iris_dtype_t dtype)
{
    int64_t stride = 1;

    CHECK_EQUAL(tensor->dtype, dtype);
    CHECK_EQUAL(tensor->ndim, shape->ndim);
    for (int i = shape->ndim - 1; i >= 0; i--) {
        CHECK_EQUAL(tensor->shape[i], shape->sizes[i]);
        CHECK_EQUAL(tensor->strides[i], stride);
        stride *= shape->sizes[i] > 1 ? shape->sizes[i] : 1;
    }
    CHECK(tensor->data != NULL && tensor->owner == tensor->data);
    CHECK(iris_tensor_is_contiguous(tensor, IRIS_FORMAT_CONTIGUOUS));
    CHECK(iris_tensor_is_symmetric(iris, tensor));
    return 0;
}

/* The next rank's tensor holds that rank's values as soon as this rank's call
 * has returned: nothing is between. */
static int next_holds(iris_t *iris, const iris_tensor_t *tensor, int own,
                      int per_rank, int step)
{
    int rank = iris_rank(iris), next = (rank + 1) % iris_num_ranks(iris);
    iris_tensor_t view;

    CHECK_OK(iris_tensor_as_remote(iris, tensor, next, &view));
    CHECK_EQUAL(holds(iris, &view, own + per_rank * (next - rank), step), 0);
    return 0;
}

static int create_one(iris_t *iris, const iris_shape_t *shape,
                      iris_dtype_t dtype)
{
    struct iris_tensor_options options = asking((int)dtype);
    int value = 1 + iris_rank(iris);
    iris_tensor_t zeros, ones, full, like, empty;

    CHECK_OK(iris_empty(iris, *shape, &options, &empty));
    CHECK_EQUAL(is_new(iris, &empty, shape, dtype), 0);
    CHECK_OK(iris_zeros(iris, *shape, &options, &zeros));
    CHECK_EQUAL(is_new(iris, &zeros, shape, dtype), 0);
    CHECK_EQUAL(next_holds(iris, &zeros, 0, 0, 0), 0);
    CHECK_OK(iris_ones(iris, *shape, &options, &ones));
    CHECK_EQUAL(is_new(iris, &ones, shape, dtype), 0);
    CHECK_EQUAL(next_holds(iris, &ones, 1, 0, 0), 0);
    CHECK_OK(iris_full(iris, *shape, iris_value_int(value), &options, &full));
    CHECK_EQUAL(is_new(iris, &full, shape, dtype), 0);
    CHECK_EQUAL(next_holds(iris, &full, value, 1, 0), 0);
    CHECK_OK(iris_zeros_like(iris, &full, NULL, &like));
    CHECK_EQUAL(is_new(iris, &like, shape, dtype), 0);
    CHECK_EQUAL(next_holds(iris, &like, 0, 0, 0), 0);
    CHECK_OK(iris_tensor_free(iris, &like));
    CHECK_OK(iris_tensor_free(iris, &full));
    CHECK_OK(iris_tensor_free(iris, &ones));
    CHECK_OK(iris_tensor_free(iris, &zeros));
    return iris_tensor_free(iris, &empty) != IRIS_OK;
}

static RANK_TEST(every_dtype_and_shape_is_filled_on_every_rank, ALL_RANKS)
{
    for (size_t s = 0; s < NUM_SHAPES; s++) {
        for (size_t d = 0; d < NUM_DTYPES; d++) {
            CHECK_EQUAL(create_one(iris, &shapes[s], dtypes[d]), 0);
        }
    }
    return 0;
}

static RANK_TEST(rows_of_numbers_count_from_each_ranks_own, ALL_RANKS)
{
    int start = 3 * iris_rank(iris);
    iris_tensor_t tensor;

    for (size_t d = 0; d < NUM_DTYPES; d++) {
        struct iris_tensor_options options = asking((int)dtypes[d]);
        /* So that bf16 and i8 hold all. */
        int count = 100;

        if (dtypes[d] == IRIS_DTYPE_BOOL || dtypes[d] > IRIS_DTYPE_COMPLEX128) {
            continue; /* these functions refuse it */
        }
        CHECK_OK(iris_linspace(iris, iris_value_int(start),
                               iris_value_int(start + count - 1), count,
                               &options, &tensor));
        CHECK_EQUAL(tensor.dtype, dtypes[d]);
        CHECK_EQUAL(next_holds(iris, &tensor, start, 3, 1), 0);
        CHECK_OK(iris_tensor_free(iris, &tensor));
        if (dtypes[d] >= IRIS_DTYPE_COMPLEX64) {
            continue;
        }
        CHECK_OK(iris_arange(iris, iris_value_int(start),
                             iris_value_int(start + count), iris_value_int(1),
                             &options, &tensor));
        CHECK_EQUAL(tensor.dtype, dtypes[d]);
        CHECK_EQUAL(next_holds(iris, &tensor, start, 3, 1), 0);
        CHECK_OK(iris_tensor_free(iris, &tensor));
    }
    return 0;
}

/* Long enough for many blocks and workgroups, and odd. */
static RANK_TEST(long_rows_have_every_element, 1, 2)
{
    struct iris_tensor_options options = asking(IRIS_DTYPE_I32);
    int start = 100000 * iris_rank(iris);
    iris_tensor_t tensor;

    CHECK_OK(iris_arange(iris, iris_value_int(start),
                         iris_value_int(start + 2 * 77777), iris_value_int(2),
                         &options, &tensor));
    CHECK_EQUAL(next_holds(iris, &tensor, start, 100000, 2), 0);
    CHECK_OK(iris_tensor_free(iris, &tensor));
    options.dtype = IRIS_DTYPE_F32;
    CHECK_OK(iris_arange(iris, iris_value_int(start),
                         iris_value_int(start + 77777), iris_value_int(1),
                         &options, &tensor));
    CHECK_EQUAL(next_holds(iris, &tensor, start, 100000, 1), 0);
    return iris_tensor_free(iris, &tensor) != IRIS_OK;
}

/* ---- dtypes by default ---- */

static RANK_TEST(without_a_dtype_the_numbers_decide, 2)
{
    const iris_value_t one = iris_value_int(1), two = iris_value_float(2);
    const struct {
        iris_value_t value;
        iris_dtype_t dtype;
    } fulls[] = {
        {iris_value_bool(1), IRIS_DTYPE_BOOL},
        {iris_value_int(2), IRIS_DTYPE_I64},
        {iris_value_float(2), IRIS_DTYPE_F32},
        {iris_value_complex(2, 3), IRIS_DTYPE_COMPLEX64},
    };
    iris_tensor_t t;

    for (size_t i = 0; i < sizeof fulls / sizeof fulls[0]; i++) {
        CHECK_OK(iris_full(iris, IRIS_SHAPE(2), fulls[i].value, NULL, &t));
        CHECK_EQUAL(t.dtype, fulls[i].dtype);
        CHECK_OK(iris_tensor_free(iris, &t));
    }
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(2), NULL, &t));
    CHECK_EQUAL(t.dtype, IRIS_DTYPE_F32);
    CHECK_OK(iris_tensor_free(iris, &t));
    CHECK_OK(iris_arange(iris, one, iris_value_int(9), one, NULL, &t));
    CHECK_EQUAL(t.dtype, IRIS_DTYPE_I64);
    CHECK_OK(iris_tensor_free(iris, &t));
    CHECK_OK(iris_arange(iris, one, iris_value_int(9), two, NULL, &t));
    CHECK_EQUAL(t.dtype, IRIS_DTYPE_F32);
    CHECK_OK(iris_tensor_free(iris, &t));
    CHECK_OK(iris_linspace(iris, one, one, 4, NULL, &t));
    CHECK_EQUAL(t.dtype, IRIS_DTYPE_F32);
    CHECK_OK(iris_tensor_free(iris, &t));
    CHECK_OK(iris_linspace(iris, one, iris_value_complex(0, 1), 4, NULL, &t));
    CHECK_EQUAL(t.dtype, IRIS_DTYPE_COMPLEX64);
    return iris_tensor_free(iris, &t) != IRIS_OK;
}

static TEST(the_type_of_a_number_decides_its_kind)
{
    const unsigned char byte = 200;
    const uint64_t large = UINT64_MAX;
    const _Bool yes = 1;

    assert_int_equal(IRIS_VALUE(-3).kind, IRIS_VALUE_INT);
    assert_int_equal(IRIS_VALUE(-3).as.i, -3);
    assert_int_equal(IRIS_VALUE(byte).as.i, 200);
    assert_int_equal(IRIS_VALUE(large).kind, IRIS_VALUE_UINT);
    assert_true(IRIS_VALUE(large).as.u == UINT64_MAX);
    assert_int_equal(IRIS_VALUE(yes).kind, IRIS_VALUE_BOOL);
    assert_int_equal(IRIS_VALUE(2.5f).kind, IRIS_VALUE_FLOAT);
    assert_true(IRIS_VALUE(2.5).as.f[0] == 2.5);
    assert_int_equal(IRIS_SHAPE(4, 5, 6).ndim, 3);
    assert_int_equal(IRIS_SHAPE(4, 5, 6).sizes[2], 6);
    assert_int_equal(IRIS_SCALAR_SHAPE.ndim, 0);
}

/* ---- Streams ---- */

static RANK_TEST(with_a_stream_the_fill_is_in_its_order, 1, 4)
{
    struct iris_tensor_options options = asking(IRIS_DTYPE_I32);
    int rank = iris_rank(iris);
    iris_tensor_t tensor;

    CHECK_OK(iris_stream_create(iris, &options.stream));
    CHECK_OK(iris_full(iris, IRIS_SHAPE(5000), iris_value_int(rank + 7),
                       &options, &tensor));
    CHECK_OK(iris_barrier(iris, options.stream, NULL));
    CHECK_EQUAL(next_holds(iris, &tensor, rank + 7, 1, 0), 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    options.out = &tensor;
    CHECK_OK(iris_ones(iris, IRIS_SHAPE(5000), &options, &tensor));
    CHECK_OK(iris_stream_synchronize(iris, options.stream));
    CHECK_EQUAL(holds(iris, &tensor, 1, 0), 0);
    iris_stream_destroy(iris, options.stream);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_BAD(iris, iris_ones(iris, IRIS_SHAPE(5000), &options, &tensor),
              IRIS_ERR_INVALID, "not a live stream", "iris_stream_create");
    return iris_tensor_free(iris, &tensor) != IRIS_OK;
}

/* ---- Many ---- */

static RANK_TEST(a_hundred_thousand_leave_the_heap_as_it_was, 1, 2)
{
    size_t count =
        iris_num_ranks(iris) == 1 ? 100000 : harness_count(100000, 4000);
    struct iris_heap_stats before = {0}, after = {0};
    iris_tensor_t kept[7] = {{0}};

    iris_heap_stats(iris, &before);
    for (size_t i = 0; i < count; i++) {
        iris_tensor_t *one = &kept[i % 7];
        iris_shape_t shape = IRIS_SHAPE(1 + (int64_t)(i * 37 % 50), 3);

        if (one->owner != NULL) {
            CHECK_OK(iris_tensor_free(iris, one));
        }
        CHECK_OK(i % 2 == 0 ? iris_empty(iris, shape, NULL, one)
                            : iris_zeros(iris, shape, NULL, one));
    }
    for (int i = 0; i < 7; i++) {
        CHECK_OK(iris_tensor_free(iris, &kept[i]));
    }
    iris_heap_stats(iris, &after);
    CHECK_EQUAL(after.used_bytes, before.used_bytes);
    CHECK_EQUAL(after.num_allocs, before.num_allocs);
    CHECK_EQUAL(after.largest_free_bytes, before.largest_free_bytes);
    return 0;
}

TEST_GROUP(matrix, one_node);
