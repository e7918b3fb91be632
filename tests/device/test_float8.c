/* SPDX-License-Identifier: MIT
 *
 * The conversions of the two 8-bit float types, against their definition in
 * double.
 */
#include "config.h"

#include <iris/device/core/float8.h>

#include "support/float8.h"
#include "support/harness.h"

#include <stdio.h>

static float to_f32(unsigned bits, int fraction)
{
    iris_f8e4m3_t e4m3 = {(uint8_t)bits};
    iris_f8e5m2_t e5m2 = {(uint8_t)bits};

    return fraction == 3 ? iris_f8e4m3_to_f32(e4m3) : iris_f8e5m2_to_f32(e5m2);
}

static unsigned from_f32(float value, int fraction)
{
    return fraction == 3 ? iris_f8e4m3_from_f32(value).bits
                         : iris_f8e5m2_from_f32(value).bits;
}

static TEST(each_value_is_exact_and_comes_back)
{
    for (unsigned bits = 0; bits < 512; bits++) {
        int fraction = bits < 256 ? 3 : 2;
        unsigned byte = bits & 0xff, magnitude = byte & 0x7f;
        float value = to_f32(byte, fraction);

        assert_int_equal(signbit(value) != 0, byte >> 7);
        if (magnitude < float8_end(fraction)) {
            assert_true(fabsf(value) ==
                        (float)float8_magnitude(magnitude, fraction));
            assert_int_equal(from_f32(value, fraction), byte);
        } else if (magnitude == 0x7c && fraction == 2) {
            assert_true(isinf(value));
            assert_int_equal(from_f32(value, fraction), byte);
        } else {
            assert_true(isnan(value));
            assert_int_equal(bits_of(value) & 0x400000, 0x400000); /* quiet */
            assert_int_equal(from_f32(value, fraction), byte | 0x7f);
        }
    }
}

static void check(float value, int fraction)
{
    unsigned seen = from_f32(value, fraction);
    unsigned expected = float8_nearest(value, fraction);

    if (seen != expected) {
        fprintf(stderr, "%a, %d bits of fraction: %02x, expected %02x\n",
                (double)value, fraction, seen, expected);
    }
    assert_int_equal(seen, expected);
}

/* Each number, the middle between it and the next one, and the floats beside
 * both. */
static TEST(middles_round_to_even)
{
    for (int fraction = 2; fraction <= 3; fraction++) {
        for (unsigned bits = 0; bits < 0x7f; bits++) {
            double low = float8_magnitude(bits, fraction);
            double high = float8_magnitude(bits + 1, fraction);
            const float places[] = {(float)low, (float)((low + high) / 2)};

            for (int i = 0; i < 6; i++) {
                uint32_t at = bits_of(places[i / 3]) + (uint32_t)(i % 3) - 1;

                check(float_of(at & 0x7fffffff), fraction);
                check(float_of(at | 0x80000000), fraction);
            }
        }
    }
}

/* A prime apart, or all if the run is long. */
static TEST(floats_round_to_the_nearest)
{
    uint32_t step = harness_is_long() ? 1 : 65521, bits = 0;

    do {
        check(float_of(bits), 3);
        check(float_of(bits), 2);
        bits += step;
    } while (bits >= step);
}

static TEST(what_is_too_large_is_as_the_types_have_it)
{
    assert_int_equal(from_f32(464.0f, 3), 0x7e);
    assert_int_equal(from_f32(nextafterf(464.0f, 1e9f), 3), 0x7f);
    assert_int_equal(from_f32(-INFINITY, 3), 0xff);
    assert_int_equal(from_f32(61439.0f, 2), 0x7b);
    assert_int_equal(from_f32(61440.0f, 2), 0x7c);
    assert_int_equal(from_f32(-INFINITY, 2), 0xfc);
    assert_int_equal(from_f32(NAN, 2), 0x7f);
}

TEST_GROUP_WITH(NULL, NULL, unit);
