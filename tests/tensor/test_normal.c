/* SPDX-License-Identifier: MIT
 *
 * What kernels of random numbers are made of, on the host: how far normal
 * numbers are from Box's and Muller's formula and their tails reach, and rows.
 */
#include "config.h"

#include "tensor/draw.h"

#include <math.h>

#include <iris/device/kernels/normal.h>
#include <iris/device/core/vector.h>

#define PAIRS harness_count(20000000, 300000)

static uint64_t random_bits(void)
{
    static uint64_t i;

    return draw_double_word(iris_generator_make(2026, 11), i++);
}

/* Bits of which now and then all but a few are 0, or 1: radii at both ends,
 * angles next to the axes. */
static uint64_t bits_of(int width, size_t i)
{
    uint64_t bits = random_bits() >> (64 - width);
    unsigned shift = (unsigned)(random_bits() % (unsigned)width);

    if (i % 7 == 0) {
        bits >>= shift;
    } else if (i % 7 == 1) {
        bits = ~(bits >> shift) & (UINT64_MAX >> (64 - width));
    }
    return bits;
}

struct pair {
    long double c, s;
};

/* The formula in long double. The angle is taken from the nearest axis, and the
 * logarithm of what is near 1 by way of the difference, both exact. */
static struct pair pair_of(uint64_t radius, uint64_t angle, int width, int half)
{
    long double turn = ldexpl(1, width);
    uint64_t quarter_turn = (uint64_t)1 << (width - 2);
    uint64_t quarter =
        ((angle + quarter_turn / 2) & (UINT64_MAX >> (64 - width))) >>
        (width - 2);
    int64_t rest =
        (int64_t)((angle - quarter * quarter_turn) << (64 - width)) >>
        (64 - width);
    long double x = 2 * acosl(-1) * (long double)rest / turn;
    uint64_t below = (UINT64_MAX >> (64 - width)) - (radius | 1) + 1;
    long double log = (radius | 1) >> (width - 1) != 0
                          ? log1pl(-(long double)below / turn)
                          : logl((long double)(radius | 1) / turn);
    long double r = sqrtl(-(half ? 1 : 2) * log);
    long double c = cosl(x), s = sinl(x);
    const struct pair pairs[] = {
        {r * c, r * s}, {r * -s, r * c}, {r * -c, r * -s}, {r * s, r * -c}};

    return pairs[quarter];
}

/* How many units in the last of `bits` places `seen` is away. */
static double units(long double seen, long double expected, int bits)
{
    int exponent;

    (void)frexpl(expected, &exponent);
    return expected == 0
               ? (double)fabsl(seen)
               : (double)(fabsl(seen - expected) / ldexpl(1, exponent - bits));
}

static TEST(numbers_are_what_the_formula_says)
{
    double worst32 = 0, worst64 = 0;

    for (size_t i = 0; i < PAIRS; i++) {
        uint32_t r32 = (uint32_t)bits_of(32, i), a32 = (uint32_t)bits_of(32, i);
        uint64_t r64 = bits_of(64, i), a64 = bits_of(64, i);
        int half = i % 2 == 1;
        struct pair want32 = pair_of(r32, a32, 32, half);
        struct pair want64 = pair_of(r64, a64, 64, half);
        float c32, s32;
        double c64, s64;

        iris_d_normal_f32(r32, a32, half, &c32, &s32);
        iris_d_normal_f64(r64, a64, half, &c64, &s64);
        worst32 = fmax(
            worst32, fmax(units(c32, want32.c, 24), units(s32, want32.s, 24)));
        worst64 = fmax(
            worst64, fmax(units(c64, want64.c, 53), units(s64, want64.s, 53)));
    }
    print_message("at most %.2f units of f32, %.2f of f64\n", worst32, worst64);
    assert_true(worst32 < 4);
    assert_true(worst64 < 4);
}

static TEST(tails_reach_beyond_five_and_a_half_deviations)
{
    float c, s;
    double wide_c, wide_s;

    iris_d_normal_f32(0, 0, 0, &c, &s);
    assert_true(c > 6.65f && c < 6.67f && s == 0);
    iris_d_normal_f32(1, 0x80000000u, 0, &c, &s);
    assert_true(c < -6.65f && c > -6.67f && s == 0);
    iris_d_normal_f32(UINT32_MAX, 0x40000000u, 0, &c, &s);
    assert_true(c == 0 && s > 0 && s < 2.2e-5f);
    iris_d_normal_f64(0, (uint64_t)3 << 62, 0, &wide_c, &wide_s);
    assert_true(wide_c == 0 && wide_s < -9.41 && wide_s > -9.43);
    iris_d_normal_f64(UINT64_MAX, 0, 0, &wide_c, &wide_s);
    assert_true(wide_s == 0 && wide_c > 0 && wide_c < 3.3e-10);
}

static TEST(the_larger_the_bits_the_smaller_the_number)
{
    float before = INFINITY, c, s;

    for (uint64_t bits = 1; bits <= UINT32_MAX; bits += 1 + bits / 1000) {
        iris_d_normal_f32((uint32_t)bits, 0, 0, &c, &s);
        assert_true(c <= before);
        before = c;
    }
}

#if IRIS_ON_X86
/* Rows of uniform numbers, where a block's number goes past 32 bits. */
typedef void (*row_t)(void *, uint64_t, uint64_t, uint64_t, uint64_t);

static void check_rows(row_t row_f32, row_t row_f64)
{
    const iris_generator_t start = {0x123456789abcdef0u, 0xfedcba9876543210u,
                                    0xffffffe0u};
    float numbers[4 * 64];
    double wide[2 * 64];

    row_f32(numbers, start.seed, start.sequence, start.offset, 64);
    for (size_t i = 0; i < 4 * 64; i++) {
        assert_true(numbers[i] == (float)(draw_word(start, i) >> 8) * 0x1p-24f);
    }
    row_f64(wide, start.seed, start.sequence, start.offset, 64);
    for (size_t i = 0; i < 2 * 64; i++) {
        assert_true(wide[i] ==
                    (double)(draw_double_word(start, i) >> 11) * 0x1p-53);
    }
}

static TEST(vectors_of_any_width_make_the_same_numbers)
{
    if (iris_d_has_avx2()) {
        check_rows(iris_d_f32_row_256, iris_d_f64_row_256);
    }
    if (iris_d_has_avx512()) {
        check_rows(iris_d_f32_row_512, iris_d_f64_row_512);
    }
}
#endif

TEST_GROUP(unit);
