/* SPDX-License-Identifier: MIT
 *
 * Pairs of normal numbers from random bits, by Box and Muller (Ann. Math. Stat.
 * 29, 1958). Logarithm, root and sines are integer arithmetic, so no compiler
 * and no GPU rounds them differently. Only the library includes this header.
 */
#ifndef IRIS_DEVICE_KERNELS_NORMAL_H
#define IRIS_DEVICE_KERNELS_NORMAL_H

#include <stddef.h>
#include <stdint.h>

#include <iris/device/core/compat.h>

__extension__ typedef __int128 iris_d_int128_t;
__extension__ typedef unsigned __int128 iris_d_uint128_t;

/* All numbers are fixed point: "Q30" is a number times 2^30. Polynomials are
 * Chebyshev interpolations in exact arithmetic, rounded, highest degree first.
 * The stated errors are the largest relative ones with the rounded
 * coefficients. */

/* The polynomial at x, with 32 or `bits` fraction bits. Sums and products do
 * not overflow with the coefficients below. */
IRIS_DEVICE int64_t iris_d_poly32(const int32_t *coefficients, int count,
                                  int64_t x)
{
    int64_t sum = coefficients[0];

    for (int i = 1; i < count; i++) {
        sum = (sum * x >> 32) + coefficients[i];
    }
    return sum;
}

IRIS_DEVICE int64_t iris_d_poly64(const int64_t *coefficients, int count,
                                  int64_t x, int bits)
{
    int64_t sum = coefficients[0];

    for (int i = 1; i < count; i++) {
        sum = (int64_t)((iris_d_int128_t)sum * x >> bits) + coefficients[i];
    }
    return sum;
}

/* 1 / sqrt(t) in Q31, for t in [1, 4) in Q30: an estimate to 2^-8.5, then two
 * of Newton's steps y (3 - t y^2) / 2. */
IRIS_DEVICE uint64_t iris_d_rsqrt(uint64_t t)
{
    const int64_t near[] = {233973744, -748931752, 934236184, -584430000,
                            232362592}; /* Q27 of 1 / sqrt(4 x), x Q32 */
    int64_t estimate = near[0];
    uint64_t y;

    for (int i = 1; i < 5; i++) {
        estimate = (estimate * (int64_t)t >> 32) + near[i];
    }
    y = (uint64_t)estimate << 4;
    for (int i = 0; i < 2; i++) {
        uint64_t square = ((t * y >> 32) * y) >> 30; /* t y^2, Q30 */

        y = y * ((3u << 30) - square) >> 31;
    }
    return y;
}

/* Powers of two as float and double, for e within their range. */
IRIS_DEVICE float iris_d_exp2_f32(int e)
{
    union {
        uint32_t bits;
        float value;
    } power;

    power.bits = (uint32_t)(127 + e) << 23;
    return power.value;
}

IRIS_DEVICE double iris_d_exp2_f64(int e)
{
    union {
        uint64_t bits;
        double value;
    } power;

    power.bits = (uint64_t)(1023 + e) << 52;
    return power.value;
}

/* -ln(bits / 2^32) in Q58. Bits are odd, so they stand for the middle between
 * two numbers, and are neither 0 nor 1. */
IRIS_DEVICE uint64_t iris_d_log32(uint32_t bits)
{
    const int32_t series[] = {56219925,  -105274159, 107881044, -106794321,
                              118176436, -134168715, 153446423, -178960814,
                              214747164, -268435378, 357913951, -536870912,
                              1073741824}; /* Q30 of ln(1 + x) / x, 2^-32.4 */
    int64_t halvings = 1, x, log;

    for (int shift = 16; shift > 0; shift /= 2) {
        int zeros = bits >> (32 - shift) == 0 ? shift : 0;

        bits <<= zeros;
        halvings += zeros;
    }
    /* Move the number between sqrt(1/2) and sqrt(2), so that near 1 no digits
     * cancel. */
    if (bits > 0xb504f333u) {
        halvings--;
        x = (int64_t)bits - ((int64_t)1 << 32);
    } else {
        x = ((int64_t)bits << 1) - ((int64_t)1 << 32);
    }
    log = x * iris_d_poly32(series, 13, x) >> 4;
    return (uint64_t)(halvings * 0x2c5c85fdf473de7 - log);
}

/* -ln(bits / 2^64) in Q120, for odd bits. */
IRIS_DEVICE iris_d_uint128_t iris_d_log64(uint64_t bits)
{
    const int64_t series[] = {
        0x1372d49d90cdcba,  -0x31c198b79398a72, 0x3a268b75094141c,
        -0x3181e021519137b, 0x2e41b29aa440b46,  -0x3217531033282f6,
        0x36168798b777bb1,  -0x390d2c9316cddb9, 0x3c3bd451c6573ce,
        -0x3ffc8999de70381, 0x44440a974a115c7,  -0x4924c04c7066268,
        0x4ec4f13538e85ec,  -0x555553cd7f916a9, 0x5d17459e810ab95,
        -0x6666666eae11ca7, 0x71c71c72f0b56ba,  -0x7fffffffe4aa6de,
        0x92492492455ff62,  -0xaaaaaaaaaadd4ed, 0xccccccccccd2e3e,
        -0xffffffffffffd3a, 0x1555555555555519, -0x2000000000000001,
        0x4000000000000000}; /* Q62 of ln(1 + x) / x, 2^-64.6 */
    const iris_d_int128_t ln2 =
        (iris_d_int128_t)0xb17217f7d1cf79 << 64 | 0xabc9e3b39803f2f7u;
    iris_d_int128_t log;
    int64_t halvings = 1, x;

    for (int shift = 32; shift > 0; shift /= 2) {
        int zeros = bits >> (64 - shift) == 0 ? shift : 0;

        bits <<= zeros;
        halvings += zeros;
    }
    if (bits > 0xb504f333f9de6484u) {
        halvings--;
        x = (int64_t)bits; /* less 2^64 */
    } else {
        x = (int64_t)(bits << 1);
    }
    log = (iris_d_int128_t)x * iris_d_poly64(series, 25, x, 64) >> 6;
    return (iris_d_uint128_t)(halvings * ln2 - log);
}

