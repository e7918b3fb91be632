/* SPDX-License-Identifier: MIT
 *
 * Ticks: the cheapest time, for what is stamped often. They count the
 * processor's counter where it runs evenly, else the clock's nanoseconds.
 */
#ifndef IRIS_SRC_BASE_TICKS_H
#define IRIS_SRC_BASE_TICKS_H

#include <stdint.h>

#include <iris/device/compat.h>

#include "base/clock.h"

/* Turns ticks into monotonic time, also in another process of the machine. A
 * suspended machine, or a virtual one that moves, may stop, restart or rescale
 * the counter: times before that may be off from then on, by as much as the
 * pause took, and times after it until the next calibration. */
struct iris_ticks_scale {
    uint64_t ticks;       /* when the clock was at `ns` */
    int64_t ns;           /* monotonic */
    uint64_t ns_per_tick; /* times 2^32 */
};

/* A scale that follows the clock. */
struct iris_ticks_calibration {
    struct iris_ticks_scale scale;
    uint64_t from_ticks; /* the rate is measured from this moment on */
    int64_t from_ns;
    uint64_t span; /* calibrate again when so many ticks have passed */
    int jumped;    /* the last rate was far from the one before */
};

/* 1: ticks are the processor's counter. Set by iris_i_ticks_open(); a test may
 * set it to 0 after that, before it opens a record. */
extern int iris_i_ticks_count;

/* The counter is read without waiting for earlier instructions, so two readings
 * may be a few nanoseconds closer than what lies between. */
static inline uint64_t iris_i_ticks_counter(void)
{
#if IRIS_ON_X86
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
#elif IRIS_ON_ARM64
    uint64_t count;

    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(count));
    return count;
#else
    return 0;
#endif
}

/* The clock, apart, so that those who count save no registers for it. */
uint64_t __attribute__((cold)) iris_i_ticks_clock(void);

static inline uint64_t iris_i_ticks(void)
{
    return iris_i_ticks_count ? iris_i_ticks_counter() : iris_i_ticks_clock();
}

/* Fills in what this process's ticks are worth. The first call decides whether
 * to use the counter, which takes half a millisecond. */
void iris_i_ticks_open(struct iris_ticks_calibration *calibration_p);

/* Measures the rate anew, given what the counter and the clock are now. */
void iris_i_ticks_calibrate(struct iris_ticks_calibration *calibration,
                            uint64_t ticks, int64_t ns);

/* The counter and the clock at one moment, to a fraction of what reading the
 * clock takes. */
void iris_i_ticks_pair(uint64_t *ticks_p, int64_t *ns_p);

/* Any scale and any ticks give a time, if not one that means something. */
int64_t iris_i_ticks_ns(const struct iris_ticks_scale *scale, uint64_t ticks);

/* Whether to trust a counter: the processor says that it is invariant, and the
 * kernel uses it as its clock or two rates, measured one after the other,
 * agree. */
int iris_i_ticks_trusted(int is_invariant, int is_clock,
                         const uint64_t rates[2]);

#endif /* IRIS_SRC_BASE_TICKS_H */
