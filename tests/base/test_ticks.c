/* SPDX-License-Identifier: MIT
 *
 * Ticks and their scale: which counters are trusted, how far times are off, and
 * what a machine that was suspended or moved does to them.
 */
#include "config.h"

#include "support/harness.h"

#include "base/processor.h"
#include "base/base.h"

#include <poll.h>

/* 2.5 GHz. */
#define RATE ((UINT64_C(1) << 32) * 2 / 5)
#define TICKS_PER_MS UINT64_C(2500000)

static TEST(a_counter_is_trusted_if_it_is_invariant)
{
    const uint64_t same[2] = {RATE, RATE + RATE / 1000};
    const uint64_t other[2] = {RATE, RATE + RATE / 100};
    const uint64_t none[2] = {0, 0};

    assert_int_equal(iris_i_ticks_trusted(1, 1, other), 1);
    assert_int_equal(iris_i_ticks_trusted(1, 0, same), 1);
    assert_int_equal(iris_i_ticks_trusted(1, 0, other), 0);
    assert_int_equal(iris_i_ticks_trusted(0, 1, same), 0);
    assert_int_equal(iris_i_ticks_trusted(1, 1, none), 0);
}

static TEST(ticks_are_the_clock_if_the_counter_is_not_trusted)
{
    struct iris_ticks_calibration calibration;
    int had_counter;

    iris_i_ticks_open(&calibration);
    had_counter = iris_i_ticks_count;
    iris_i_ticks_count = 0;
    iris_i_ticks_open(&calibration);
    for (int i = 0; i < 100; i++) {
        int64_t before = iris_i_now_ns();
        int64_t ns = iris_i_ticks_ns(&calibration.scale, iris_i_ticks());

        assert_true(before <= ns && ns <= iris_i_now_ns());
    }
    assert_true(calibration.span == UINT64_MAX);
    iris_i_ticks_count = had_counter;
}

/* By the first rate, which is measured in less than a millisecond. */
static TEST(times_are_off_by_less_than_a_millisecond_in_a_second)
{
    struct iris_ticks_calibration calibration;
    int64_t begin, before, ns;

    iris_i_ticks_open(&calibration);
    begin = calibration.scale.ns;
    begin = begin == 0 ? iris_i_now_ns() : begin;
    do {
        before = iris_i_now_ns();
        ns = iris_i_ticks_ns(&calibration.scale, iris_i_ticks());
        assert_true(ns > before - IRIS_NS_PER_MS);
        assert_true(ns < iris_i_now_ns() + IRIS_NS_PER_MS);
        poll(NULL, 0, 20);
    } while (before - begin < IRIS_NS_PER_S);
}

/* A calibration that is given the moment `ms` of such a counter. */
static void give(struct iris_ticks_calibration *calibration, uint64_t ms,
                 uint64_t ticks_per_ms)
{
    iris_i_ticks_calibrate(calibration, ms * ticks_per_ms,
                           (int64_t)ms * IRIS_NS_PER_MS);
}

static void check_near(const struct iris_ticks_scale *scale, uint64_t ticks,
                       int64_t ms)
{
    int64_t apart = iris_i_ticks_ns(scale, ticks) - ms * IRIS_NS_PER_MS;

    assert_in_range(apart + 1000, 0, 2000);
}

static TEST(a_calibration_follows_the_clock)
{
    /* The first rate is off by 0.3 %. */
    struct iris_ticks_calibration c = {.scale.ns_per_tick = RATE + RATE / 300};

    give(&c, 1, TICKS_PER_MS);
    assert_in_range(c.span, TICKS_PER_MS * 9 / 10, TICKS_PER_MS * 11 / 10);
    check_near(&c.scale, 0, 0);
    for (uint64_t ms = 2; ms < 100000; ms *= 2) {
        give(&c, ms, TICKS_PER_MS);
        check_near(&c.scale, ms * TICKS_PER_MS / 2, (int64_t)ms / 2);
        check_near(&c.scale, ms * TICKS_PER_MS * 2, (int64_t)ms * 2);
    }
    assert_true(c.span < 1001 * TICKS_PER_MS);
}

/* It slews by up to 500 us a second: only the last second's rate counts. */
static TEST(a_calibration_follows_a_clock_that_is_slewed)
{
    struct iris_ticks_calibration c = {.scale.ns_per_tick = RATE};
    uint64_t ticks = 50000 * TICKS_PER_MS;
    int64_t ns = 50000 * IRIS_NS_PER_MS;

    give(&c, 1000, TICKS_PER_MS);
    iris_i_ticks_calibrate(&c, ticks, ns);
    for (int i = 0; i < 3; i++) {
        ticks += 1000 * TICKS_PER_MS;
        ns += 1000 * IRIS_NS_PER_MS + 400000;
        iris_i_ticks_calibrate(&c, ticks, ns);
    }
    ns += 1000 * IRIS_NS_PER_MS + 400000 -
          iris_i_ticks_ns(&c.scale, ticks + 1000 * TICKS_PER_MS);
    assert_in_range(ns + 1000, 0, 2000);
}

/* The counter goes on for an hour, or starts anew, and the clock stands. */
static TEST(a_suspended_machine_keeps_its_rate)
{
    static const uint64_t after[] = {3600000 * TICKS_PER_MS, 0};

    for (int i = 0; i < 2; i++) {
        struct iris_ticks_calibration c = {.scale.ns_per_tick = RATE};

        give(&c, 5000, TICKS_PER_MS);
        iris_i_ticks_calibrate(&c, after[i], 5001 * IRIS_NS_PER_MS);
        assert_true(c.scale.ns_per_tick == RATE);
        check_near(&c.scale, after[i] + TICKS_PER_MS, 5002);
    }
}

/* Every other rate of a counter is taken for a jump once, and then believed. */
static TEST(a_machine_that_moved_gets_a_new_rate)
{
    struct iris_ticks_calibration c = {.scale.ns_per_tick = RATE};

    give(&c, 5000, TICKS_PER_MS);
    give(&c, 6000, 2 * TICKS_PER_MS);
    give(&c, 7000, 2 * TICKS_PER_MS);
    check_near(&c.scale, 7100 * 2 * TICKS_PER_MS, 7100);
    give(&c, 8000, 2 * TICKS_PER_MS);
    check_near(&c.scale, 8100 * 2 * TICKS_PER_MS, 8100);
}

/* A record of another process may say anything. */
static TEST(any_scale_gives_a_time)
{
    static const uint64_t numbers[] = {0, 1, INT64_MAX, UINT64_C(1) << 63,
                                       UINT64_MAX};
    volatile int64_t sum = 0;

    for (int i = 0; i < 5 * 5 * 5; i++) {
        const struct iris_ticks_scale scale = {.ticks = numbers[i % 5],
                                               .ns =
                                                   (int64_t)numbers[i / 5 % 5],
                                               .ns_per_tick = numbers[i / 25]};

        sum ^= iris_i_ticks_ns(&scale, 12345);
    }
    (void)sum;
    assert_true(iris_i_ticks_ns(&(struct iris_ticks_scale){.ns = 7}, 9) == 7);
}

TEST_GROUP(unit);