/* Two halves of a pair; *c_p is the one from the cosine. */
IRIS_DEVICE void iris_d_turn_f32(unsigned quarter, float c, float s, float *c_p,
                                 float *s_p)
{
    float along = quarter & 1 ? s : c;
    float across = quarter & 1 ? c : s;

    *c_p = quarter == 1 || quarter == 2 ? -along : along;
    *s_p = quarter >= 2 ? -across : across;
}

IRIS_DEVICE void iris_d_turn_f64(unsigned quarter, double c, double s,
                                 double *c_p, double *s_p)
{
    double along = quarter & 1 ? s : c;
    double across = quarter & 1 ? c : s;

    *c_p = quarter == 1 || quarter == 2 ? -along : along;
    *s_p = quarter >= 2 ? -across : across;
}

/* A pair of independent normal numbers of variance 1 (1/2 if `half` is set),
 * from 64 random bits; up to 6.66 standard deviations. */
IRIS_DEVICE void iris_d_normal_f32(uint32_t radius, uint32_t angle, int half,
                                   float *c_p, float *s_p)
{
    const int32_t sine[] = {664, -78539, 5348079, -173399667,
                            1686629713}; /* Q31 of sin(sqrt(x) pi / 4) /
                                          * sqrt(x), 2^-33.3 */
    const int32_t cosine[] = {3790, -349974, 17023452, -331168967,
                              1073741824}; /* Q30, 2^-32.5 */
    uint64_t t = iris_d_log32(radius | 1) << (half ? 0 : 1);
    unsigned quarter = (angle + (1u << 29)) >> 30;
    int64_t x = (int32_t)((angle - (quarter << 30)) << 2); /* eighths, Q31 */
    int64_t square = x * x >> 30;
    int shifted = 0;
    float r, c, s;

    for (int shift = 32; shift > 1; shift /= 2) {
        int zeros = t >> (64 - shift) == 0 ? shift : 0;

        t <<= zeros;
        shifted += zeros;
    }
    t >>= 32;
    r = (float)(int32_t)(t * iris_d_rsqrt(t) >> 32);
    r *= iris_d_exp2_f32(2 - shifted / 2 - 29);
    c = r * ((float)(int32_t)iris_d_poly32(cosine, 5, square) *
             iris_d_exp2_f32(-30));
    s = (float)(int32_t)x * (float)(int32_t)iris_d_poly32(sine, 5, square);
    s = r * (s * iris_d_exp2_f32(-62));
    iris_d_turn_f32(quarter & 3, c, s, c_p, s_p);
}

/* iris_d_normal_f32() in double, from 128 bits; up to 9.42 standard
 * deviations. */
IRIS_DEVICE void iris_d_normal_f64(uint64_t radius, uint64_t angle, int half,
                                   double *c_p, double *s_p)
{
    const int64_t sine[] = {0x1a7,
                            -0x2df55,
                            0x3d1e863,
                            -0x3c60e9fb9,
                            0x2a0f0690fdc,
                            -0x132d2cce62bd8,
                            0x519af19dd6ab87,
                            -0xa55de7312df295f,
                            0x6487ed5110b4611a}; /* Q63, 2^-64 */
    const int64_t cosine[] = {0x11e3,
                              -0x1b6dd7,
                              0x1f9d3855,
                              -0x1a6d1f29f2,
                              0xf0fa83448cd,
                              -0x5574f1f8f2ffb,
                              0x103c1f081b5ac3b,
                              -0x13bd3cc9be45de5a,
                              0x4000000000000000}; /* Q62, 2^-61.6 */
    iris_d_uint128_t t = iris_d_log64(radius | 1) << (half ? 0 : 1);
    unsigned quarter = (unsigned)((angle + ((uint64_t)1 << 61)) >> 62);
    int64_t x = (int64_t)((angle - ((uint64_t)quarter << 62)) << 2);
    int64_t square = (int64_t)((iris_d_int128_t)x * x >> 64); /* Q62 */
    int shifted = 0;
    uint64_t top, y, root;
    double r, c, s;

    for (int shift = 64; shift > 1; shift /= 2) {
        int zeros = t >> (128 - shift) == 0 ? shift : 0;

        t <<= zeros;
        shifted += zeros;
    }
    top = (uint64_t)(t >> 64);
    y = iris_d_rsqrt(top >> 32) << 32;
    root = (uint64_t)((iris_d_uint128_t)top * y >> 64); /* Q61 */
    y = (uint64_t)((iris_d_uint128_t)root * y >> 64);   /* t y^2, Q60 */
    root = (uint64_t)((iris_d_uint128_t)root * (((uint64_t)3 << 60) - y) >> 63);
    r = (double)(int64_t)root * iris_d_exp2_f64(3 - shifted / 2 - 59);
    c = r *
        ((double)iris_d_poly64(cosine, 9, square, 62) * iris_d_exp2_f64(-62));
    s = (double)x * (double)iris_d_poly64(sine, 9, square, 62);
    s = r * (s * iris_d_exp2_f64(-126));
    iris_d_turn_f64(quarter & 3, c, s, c_p, s_p);
}

#endif /* IRIS_DEVICE_KERNELS_NORMAL_H */
