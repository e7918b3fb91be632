/* SPDX-License-Identifier: MIT
 *
 * The conversions of the two 16-bit float types, against arithmetic in double.
 */
#include "config.h"

#include <iris/device/core/half.h>

#include "support/float8.h"
#include "support/harness.h"

#include <stdio.h>

/* One of the formats: its stored fraction's bits, its greatest exponent, and
 * its conversions on bits. */
struct format {
    int fraction_bits;
    int max_exponent;
    float (*to_f32)(uint16_t bits);
    uint16_t (*from_f32)(float value);
};

/* clang-format off */
#define ROW(name, c_type, arg)                                                 \
    static float name##_to_f32(uint16_t bits)                                  \
    {                                                                          \
        c_type half = {bits};                                                  \
        return iris_##name##_to_f32(half);                                     \
    }                                                                          \
    static uint16_t name##_from_f32(float value)                               \
    {                                                                          \
        return iris_##name##_from_f32(value).bits;                             \
    }
ROW(f16, iris_f16_t, )
ROW(bf16, iris_bf16_t, )
#undef ROW
/* clang-format on */

static const struct format formats[] = {
    {10, 15, f16_to_f32, f16_from_f32},
    {7, 127, bf16_to_f32, bf16_from_f32},
};
#define NUM_FORMATS (sizeof formats / sizeof *formats)

/* 2 to the e, exactly. */
static double power(int e)
{
    double result = 1;

    for (; e > 0; e--) {
        result *= 2;
    }
    for (; e < 0; e++) {
        result /= 2;
    }
    return result;
}

/* Bits of infinity; above it, without the sign, are the NaNs. */
static uint32_t infinity_of(const struct format *format)
{
    return (2u * (uint32_t)format->max_exponent + 1) << format->fraction_bits;
}

/* What bits without a sign are. Infinity is what would come after the greatest
 * number if exponents went on, so that rounding up to it is nothing special. */
static double value_of(const struct format *format, uint32_t bits)
{
    int exponent = (int)(bits >> format->fraction_bits);
    uint32_t fraction = bits & ((1u << format->fraction_bits) - 1);

    if (exponent != 0) {
        fraction |= 1u << format->fraction_bits;
    }
    return fraction * power((exponent != 0 ? exponent : 1) -
                            format->max_exponent - format->fraction_bits);
}

static void check_number(const struct format *format, uint32_t bits)
{
    uint32_t magnitude = bits & 0x7fff;
    float value = format->to_f32((uint16_t)bits);
    double want = value_of(format, magnitude);

    if (magnitude == infinity_of(format)) {
        want = (double)float_of(0x7f800000);
    }
    assert_true((bits >> 15 ? -value : value) == want);
    assert_int_equal(format->from_f32(value), bits);
}

static void check_nan(const struct format *format, uint32_t bits)
{
    uint32_t quiet = 1u << (format->fraction_bits - 1);
    float value = format->to_f32((uint16_t)bits);

    assert_true(value != value);
    assert_int_equal(format->from_f32(value) | quiet, bits | quiet);
}

static TEST(every_pattern_is_what_ieee_says_and_comes_back)
{
    for (size_t f = 0; f < NUM_FORMATS; f++) {
        for (uint32_t bits = 0; bits < 0x10000; bits++) {
            float value = formats[f].to_f32((uint16_t)bits);

            assert_int_equal(bits_of(value) >> 31, bits >> 15);
            if ((bits & 0x7fff) <= infinity_of(&formats[f])) {
                check_number(&formats[f], bits);
            } else {
                check_nan(&formats[f], bits);
            }
        }
    }
}

/* Between two neighbours: the middle goes to the even one, what is on either
 * side of it to the nearer one. */
static void check_between(const struct format *format, uint32_t low)
{
    const float middle =
        (float)((value_of(format, low) + value_of(format, low + 1)) / 2);
    const uint32_t bits = bits_of(middle);
    const float low_value = (float)value_of(format, low);

    for (uint32_t sign = 0; sign < 2; sign++) {
        uint32_t want = sign << 15, s = sign << 31;

        assert_int_equal(format->from_f32(float_of(s | bits)),
                         want + low + (low & 1));
        assert_int_equal(format->from_f32(float_of(s | (bits - 1))),
                         want + low);
        assert_int_equal(format->from_f32(float_of(s | (bits + 1))),
                         want + low + 1);
        assert_int_equal(
            format->from_f32(float_of(s | (bits_of(low_value) + 1))),
            want + low);
    }
}

static TEST(values_between_go_to_the_nearest_and_ties_to_even)
{
    for (size_t f = 0; f < NUM_FORMATS; f++) {
        for (uint32_t low = 0; low < infinity_of(&formats[f]); low++) {
            check_between(&formats[f], low);
        }
    }
}

/* The magnitude that a format has for a float's: to the multiple of the last
 * place that is nearest; adding 2^52 lets the double adder round. */
static double nearest(const struct format *format, uint32_t magnitude)
{
    int exponent = (int)(magnitude >> 23) - 127;
    int least = 1 - format->max_exponent;
    double last_place =
        power((exponent < least ? least : exponent) - format->fraction_bits);
    volatile double big = 4503599627370496.0;
    volatile double sum = (double)float_of(magnitude) / last_place + big;

    return (sum - big) * last_place;
}

static TEST(floats_from_everywhere_round_as_in_double)
{
    const uint32_t step = harness_count(1, 0) ? 41 : 4099; /* primes */

    for (size_t f = 0; f < NUM_FORMATS; f++) {
        const struct format *format = &formats[f];
        double end = value_of(format, infinity_of(format));

        for (uint32_t bits = f; bits <= 0xffffffff - step; bits += step) {
            uint16_t got = format->from_f32(float_of(bits));
            uint32_t magnitude = bits & 0x7fffffff;

            assert_int_equal(got >> 15, bits >> 31);
            if (magnitude > 0x7f800000) {
                assert_true((got & 0x7fff) > infinity_of(format));
            } else {
                double want = nearest(format, magnitude);

                want = want > end ? end : want;
                assert_true(value_of(format, got & 0x7fff) == want);
            }
        }
    }
}

static TEST(too_large_becomes_infinity_and_every_nan_stays_a_quiet_nan)
{
    for (size_t f = 0; f < NUM_FORMATS; f++) {
        const struct format *format = &formats[f];
        uint16_t infinity = (uint16_t)infinity_of(format);
        uint16_t quiet = infinity | 1u << (format->fraction_bits - 1);

        assert_int_equal(format->from_f32(float_of(0x7f7fffff)), infinity);
        assert_int_equal(format->from_f32(float_of(0x7f800000)), infinity);
        assert_int_equal(format->from_f32(float_of(0xff800000)),
                         infinity | 0x8000);
        for (uint32_t nan = 0x7f800001; nan < 0x7fffff00; nan += 127) {
            assert_int_equal(format->from_f32(float_of(nan)) & quiet, quiet);
        }
        for (uint32_t nan = 1; nan != 0x800000; nan <<= 1) {
            uint16_t got = format->from_f32(float_of(0xff800000 | nan));

            assert_int_equal(got & (0x8000 | quiet), 0x8000 | quiet);
        }
    }
}

TEST_GROUP_WITH(NULL, NULL, unit);
