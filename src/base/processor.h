/* SPDX-License-Identifier: MIT
 *
 * The processor: its counter as a clock, and its floating-point environment.
 */
#ifndef IRIS_SRC_BASE_PROCESSOR_H
#define IRIS_SRC_BASE_PROCESSOR_H

#include <iris/device/core/compat.h>

#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

/* ---- ticks.c ----
 *
 * Ticks: the cheapest time, for frequent time stamps. A tick is one of the
 * processor's counter if that runs at a constant rate, else a nanosecond of the
 * clock. */

/* Converts ticks to monotonic time, also in another process of the machine. If
 * a machine is suspended or a virtual machine migrates, its counter may stop,
 * restart or change its rate. Earlier times may then be wrong by the duration
 * of the pause, and later times until the next calibration. */
struct iris_ticks_scale {
    uint64_t ticks;       /* counter at the time `ns` */
    int64_t ns;           /* monotonic */
    uint64_t ns_per_tick; /* times 2^32 */
};

/* A scale that follows the clock. */
struct iris_ticks_calibration {
    struct iris_ticks_scale scale;
    uint64_t from_ticks; /* the counter when the measurement of the rate
                          * began */
    int64_t from_ns;
    uint64_t span; /* calibrate again after this number of ticks */
    int jumped;    /* the last rate was far from the previous one */
};

/* 1: ticks are the processor's counter. Set by iris_i_ticks_open(). A test may
 * set it to 0 after that, before it opens a record. */
extern int iris_i_ticks_count;

/* Reads the counter without waiting for earlier instructions, so the difference
 * of two readings may be a few nanoseconds too small. */
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

/* The clock, out of line, so that callers that use the counter save no
 * registers for it. */
uint64_t __attribute__((cold)) iris_i_ticks_clock(void);

static inline uint64_t iris_i_ticks(void)
{
    return iris_i_ticks_count ? iris_i_ticks_counter() : iris_i_ticks_clock();
}

/* Fills in the calibration of this process. The first call decides whether to
 * use the counter, which takes half a millisecond. */
void iris_i_ticks_open(struct iris_ticks_calibration *calibration_p);

/* Measures the rate anew from the current values of the counter and the
 * clock. */
void iris_i_ticks_calibrate(struct iris_ticks_calibration *calibration,
                            uint64_t ticks, int64_t ns);

/* The counter and the clock at one moment, more accurate than the time of one
 * reading of the clock. */
void iris_i_ticks_pair(uint64_t *ticks_p, int64_t *ns_p);

/* Any scale and any ticks give a time, though not always a meaningful one. */
int64_t iris_i_ticks_ns(const struct iris_ticks_scale *scale, uint64_t ticks);

/* Whether to trust a counter. The processor must say that it is invariant. In
 * addition, the kernel uses it as its clock, or two rates measured one after
 * the other agree. */
int iris_i_ticks_trusted(int is_invariant, int is_clock,
                         const uint64_t rates[2]);

/* ---- The default floating-point environment ----
 *
 * Rounding to nearest, subnormal numbers, no traps. The program's threads, and
 * threads that they start, may have another one, such as that of -ffast-math or
 * fesetround(). */

#if defined(__x86_64__)
#define IRIS_FP_DEFAULT 0x1f80u
#define IRIS_FP_FLAGS 0x3fu /* exceptions so far: no setting */

static inline uint64_t iris_i_fp_read(void)
{
    return _mm_getcsr();
}

static inline void iris_i_fp_write(uint64_t control)
{
    _mm_setcsr((unsigned)control);
}
#elif defined(__aarch64__)
#define IRIS_FP_DEFAULT 0u
#define IRIS_FP_FLAGS 0u /* they are in another register */

static inline uint64_t iris_i_fp_read(void)
{
    uint64_t control;

    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}

static inline void iris_i_fp_write(uint64_t control)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(control) : "memory");
}
#else
#error "processor.h: add the floating-point control register of this processor"
#endif

/* Sets the default environment for this thread, and returns the one that it
 * had, for iris_i_fp_leave(). Calls may nest. Reading the register takes a few
 * cycles; it is written only if it differs. */
static inline uint64_t iris_i_fp_enter(void)
{
    uint64_t before = iris_i_fp_read();

    if ((before & ~(uint64_t)IRIS_FP_FLAGS) != IRIS_FP_DEFAULT) {
        iris_i_fp_write(IRIS_FP_DEFAULT);
    }
    return before;
}

static inline void iris_i_fp_leave(uint64_t before)
{
    if ((before & ~(uint64_t)IRIS_FP_FLAGS) != IRIS_FP_DEFAULT) {
        iris_i_fp_write(before);
    }
}

#endif /* IRIS_SRC_BASE_PROCESSOR_H */
