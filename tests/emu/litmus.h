/* SPDX-License-Identifier: MIT
 *
 * The litmus tests for litmus.py: a kernel for AMD GPUs for each thread, so that
 * each order and scope is a constant; for the CPU the table of tests.
 */
#ifndef EMU_LITMUS_H
#define EMU_LITMUS_H

#include <check/litmus_run.h>

#ifdef __HIPCC__

struct emu_litmus_args {
    const int64_t *context;
    uint64_t *words;
    uint64_t *registers;
};

template <int test, int thread, int number>
IRIS_DEVICE void emu_litmus_steps(iris_dev_t dev,
                                  const struct emu_litmus_args *args)
{
    constexpr struct litmus_step step =
        litmus_tests[test].threads[thread].steps[number];

    if constexpr (step.op != LITMUS_END) {
        litmus_step(dev, args->words, &step, args->registers);
        if constexpr (number + 1 < LITMUS_STEPS) {
            emu_litmus_steps<test, thread, number + 1>(dev, args);
        }
    }
}

#define EMU_LITMUS_THREAD(test, thread)                                        \
    IRIS_KERNEL(emu_litmus_##test##_##thread, struct emu_litmus_args)          \
    {                                                                          \
        emu_litmus_steps<test, thread, 0>(iris_dev_init(args->context), args); \
    }
#define EMU_LITMUS(test)       \
    EMU_LITMUS_THREAD(test, 0) \
    EMU_LITMUS_THREAD(test, 1) \
    EMU_LITMUS_THREAD(test, 2) \
    EMU_LITMUS_THREAD(test, 3)

#else

const struct litmus_test *const emu_litmus = litmus_tests;
const int emu_num_litmus = NUM_LITMUS;

#endif

#endif /* EMU_LITMUS_H */
