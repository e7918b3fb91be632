/* SPDX-License-Identifier: MIT
 *
 * Random integers: every dtype, every kind of range, and what is refused.
 */
#include "config.h"

#include "tensor/draw.h"

#include <stdlib.h>

#include <iris/device.h>

#define MANY ((size_t)10007) /* of no round number of blocks */

/* Integer `i` by the definition: passed over are words that would make some
 * numbers more likely. */
static int64_t integer_of(const struct draw *draw, size_t i)
{
    const iris_generator_t from = {draw->generator.seed,
                                   draw->generator.sequence, 0};
    uint64_t range = (uint64_t)draw->high - (uint64_t)draw->low;
    int wide = range > (uint64_t)1 << 32;
    uint64_t per_block = wide ? 2 : 4, j = i % per_block, low, high;
    philox4x32_ctr_t block = draw_block(from, i / per_block);
    philox4x32_key_t key = {{(uint32_t)from.seed, (uint32_t)(from.seed >> 32)}};

    for (;; block = philox4x32_R(10, block, key)) {
        uint64_t word =
            wide ? (uint64_t)block.v[2 * j + 1] << 32 | block.v[2 * j]
                 : (uint64_t)block.v[j] << 32;
        __extension__ unsigned __int128 product =
            (unsigned __int128)word * range;

        high = (uint64_t)(product >> 64);
        low = (uint64_t)product;
        if (wide ? low >= (0 - range) % range
                 : low >> 32 >= ((uint64_t)1 << 32) % range) {
            return (int64_t)((uint64_t)draw->low + high);
        }
    }
}

static int64_t element(const struct draw *draw, const void *numbers, size_t i)
{
    switch (draw->dtype) {
    case IRIS_DTYPE_BOOL:
    case IRIS_DTYPE_U8:
        return ((const uint8_t *)numbers)[i];
    case IRIS_DTYPE_I8:
        return ((const int8_t *)numbers)[i];
    case IRIS_DTYPE_I16:
        return ((const int16_t *)numbers)[i];
    case IRIS_DTYPE_U16:
        return ((const uint16_t *)numbers)[i];
    case IRIS_DTYPE_I32:
        return ((const int32_t *)numbers)[i];
    case IRIS_DTYPE_U32:
        return ((const uint32_t *)numbers)[i];
    case IRIS_DTYPE_F16:
        return (int64_t)iris_f16_to_f32(((const iris_f16_t *)numbers)[i]);
    case IRIS_DTYPE_BF16:
        return (int64_t)iris_bf16_to_f32(((const iris_bf16_t *)numbers)[i]);
    case IRIS_DTYPE_F32:
        return (int64_t)((const float *)numbers)[i];
    case IRIS_DTYPE_F64:
        return (int64_t)((const double *)numbers)[i];
    default:
        return ((const int64_t *)numbers)[i];
    }
}

/* Ranges of every dtype: all it can hold, and such of which half of the words
 * are passed over. */
