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
#include <strings.h>

#define FULL_ELEMENTS 37 /* that are to be the same */
#define MAX_BYTES 2048

enum call { CALL_FULL, CALL_ARANGE, CALL_LINSPACE };

/* A call, and what it gives in several types: "I8 ff, F32 0000803f~", bytes in
 * hexadecimal. "-": refused; "~": within a rounding or two. */
struct value_row {
    enum call call;
    iris_value_t values[3];
    int64_t steps;
    const char *results;
};

/* One of the results. */
struct value_case {
    const struct value_row *row;
    iris_dtype_t dtype;
    char result[2 * MAX_BYTES];
    int exact;
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
#define FULL(value, results) {CALL_FULL, {value}, 0, results},
#define ARANGE(start, end, step, results) \
    {CALL_ARANGE, {start, end, step}, 0, results},
#define LINSPACE(start, end, steps, results) \
    {CALL_LINSPACE, {start, end}, steps, results},

/* clang-format off */
static const struct value_row rows[] = {
#include "tensor/cases.def"
};

/* PyTorch makes no rows of u64: worked out by hand. The highest is 2^64 as f64,
 * which is beyond the type. */
static const struct value_row highest[] = {
    LINSPACE(U(0), U(UINT64_MAX), 5,
             "U64 0000000000000000" "0000000000000040" "0000000000000080"
             "00000000000000c0" "ffffffffffffffff")
    LINSPACE(I(-1), U(0), 3,
             "U64 ffffffffffffffff" "0000000000000080" "0000000000000000")
    LINSPACE(U(UINT64_MAX - 1), U(0), 1, "U64 feffffffffffffff")
};
/* clang-format on */

static size_t expected(const struct value_case *one, unsigned char *bytes)
{
    size_t count = strlen(one->result) / 2;

    for (size_t i = 0; i < count; i++) {
        unsigned byte = 0;

        sscanf(one->result + 2 * i, "%2x", &byte);
        bytes[i] = (unsigned char)byte;
    }
    if (one->row->call == CALL_FULL) {
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
    switch (one->row->call) {
    case CALL_FULL:
        return iris_full(iris, IRIS_SHAPE(FULL_ELEMENTS), one->row->values[0],
                         &options, tensor_p);
    case CALL_ARANGE:
        return iris_arange(iris, one->row->values[0], one->row->values[1],
                           one->row->values[2], &options, tensor_p);
    default:
        return iris_linspace(iris, one->row->values[0], one->row->values[1],
                             one->row->steps, &options, tensor_p);
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

static iris_dtype_t find_dtype(const char *name)
{
#define DTYPE(NAME, value, text, bytes) \
    if (strcasecmp(name, #NAME) == 0) { \
        return IRIS_DTYPE_##NAME;       \
    }
    IRIS_DTYPE_ROWS(DTYPE)
#undef DTYPE
    return (iris_dtype_t)-1; /* which no call takes */
}

/* Splits off the first of the results; returns the others, at last NULL. */
static const char *take_case(const char *results, struct value_case *one)
{
    char name[16] = "";
    const char *comma = strchr(results, ',');
    size_t digits;

    one->result[0] = '\0'; /* a row without elements */
    sscanf(results, "%15[^ ,] %4095[^,]", name, one->result);
    digits = strlen(one->result);
    one->dtype = find_dtype(name);
    one->exact = digits == 0 || one->result[digits - 1] != '~';
    if (!one->exact) {
        one->result[digits - 1] = '\0';
    }
    return comma == NULL ? NULL : comma + 2;
}

static int check_rows(iris_t *iris, const struct value_row *row, size_t count,
                      int *num_exact_p)
{
    static _Thread_local struct value_case one;
    int num_wrong = 0;

    *num_exact_p = 0;
    for (size_t i = 0; i < count; i++) {
        const char *results = row[i].results;

        for (one.row = &row[i]; results != NULL;) {
            results = take_case(results, &one);
            *num_exact_p += one.exact;
            if (check_case(iris, &one) != 0) {
                print_message("row %zu, dtype %d: not as PyTorch's\n", i,
                              (int)one.dtype);
                num_wrong++;
            }
        }
    }
    return num_wrong;
}

static RANK_TEST(values_are_pytorchs_bit_for_bit, 1, 2)
{
    int num_exact;

    CHECK_EQUAL(
        check_rows(iris, rows, sizeof rows / sizeof rows[0], &num_exact), 0);
    CHECK(num_exact > 800);
    return 0;
}

static RANK_TEST(a_row_of_u64_ends_at_the_highest, 1)
{
    int num_exact;

    CHECK_EQUAL(check_rows(iris, highest, sizeof highest / sizeof highest[0],
                           &num_exact),
                0);
    CHECK_EQUAL(num_exact, 3);
    return 0;
}

TEST_GROUP(rank);
