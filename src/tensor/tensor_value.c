/* SPDX-License-Identifier: MIT
 *
 * Converts a program's numbers to elements of a dtype; accepts and refuses the
 * same numbers as PyTorch.
 */
#include "config.h"

#include "tensor/internal.h"

#include <iris/constants.h>
#include <iris/device/core/float8.h>

#include "base/base.h"
#include "base/fp_env.h"
#include "context/context.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* The range of a dtype: all numbers from lowest to highest, as doubles, and
 * whether they are integers. 2^63 and 2^64 are the first numbers that are too
 * large for their types. */
struct range {
    double lowest;
    double highest;
    int is_signed;
    int bits; /* width of an integer; 0: a float */
};

static double power_of_two(int exponent)
{
    return exponent == 64 ? 0x1p64 : (double)((uint64_t)1 << exponent);
}

static struct range range_of(iris_dtype_t dtype)
{
    struct range range = {.bits = (int)iris_dtype_size(dtype) * 8};

    if (dtype >= IRIS_DTYPE_I8 && dtype <= IRIS_DTYPE_U64) {
        range.is_signed = dtype <= IRIS_DTYPE_I64;
        range.highest = power_of_two(range.bits - range.is_signed) - 1;
        range.lowest = range.is_signed ? -range.highest - 1 : 0;
        return range;
    }
    switch (dtype) {
    case IRIS_DTYPE_F16:
        return (struct range){-65504, 65504, 1, 0};
    case IRIS_DTYPE_F8E4M3:
        return (struct range){-448, 448, 1, 0};
    case IRIS_DTYPE_F8E5M2:
        return (struct range){-57344, 57344, 1, 0};
    case IRIS_DTYPE_BF16: /* 2^128 minus one unit in the last place */
        return (struct range){-0x1.fep127, 0x1.fep127, 1, 0};
    case IRIS_DTYPE_F32:
    case IRIS_DTYPE_COMPLEX64:
        return (struct range){-0x1.fffffep127, 0x1.fffffep127, 1, 0};
    default:
        return (struct range){-INFINITY, INFINITY, 1, 0};
    }
}

int iris_i_value_is_whole(iris_value_t value)
{
    return value.kind == IRIS_VALUE_BOOL || value.kind == IRIS_VALUE_INT ||
           value.kind == IRIS_VALUE_UINT;
}

/* The real part, as the nearest double. */
static double number_of(iris_value_t value)
{
    return value.kind == IRIS_VALUE_UINT  ? (double)value.as.u
           : iris_i_value_is_whole(value) ? (double)value.as.i
                                          : value.as.f[0];
}

/* Size of the range's text for messages. */
#define TEXT_BYTES 64
static const char *text_of(iris_value_t value, char text[TEXT_BYTES])
{
    if (value.kind == IRIS_VALUE_UINT) {
        snprintf(text, TEXT_BYTES, "%llu", (unsigned long long)value.as.u);
    } else if (iris_i_value_is_whole(value)) {
        snprintf(text, TEXT_BYTES, "%lld", (long long)value.as.i);
    } else if (value.kind == IRIS_VALUE_FLOAT) {
        iris_i_print(text, TEXT_BYTES, "%.17g", value.as.f[0]);
    } else {
        iris_i_print(text, TEXT_BYTES, "%.9g%+.9gi", value.as.f[0],
                     value.as.f[1]);
    }
    return text;
}

static iris_status_t fail_range(const struct iris_argument *argument,
                                iris_dtype_t dtype)
{
    struct range range = range_of(dtype);
    char text[TEXT_BYTES];

    return iris_i_fail(argument->log, IRIS_ERR_INVALID,
                       "%s: %s %s cannot be converted to %s, which holds %s "
                       "from %.10g to %.10g; pass such a number, or ask for "
                       "another dtype",
                       argument->call, argument->name,
                       text_of(argument->value, text), iris_dtype_name(dtype),
                       range.bits != 0 ? "whole numbers" : "real numbers",
                       range.lowest, range.highest);
}

/* Negative integers wrap around in unsigned dtypes, down to -MAX. */
static int whole_fits(iris_value_t value, struct range range)
{
    uint64_t size = value.as.i < 0 && value.kind == IRIS_VALUE_INT
                        ? 0 - value.as.u
                        : value.as.u;
    uint64_t most =
        range.bits == 64 ? UINT64_MAX : ((uint64_t)1 << range.bits) - 1;

    if (range.is_signed) {
        most >>= 1;
        most += value.kind == IRIS_VALUE_INT && value.as.i < 0;
    }
    return size <= most;
}

/* Converts to an integer of the dtype, in the low bytes of *bits_p; 0: out of
 * range. */
static int to_integer(iris_value_t value, iris_dtype_t dtype, uint64_t *bits_p)
{
    struct range range = range_of(dtype);
    double number = number_of(value);

    if (iris_i_value_is_whole(value)) {
        *bits_p = value.as.u;
        return whole_fits(value, range);
    }
    /* Written so that NaN fails. The highest 64-bit integer rounds up to a
     * double that does not fit. */
    if (!(number >= range.lowest && number <= range.highest &&
          number < power_of_two(range.bits - range.is_signed))) {
        return 0;
    }
    *bits_p = number < 0 ? (uint64_t)(int64_t)number : (uint64_t)number;
    return 1;
}

/* Infinity and NaN are unchanged. */
static int float_fits(double number, iris_dtype_t dtype)
{
    struct range range = range_of(dtype);

    return isnan(number) || isinf(number) ||
           (number >= range.lowest && number <= range.highest);
}

