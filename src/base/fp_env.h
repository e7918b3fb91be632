/* SPDX-License-Identifier: MIT
 *
 * The default floating-point environment: rounding to nearest, subnormal
 * numbers, no traps. The program's threads, and threads that they start, may
 * have another one, such as that of -ffast-math or fesetround().
 */
#ifndef IRIS_SRC_BASE_FP_ENV_H
#define IRIS_SRC_BASE_FP_ENV_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

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
#error "fp_env.h: add the floating-point control register of this processor"
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

#endif /* IRIS_SRC_BASE_FP_ENV_H */
