/* SPDX-License-Identifier: MIT
 *
 * What full, arange and linspace give is what PyTorch gives: cases.def, which
 * make_cases.py has made with it, for all element types.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device/core/half.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

enum call { CALL_FULL, CALL_ARANGE, CALL_LINSPACE };

struct value_case {
    enum call call;
    iris_dtype_t dtype;
    iris_value_t values[3];
    int64_t steps;
    int exact;          /* 1: bit for bit; 0: within a rounding or two */
    const char *result; /* bytes in hexadecimal; "-": refused */
};

#define B(x)             \
    {                    \
        IRIS_VALUE_BOOL, \
        {                \
            .i = (x)     \
        }                \
    }
#define I(x)            \
    {                   \
        IRIS_VALUE_INT, \
        {               \
            .i = (x)    \
        }               \
    }
#define U(x)             \
    {                    \
        IRIS_VALUE_UINT, \
        {                \
            .u = (x)     \
        }                \
    }
#define F(x)               \
    {                      \
        IRIS_VALUE_FLOAT,  \
        {                  \
            .f = {(x), 0 } \
        }                  \
    }
#define C(x, y)              \
    {                        \
        IRIS_VALUE_COMPLEX,  \
        {                    \
            .f = {(x), (y) } \
        }                    \
    }
