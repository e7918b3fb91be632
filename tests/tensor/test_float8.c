/* SPDX-License-Identifier: MIT
 *
 * Tensors of 8-bit floats: numbers are rounded into them, they are filled,
 * printed and exchanged, and what has no kernels for them is refused.
 */
#include "config.h"

#include "support/float8.h"
#include "support/harness.h"

#include <iris/dlpack.h>
#include <iris/random.h>
#include <iris/tensor.h>

#include <string.h>

static struct iris_tensor_options asking(iris_dtype_t dtype)
{
    struct iris_tensor_options options;

    iris_tensor_options_init(&options);
    options.dtype = dtype;
    return options;
}

static int check_numbers(iris_t *iris, iris_dtype_t dtype, int fraction)
{
    static const float numbers[] = {0.0f, -0.3f, 1.0f, 17.0f, 448.0f, 1e-3f};
    struct iris_tensor_options options = asking(dtype);
    unsigned char seen[5], expected[5];
    iris_tensor_t tensor;

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        CHECK_OK(iris_full(iris, IRIS_SHAPE(5),
                           iris_value_float((double)numbers[i]), &options,
                           &tensor));
        memset(expected, (int)float8_nearest(numbers[i], fraction),
               sizeof expected);
        CHECK_OK(harness_read(iris, seen, tensor.data, sizeof seen));
        CHECK(memcmp(seen, expected, sizeof seen) == 0);
        CHECK_OK(iris_tensor_free(iris, &tensor));
    }
    return 0;
}

static RANK_TEST(numbers_are_rounded, 2)
{
    struct iris_tensor_options options = asking(IRIS_DTYPE_F8E4M3);
    iris_tensor_t tensor;
    char text[64];

    CHECK_EQUAL(check_numbers(iris, IRIS_DTYPE_F8E4M3, 3), 0);
    CHECK_EQUAL(check_numbers(iris, IRIS_DTYPE_F8E5M2, 2), 0);
    CHECK_OK(iris_full(iris, IRIS_SHAPE(2), iris_value_float(-17.0), &options,
                       &tensor));
    CHECK_OK(iris_tensor_format(iris, &tensor, text, sizeof text, NULL));
    CHECK(strcmp(text, "f8e4m3 (2) [-16, -16]") == 0);
    CHECK_BAD(iris,
              iris_full(iris, IRIS_SHAPE(2), iris_value_float(449.0), &options,
                        &tensor),
              IRIS_ERR_INVALID, "cannot be converted to f8e4m3", "to 448");
    return 0;
}

static RANK_TEST(what_has_no_kernels_is_refused, 1)
{
    struct iris_tensor_options options = asking(IRIS_DTYPE_F8E5M2);
    iris_tensor_t tensor;

    CHECK_BAD(iris,
              iris_arange(iris, iris_value_int(0), iris_value_int(5),
                          iris_value_int(1), &options, &tensor),
              IRIS_ERR_INVALID, "dtype f8e5m2", "16 bits or more");
    CHECK_BAD(iris,
              iris_linspace(iris, iris_value_int(0), iris_value_int(5), 6,
                            &options, &tensor),
              IRIS_ERR_INVALID, "dtype f8e5m2", "16 bits or more");
    CHECK_BAD(iris, iris_rand(iris, IRIS_SHAPE(4), &options, &tensor),
              IRIS_ERR_INVALID, "dtype f8e5m2", "ask for");
    CHECK_BAD(iris, iris_randn(iris, IRIS_SHAPE(4), &options, &tensor),
              IRIS_ERR_INVALID, "dtype f8e5m2", "ask for");
    CHECK_BAD(iris, iris_randint(iris, 0, 4, IRIS_SHAPE(4), &options, &tensor),
              IRIS_ERR_INVALID, "dtype f8e5m2", "16 bits or more");
    return 0;
}

TEST_GROUP(rank);