static void put_f32(float number, iris_dtype_t dtype, void *element_p)
{
    iris_f16_t f16 = iris_f16_from_f32(number);
    iris_bf16_t bf16 = iris_bf16_from_f32(number);
    iris_f8e4m3_t f8e4m3 = iris_f8e4m3_from_f32(number);
    iris_f8e5m2_t f8e5m2 = iris_f8e5m2_from_f32(number);

    if (dtype == IRIS_DTYPE_F16) {
        memcpy(element_p, &f16, sizeof f16);
    } else if (dtype == IRIS_DTYPE_BF16) {
        memcpy(element_p, &bf16, sizeof bf16);
    } else if (dtype == IRIS_DTYPE_F8E4M3) {
        memcpy(element_p, &f8e4m3, sizeof f8e4m3);
    } else if (dtype == IRIS_DTYPE_F8E5M2) {
        memcpy(element_p, &f8e5m2, sizeof f8e5m2);
    } else {
        memcpy(element_p, &number, sizeof number);
    }
}

/* The float nearest to the value: integers are rounded once. */
static float to_f32(iris_value_t value)
{
    return value.kind == IRIS_VALUE_UINT  ? (float)value.as.u
           : iris_i_value_is_whole(value) ? (float)value.as.i
                                          : (float)value.as.f[0];
}

static void put_float(iris_value_t value, iris_dtype_t dtype, char *element_p)
{
    double parts[2] = {number_of(value),
                       value.kind == IRIS_VALUE_COMPLEX ? value.as.f[1] : 0};
    float imaginary = (float)parts[1];

    if (dtype == IRIS_DTYPE_F64) {
        memcpy(element_p, parts, sizeof parts[0]);
    } else if (dtype == IRIS_DTYPE_COMPLEX128) {
        memcpy(element_p, parts, sizeof parts);
    } else if (dtype == IRIS_DTYPE_COMPLEX64) {
        put_f32(to_f32(value), IRIS_DTYPE_F32, element_p);
        memcpy(element_p + sizeof imaginary, &imaginary, sizeof imaginary);
    } else {
        put_f32(to_f32(value), dtype, element_p);
    }
}

static int convert(iris_value_t value, iris_dtype_t dtype, void *element_p)
{
    int has_imaginary = value.kind == IRIS_VALUE_COMPLEX && value.as.f[1] != 0;
    struct range range = range_of(dtype);
    uint64_t bits;

    if (dtype == IRIS_DTYPE_BOOL) {
        bits = number_of(value) != 0; /* for a complex number, the real part */
        memcpy(element_p, &bits, 1);
        return 1;
    }
    if (has_imaginary && !iris_i_dtype_is_complex(dtype)) {
        return 0;
    }
    if (range.bits != 0) {
        if (!to_integer(value, dtype, &bits)) {
            return 0;
        }
        memcpy(element_p, &bits, iris_dtype_size(dtype));
        return 1;
    }
    if (!float_fits(number_of(value), dtype) ||
        (has_imaginary && !float_fits(value.as.f[1], dtype))) {
        return 0;
    }
    put_float(value, dtype, element_p);
    return 1;
}

iris_status_t iris_i_value_convert(const struct iris_argument *argument,
                                   iris_dtype_t dtype, void *element_p)
{
    uint64_t fp;
    int fits;

    if ((unsigned)argument->value.kind > IRIS_VALUE_COMPLEX) {
        return iris_i_fail(
            argument->log, IRIS_ERR_INVALID,
            "%s: %s has the unknown kind %d; make it by IRIS_VALUE()",
            argument->call, argument->name, (int)argument->value.kind);
    }
    fp = iris_i_fp_enter();
    fits = convert(argument->value, dtype, element_p);
    iris_i_fp_leave(fp);
    return fits ? IRIS_OK : fail_range(argument, dtype);
}

/* ---- Elements ---- */

uint64_t iris_i_element_bits(const void *element, iris_dtype_t dtype)
{
    unsigned unused = 64 - 8 * (unsigned)iris_dtype_size(dtype);
    uint64_t bits = 0;

    memcpy(&bits, element, iris_dtype_size(dtype));
    return dtype >= IRIS_DTYPE_I8 && dtype <= IRIS_DTYPE_I64
               ? (uint64_t)((int64_t)(bits << unused) >> unused)
               : bits;
}

static double part_of(const void *element, iris_dtype_t dtype, int part)
{
    union {
        iris_f16_t f16;
        iris_bf16_t bf16;
        iris_f8e4m3_t f8e4m3;
        iris_f8e5m2_t f8e5m2;
        float f32[2];
        double f64[2];
    } bits;

    memcpy(&bits, element, iris_dtype_size(dtype));
    switch (dtype) {
    case IRIS_DTYPE_F16:
        return iris_f16_to_f32(bits.f16);
    case IRIS_DTYPE_BF16:
        return iris_bf16_to_f32(bits.bf16);
    case IRIS_DTYPE_F8E4M3:
        return iris_f8e4m3_to_f32(bits.f8e4m3);
    case IRIS_DTYPE_F8E5M2:
        return iris_f8e5m2_to_f32(bits.f8e5m2);
    case IRIS_DTYPE_F32:
    case IRIS_DTYPE_COMPLEX64:
        return bits.f32[part];
    case IRIS_DTYPE_F64:
    case IRIS_DTYPE_COMPLEX128:
        return bits.f64[part];
    case IRIS_DTYPE_U64:
        return (double)iris_i_element_bits(element, dtype);
    default:
        return (double)(int64_t)iris_i_element_bits(element, dtype);
    }
}

double iris_i_element_part(const void *element, iris_dtype_t dtype, int part)
{
    uint64_t fp = iris_i_fp_enter();
    double value = part_of(element, dtype, part);

    iris_i_fp_leave(fp);
    return value;
}
