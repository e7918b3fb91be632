/* SPDX-License-Identifier: MIT
 *
 * float to and from the two 16-bit float types: the same bits on every target,
 * for all hardware and compiler flags. Integer arithmetic, or the GPU's
 * instruction if it has one. NaNs always use integer arithmetic, because
 * instructions choose their bits.
 *
 * @use host or lane; never blocks; apart
 * @param value, half  the number
 */
#ifndef IRIS_DEVICE_HALF_H
#define IRIS_DEVICE_HALF_H

#include <iris/types.h>
#include <iris/device/core/compat.h>

typedef union iris_d_f32 {
    float value;
    uint32_t bits;
} iris_d_f32_t;

/* ---- Values except NaNs -----------------------------------------------------
 */
#if IRIS_D_CONVERTS_F16 && IRIS_ON_CUDA
IRIS_DEVICE float iris_d_f16_to_f32(uint16_t bits)
{
    float value;

    __asm__("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
    return value;
}

IRIS_DEVICE uint16_t iris_d_f16_from_f32(float value)
{
    uint16_t bits;

    __asm__("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#elif IRIS_D_CONVERTS_F16
IRIS_DEVICE float iris_d_f16_to_f32(uint16_t bits)
{
    return (float)__builtin_bit_cast(_Float16, bits);
}

IRIS_DEVICE uint16_t iris_d_f16_from_f32(float value)
{
    return __builtin_bit_cast(uint16_t, (_Float16)value);
}
#else
IRIS_HOST_DEVICE float iris_d_f16_to_f32(uint16_t bits)
{
    uint32_t magnitude = bits & 0x7fffu;
    uint32_t exponent = magnitude >> 10;
    uint32_t fraction = magnitude & 0x3ffu;
    iris_d_f32_t result;

    if (exponent == 31) {
        result.bits = 0x7f800000u;
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
    result.bits |= (uint32_t)(bits & 0x8000u) << 16;
    return result.value;
}

IRIS_HOST_DEVICE uint16_t iris_d_f16_from_f32(float value)
{
    iris_d_f32_t input;
    uint32_t magnitude, half;

    input.value = value;
    magnitude = input.bits & 0x7fffffffu;
    if (magnitude >= 0x477ff000u) { /* 65520 and up */
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
    return (uint16_t)(half | (input.bits >> 16 & 0x8000u));
}
#endif

#if IRIS_D_CONVERTS_BF16
IRIS_DEVICE uint16_t iris_d_bf16_from_f32(float value)
{
    uint16_t bits;

    __asm__("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
    return bits;
}
#else
IRIS_HOST_DEVICE uint16_t iris_d_bf16_from_f32(float value)
{
    iris_d_f32_t input;

    input.value = value;
    return (uint16_t)((input.bits + 0x7fffu + (input.bits >> 16 & 1u)) >> 16);
}
#endif

/* ---- Of anything ------------------------------------------------------------
 */

/** The float that `half` is, exactly. A NaN stays a NaN and becomes quiet.
 *  Any lane, or the host. */
IRIS_HOST_DEVICE float iris_f16_to_f32(iris_f16_t half)
{
    iris_d_f32_t result;

    result.value = iris_d_f16_to_f32(half.bits);
    if ((half.bits & 0x7fffu) > 0x7c00u) {
        result.bits = (uint32_t)(half.bits & 0x8000u) << 16 | 0x7fc00000u |
                      (uint32_t)(half.bits & 0x3ffu) << 13;
    }
    return result.value;
}

/** `value` rounded to nearest, ties to even; too large becomes infinity, a NaN
 *  becomes a quiet NaN. Any lane, or the host. */
IRIS_HOST_DEVICE iris_f16_t iris_f16_from_f32(float value)
{
    iris_d_f32_t input;
    iris_f16_t result;

    input.value = value;
    result.bits = iris_d_f16_from_f32(value);
    if ((input.bits & 0x7fffffffu) > 0x7f800000u) {
        result.bits = (uint16_t)((input.bits >> 16 & 0x8000u) | 0x7e00u |
                                 (input.bits >> 13 & 0x3ffu));
    }
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
    result.bits = iris_d_bf16_from_f32(value);
    if ((input.bits & 0x7fffffffu) > 0x7f800000u) {
        result.bits = (uint16_t)(input.bits >> 16 | 0x40u);
    }
    return result;
}

#endif /* IRIS_DEVICE_HALF_H */