static const struct {
    iris_dtype_t dtype;
    int64_t low, high;
    int is_all; /* the dtype has neither low - 1 nor high */
} ranges[] = {
    {IRIS_DTYPE_BOOL, 0, 2, 1},
    {IRIS_DTYPE_BOOL, 1, 2, 0},
    {IRIS_DTYPE_I8, INT8_MIN, INT8_MAX + 1, 1},
    {IRIS_DTYPE_U8, 0, UINT8_MAX + 1, 1},
    {IRIS_DTYPE_U8, 3, 10, 0},
    {IRIS_DTYPE_I16, INT16_MIN, INT16_MAX + 1, 1},
    {IRIS_DTYPE_U16, 0, UINT16_MAX + 1, 1},
    {IRIS_DTYPE_I32, INT32_MIN, (int64_t)INT32_MAX + 1, 1},
    {IRIS_DTYPE_I32, -5, 6, 0},
    {IRIS_DTYPE_U32, 0, (int64_t)UINT32_MAX + 1, 1},
    {IRIS_DTYPE_U32, 7, (int64_t)7 + 0x80000001u, 0},
    {IRIS_DTYPE_I64, -1, 0, 0},
    {IRIS_DTYPE_I64, -((int64_t)1 << 31), (int64_t)1 << 31, 0},
    {IRIS_DTYPE_I64, -((int64_t)1 << 31), ((int64_t)1 << 31) + 1, 0},
    {IRIS_DTYPE_I64, INT64_MIN, INT64_MAX, 0},
    {IRIS_DTYPE_I64, INT64_MIN, 1, 0},
    {IRIS_DTYPE_U64, 0, INT64_MAX, 0},
    {IRIS_DTYPE_U64, 10, 1000, 0},
    {IRIS_DTYPE_F16, -2048, 2049, 1},
    {IRIS_DTYPE_BF16, -256, 257, 1},
    {IRIS_DTYPE_F32, -(1 << 24), (1 << 24) + 1, 1},
    {IRIS_DTYPE_F64, -((int64_t)1 << 53), ((int64_t)1 << 53) + 1, 1},
    {IRIS_DTYPE_F64, 0, 10, 0},
};

static RANK_TEST(integers_are_in_range_and_none_is_likelier, 1)
{
    int64_t *numbers = malloc(MANY * sizeof *numbers);

    CHECK(numbers != NULL);
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        struct draw draw = {DRAW_INTEGER,
                            ranges[r].dtype,
                            {r, 17, 0},
                            ranges[r].low,
                            ranges[r].high};
        size_t wrong = 0;

        CHECK_OK(draw_numbers(iris, &draw, MANY, numbers));
        for (size_t i = 0; i < MANY; i++) {
            int64_t value = element(&draw, numbers, i);

            wrong += value < draw.low || value >= draw.high ||
                     value != integer_of(&draw, i);
        }
        CHECK_EQUAL(wrong, 0);
    }
    free(numbers);
    return 0;
}

static RANK_TEST(what_a_type_cannot_hold_is_refused, 2)
{
    struct iris_tensor_options options;
    iris_tensor_t tensor;
    const uint64_t offset = iris_default_generator(iris)->offset;

    iris_tensor_options_init(&options);
    options.dtype = IRIS_DTYPE_I32;
    CHECK_BAD(iris, iris_rand(iris, IRIS_SHAPE(3), &options, &tensor),
              IRIS_ERR_INVALID, "i32", "float");
    CHECK_BAD(iris, iris_randn(iris, IRIS_SHAPE(3), &options, &tensor),
              IRIS_ERR_INVALID, "i32", "float");
    CHECK_BAD(iris, iris_randint(iris, 5, 5, IRIS_SHAPE(3), NULL, &tensor),
              IRIS_ERR_INVALID, "high 5", "above");
    for (size_t r = 0; r < sizeof ranges / sizeof *ranges; r++) {
        int64_t low = ranges[r].low, high = ranges[r].high;

        options.dtype = (int)ranges[r].dtype;
        if (!ranges[r].is_all) {
            continue;
        }
        CHECK_BAD(
            iris,
            iris_randint(iris, low, high + 1, IRIS_SHAPE(3), &options, &tensor),
            IRIS_ERR_INVALID, iris_dtype_name(ranges[r].dtype), "pass");
        CHECK_BAD(
            iris,
            iris_randint(iris, low - 1, high, IRIS_SHAPE(3), &options, &tensor),
            IRIS_ERR_INVALID, iris_dtype_name(ranges[r].dtype), "pass");
    }
    options.dtype = IRIS_DTYPE_COMPLEX64;
    CHECK_BAD(iris, iris_randint(iris, 0, 5, IRIS_SHAPE(3), &options, &tensor),
              IRIS_ERR_INVALID, "complex64", "real");
    CHECK_STATUS(iris_rand(iris, IRIS_SHAPE(-3), NULL, &tensor),
                 IRIS_ERR_INVALID);
    CHECK_EQUAL(iris_default_generator(iris)->offset, offset);
    return 0;
}

TEST_GROUP(unit);
