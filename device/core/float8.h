/* SPDX-License-Identifier: MIT
 *
 * float to and from the two 8-bit float types: the same bits on every target,
 * for all hardware and compiler flags, and those of PyTorch's conversions.
 *
 * @use host or lane; never blocks; apart
 * @param value  the number
 */
#ifndef IRIS_DEVICE_FLOAT8_H
#define IRIS_DEVICE_FLOAT8_H

#include <iris/types.h>
#include <iris/device/core/half.h>

/* An 8-bit float is a sign, an exponent and `fraction` bits, a constant: 3 of
 * e4m3, 2 of e5m2. */
#define IRIS_D_F8_BIAS(fraction) ((1u << (6 - (fraction))) - 1)

/* The float of these bits, finite ones, as bits. */
IRIS_HOST_DEVICE uint32_t iris_d_f8_to_f32(uint32_t bits, unsigned fraction)
{
    uint32_t magnitude = bits & 0x7fu;
    iris_d_f32_t least, small, result;

    least.bits = (128u - IRIS_D_F8_BIAS(fraction) - fraction) << 23;
    small.value = (float)(int32_t)magnitude * least.value; /* subnormal */
    result.bits = (magnitude << (23 - fraction)) +
                  ((127u - IRIS_D_F8_BIAS(fraction)) << 23);
    result.bits = magnitude >> fraction == 0 ? small.bits : result.bits;
    return result.bits | (bits & 0x80u) << 24;
}

/* The magnitude of a float rounded to nearest, ties to even, without an upper
 * end. Adding `step`, whose last place is that of subnormal results, rounds
 * these. */
IRIS_HOST_DEVICE uint32_t iris_d_f8_round(float value, unsigned fraction)
{
    const unsigned shift = 23 - fraction;
    iris_d_f32_t input, step, small;
    uint32_t normal;

    input.value = value;
    input.bits &= 0x7fffffffu;
    normal = input.bits + (1u << (shift - 1)) - 1 + (input.bits >> shift & 1u);
    normal =
        (normal >> shift) - ((127u - IRIS_D_F8_BIAS(fraction)) << fraction);
    step.bits = (151u - IRIS_D_F8_BIAS(fraction) - fraction) << 23;
    small.value = input.value + step.value;
    return input.bits >> 23 < 128u - IRIS_D_F8_BIAS(fraction)
               ? small.bits - step.bits
               : normal;
}

/** The float that `value` is, exactly. Any lane, or the host. */
IRIS_HOST_DEVICE float iris_f8e4m3_to_f32(iris_f8e4m3_t value)
{
    iris_d_f32_t result;

    result.bits = iris_d_f8_to_f32(value.bits, 3);
    if ((value.bits & 0x7fu) == 0x7fu) {
        result.bits = (uint32_t)(value.bits & 0x80u) << 24 | 0x7fc00000u;
    }
    return result.value;
}

/** The float that `value` is, exactly. A NaN becomes quiet. Any lane, or the
 *  host. */
IRIS_HOST_DEVICE float iris_f8e5m2_to_f32(iris_f8e5m2_t value)
{
    iris_d_f32_t result;

    result.bits = iris_d_f8_to_f32(value.bits, 2);
    if ((value.bits & 0x7fu) >= 0x7cu) {
        result.bits |= 0x7f800000u | ((value.bits & 3u) == 0 ? 0 : 0x400000u);
    }
    return result.value;
}

/** `value` rounded to nearest, ties to even. The type has no infinity: a value
 *  that rounds beyond 448 becomes a NaN, as does a NaN. Any lane, or the host. */
IRIS_HOST_DEVICE iris_f8e4m3_t iris_f8e4m3_from_f32(float value)
{
    iris_d_f32_t input;
    iris_f8e4m3_t result;
    uint32_t magnitude = iris_d_f8_round(value, 3);

    input.value = value;
    magnitude = magnitude < 0x7fu ? magnitude : 0x7fu;
    result.bits = (uint8_t)(magnitude | (input.bits >> 24 & 0x80u));
    return result;
}

/** `value` rounded to nearest, ties to even. A value that rounds beyond 57344
 *  becomes infinity, and a NaN becomes a quiet NaN. Any lane, or the host. */
IRIS_HOST_DEVICE iris_f8e5m2_t iris_f8e5m2_from_f32(float value)
{
    iris_d_f32_t input;
    iris_f8e5m2_t result;
    uint32_t magnitude = iris_d_f8_round(value, 2);

    input.value = value;
    magnitude = magnitude < 0x7cu ? magnitude : 0x7cu;
    magnitude = (input.bits & 0x7fffffffu) > 0x7f800000u ? 0x7fu : magnitude;
    result.bits = (uint8_t)(magnitude | (input.bits >> 24 & 0x80u));
    return result;
}

#endif /* IRIS_DEVICE_FLOAT8_H */
