/* SPDX-License-Identifier: MIT
 *
 * float to and from the two 16-bit float types, in integer arithmetic: the same
 * bits on every target, whatever its hardware or its compiler flags do.
 */
#ifndef IRIS_DEVICE_HALF_H
#define IRIS_DEVICE_HALF_H

#include <iris/types.h>
#include <iris/device/compat.h>

typedef union iris_d_f32 {
    float value;
    uint32_t bits;
} iris_d_f32_t;

/** The float that `half` is, exactly. A NaN stays a NaN and becomes quiet.
 *  Any lane, or the host. */
IRIS_HOST_DEVICE float iris_f16_to_f32(iris_f16_t half)
{
    uint32_t magnitude = half.bits & 0x7fffu;
    uint32_t exponent = magnitude >> 10;
    uint32_t fraction = magnitude & 0x3ffu;
    iris_d_f32_t result;

    if (exponent == 31) {
        result.bits = 0x7f800000u | fraction << 13;
        result.bits |= fraction != 0 ? 0x400000u : 0;
    } else if (exponent != 0) {
        result.bits = (magnitude << 13) + (112u << 23);
    } else if (fraction != 0) {
        /* Subnormal: move the leading one to where float leaves it out. */
        for (exponent = 113; (fraction & 0x400u) == 0; exponent--) {
            fraction <<= 1;
        }
        result.bits = exponent << 23 | (fraction & 0x3ffu) << 13;
    } else {
        result.bits = 0;
    }
    result.bits |= (uint32_t)(half.bits & 0x8000u) << 16;
    return result.value;
}

/** `value` rounded to nearest, ties to even; too large becomes infinity, a NaN
 *  becomes a quiet NaN. Any lane, or the host. */
IRIS_HOST_DEVICE iris_f16_t iris_f16_from_f32(float value)
{
    iris_d_f32_t input;
    iris_f16_t result;
    uint32_t magnitude, half;

    input.value = value;
    magnitude = input.bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) {
        half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    } else if (magnitude >= 0x477ff000u) { /* 65520 and up */
        half = 0x7c00u;
    } else if (magnitude >= 0x38800000u) { /* 2^-14 and up: normal */
        half = magnitude - (112u << 23);
        half = (half + 0xfffu + (half >> 13 & 1u)) >> 13;
    } else if (magnitude >= 0x33000000u) { /* 2^-25 and up: subnormal */
        uint32_t shift = 126u - (magnitude >> 23);
        uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;

        half = fraction >> shift;
        fraction += (1u << (shift - 1)) - 1u + (half & 1u);
        half = fraction >> shift;
    } else {
        half = 0;
    }
    result.bits = (uint16_t)(half | (input.bits >> 16 & 0x8000u));
    return result;
}

/** The float that `half` is, exactly. Any lane, or the host. */
IRIS_HOST_DEVICE float iris_bf16_to_f32(iris_bf16_t half)
{
    iris_d_f32_t result;

    result.bits = (uint32_t)half.bits << 16;
    return result.value;
}

/** `value` rounded to nearest, ties to even; too large becomes infinity, a NaN
 *  becomes a quiet NaN. Any lane, or the host. */
IRIS_HOST_DEVICE iris_bf16_t iris_bf16_from_f32(float value)
{
    iris_d_f32_t input;
    iris_bf16_t result;

    input.value = value;
    if ((input.bits & 0x7fffffffu) > 0x7f800000u) {
        result.bits = (uint16_t)(input.bits >> 16 | 0x40u);
    } else {
        input.bits += 0x7fffu + (input.bits >> 16 & 1u);
        result.bits = (uint16_t)(input.bits >> 16);
    }
    return result;
}

#endif /* IRIS_DEVICE_HALF_H */