#define FULL(dtype, value, exact, result) \
    {CALL_FULL, IRIS_DTYPE_##dtype, {value}, 0, exact, result},
#define ARANGE(dtype, start, end, step, exact, result) \
    {CALL_ARANGE, IRIS_DTYPE_##dtype, {start, end, step}, 0, exact, result},
#define LINSPACE(dtype, start, end, steps, exact, result) \
    {CALL_LINSPACE, IRIS_DTYPE_##dtype, {start, end}, steps, exact, result},

/* clang-format off */
static const struct value_case cases[] = {
#include "tensor/cases.def"
};

/* PyTorch makes no rows of u64: worked out by hand. The highest is 2^64 as f64,
 * which is beyond the type. */
static const struct value_case highest[] = {
    LINSPACE(U64, U(0), U(UINT64_MAX), 5, 1,
             "0000000000000000" "0000000000000040" "0000000000000080"
             "00000000000000c0" "ffffffffffffffff")
    LINSPACE(U64, I(-1), U(0), 3, 1,
             "ffffffffffffffff" "0000000000000080" "0000000000000000")
    LINSPACE(U64, U(UINT64_MAX - 1), U(0), 1, 1, "feffffffffffffff")
};
/* clang-format on */

#define FULL_ELEMENTS 37 /* that are to be the same */
#define MAX_BYTES 2048

static size_t expected(const struct value_case *one, unsigned char *bytes)
{
    size_t count = strlen(one->result) / 2;

    for (size_t i = 0; i < count; i++) {
        unsigned byte = 0;

        sscanf(one->result + 2 * i, "%2x", &byte);
        bytes[i] = (unsigned char)byte;
    }
    if (one->call == CALL_FULL) {
        for (size_t i = count; i < FULL_ELEMENTS * count; i++) {
            bytes[i] = bytes[i - count];
        }
        count *= FULL_ELEMENTS;
    }
    return count;
}

static iris_status_t make(iris_t *iris, const struct value_case *one,
                          iris_tensor_t *tensor_p)
{
    struct iris_tensor_options options;

    iris_tensor_options_init(&options);
    options.dtype = (int)one->dtype;
    switch (one->call) {
    case CALL_FULL:
        return iris_full(iris, IRIS_SHAPE(FULL_ELEMENTS), one->values[0],
                         &options, tensor_p);
    case CALL_ARANGE:
        return iris_arange(iris, one->values[0], one->values[1], one->values[2],
                           &options, tensor_p);
    default:
        return iris_linspace(iris, one->values[0], one->values[1], one->steps,
                             &options, tensor_p);
    }
}

/* Component `i` of floats, or element of integers, and its type's spacing
 * there. */
static double component(const unsigned char *bytes, iris_dtype_t dtype,
                        size_t i, double *spacing_p)
{
    int64_t whole = 0;
    size_t width = iris_dtype_size(dtype);
    iris_f16_t f16;
    iris_bf16_t bf16;
    float f32;
    double number;
    int digits, exponent;

    switch (dtype) {
    case IRIS_DTYPE_F16:
        memcpy(&f16, bytes + 2 * i, 2);
        number = iris_f16_to_f32(f16);
        digits = 11;
        break;
    case IRIS_DTYPE_BF16:
        memcpy(&bf16, bytes + 2 * i, 2);
        number = iris_bf16_to_f32(bf16);
        digits = 8;
        break;
    case IRIS_DTYPE_F32:
    case IRIS_DTYPE_COMPLEX64:
        memcpy(&f32, bytes + 4 * i, 4);
        number = f32;
        digits = 24;
        break;
    case IRIS_DTYPE_F64:
    case IRIS_DTYPE_COMPLEX128:
        memcpy(&number, bytes + 8 * i, 8);
        digits = 53;
        break;
    default:
        memcpy(&whole, bytes + width * i, width);
        whole =
            (int64_t)((uint64_t)whole << (64 - 8 * width)) >> (64 - 8 * width);
        *spacing_p = 1;
        return (double)whole;
    }
    (void)frexp(number, &exponent);
    *spacing_p = ldexp(1, exponent - digits);
    return number;
}

static size_t component_bytes(iris_dtype_t dtype)
{
    size_t bytes = iris_dtype_size(dtype);

    return dtype == IRIS_DTYPE_COMPLEX64 || dtype == IRIS_DTYPE_COMPLEX128
               ? bytes / 2
               : bytes;
}

/* Two roundings of the largest number of the row: PyTorch rounds the first
 * number of each vector, and then each in it. */
static int is_near(const unsigned char *seen, const unsigned char *wanted,
                   size_t bytes, iris_dtype_t dtype)
{
    size_t count = bytes / component_bytes(dtype);
    double most = 0, spacing;

    for (size_t i = 0; i < count; i++) {
        (void)component(wanted, dtype, i, &spacing);
        most = spacing > most ? spacing : most;
    }
    for (size_t i = 0; i < count; i++) {
        double a = component(seen, dtype, i, &spacing);
        double b = component(wanted, dtype, i, &spacing);

        if (!(fabs(a - b) <= 2 * most)) {
            return 0;
        }
    }
    return 1;
}

static int check_case(iris_t *iris, const struct value_case *one)
{
    unsigned char wanted[MAX_BYTES], seen[MAX_BYTES];
    size_t bytes = expected(one, wanted);
    iris_tensor_t tensor;
    iris_status_t status = make(iris, one, &tensor);

    if (strcmp(one->result, "-") == 0) {
        CHECK_EQUAL(status, IRIS_ERR_INVALID);
        return 0;
    }
    CHECK_OK(status);
    CHECK_EQUAL(tensor.dtype, one->dtype);
    CHECK_EQUAL(iris_tensor_bytes(&tensor), bytes);
    if (bytes != 0) {
        CHECK_OK(harness_read(iris, seen, tensor.data, bytes));
    }
    CHECK_OK(iris_tensor_free(iris, &tensor));
    return one->exact ? memcmp(seen, wanted, bytes) != 0
                      : !is_near(seen, wanted, bytes, one->dtype);
}

static int check_all(iris_t *iris, void *arg)
{
    size_t count = sizeof cases / sizeof cases[0], wrong = 0, exact = 0;

    (void)arg;
    for (size_t i = 0; i < count; i++) {
        if (check_case(iris, &cases[i]) != 0) {
            print_message("line %zu of cases.def: not as PyTorch's\n", i + 2);
            wrong++;
        }
        exact += cases[i].exact != 0;
    }
    CHECK(exact > 800);
    CHECK_EQUAL(wrong, 0);
    return 0;
}

static int check_highest(iris_t *iris, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof highest / sizeof highest[0]; i++) {
        CHECK_EQUAL(check_case(iris, &highest[i]), 0);
    }
    return 0;
}

static void a_row_of_u64_ends_at_the_highest(void **state)
{
    harness_run(1, check_highest, NULL);
}

static void values_are_pytorchs_bit_for_bit(void **state)
{
    harness_run(1, check_all, NULL);
    harness_run(2, check_all, NULL);
}

static int TEST_FILE(rank)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_pytorchs_bit_for_bit),
        cmocka_unit_test(a_row_of_u64_ends_at_the_highest),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
