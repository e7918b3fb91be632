/* SPDX-License-Identifier: MIT
 *
 * The 8-bit floats by their definition, in double: what conversions are held to.
 */
#ifndef IRIS_TESTS_SUPPORT_FLOAT8_H
#define IRIS_TESTS_SUPPORT_FLOAT8_H

#include <iris/device/core/half.h>

#include <math.h>
#include <stdint.h>

static inline float float_of(uint32_t bits)
{
    iris_d_f32_t f;

    f.bits = bits;
    return f.value;
}

static inline uint32_t bits_of(float value)
{
    iris_d_f32_t f;

    f.value = value;
    return f.bits;
}

/* The magnitude of the number with these 7 bits, of a type with `fraction` bits
 * of fraction, as if no bits were for infinity and NaN. */
static inline double float8_magnitude(unsigned bits, int fraction)
{
    int bias = fraction == 3 ? 7 : 15;
    int exponent = (int)(bits >> fraction);
    double part = (double)(bits & ((1u << fraction) - 1)) / (1 << fraction);

    return exponent == 0 ? ldexp(part, 1 - bias)
                         : ldexp(1 + part, exponent - bias);
}

/* The first 7 bits that are not finite. */
static inline unsigned float8_end(int fraction)
{
    return fraction == 3 ? 0x7f : 0x7c;
}

/* The bits of the number next to a float, of two equally near ones the even
 * one. What is beyond the last finite number by half a step or more is not
 * finite: NaN, or of e5m2 infinity. */
static inline unsigned float8_nearest(float value, int fraction)
{
    unsigned sign = signbit(value) ? 0x80 : 0, low = 0;
    unsigned high = float8_end(fraction);
    double x = fabs((double)value), below, above;

    if (isnan(value)) {
        return sign | 0x7f;
    }
    while (high - low > 1) {
        unsigned middle = (low + high) / 2;

        if (float8_magnitude(middle, fraction) <= x) {
            low = middle;
        } else {
            high = middle;
        }
    }
    below = x - float8_magnitude(low, fraction);
    above = float8_magnitude(high, fraction) - x;
    return sign |
           (below < above || (below == above && low % 2 == 0) ? low : high);
}

#endif /* IRIS_TESTS_SUPPORT_FLOAT8_H */
