/* SPDX-License-Identifier: MIT
 *
 * Runs a step of a litmus test in a kernel.
 */
#ifndef IRIS_TESTS_CHECK_LITMUS_RUN_H
#define IRIS_TESTS_CHECK_LITMUS_RUN_H

#include "litmus.h"

#include <iris/device.h>

#include <string.h>

IRIS_DEVICE void litmus_step(iris_dev_t dev, uint64_t *words,
                             const struct litmus_step *step, uint64_t *values)
{
    uint64_t *word = &words[step->word];
    uint64_t value = step->value;

    switch (step->op) {
    case LITMUS_STORE:
        iris_store(dev, word, value, 1);
        break;
    case LITMUS_LOAD:
        values[step->reg] = iris_load(dev, word, 1);
        break;
    case LITMUS_SET:
        iris_atomic_store(dev, word, value, 1, step->sem, step->scope);
        break;
    case LITMUS_GET:
        values[step->reg] =
            iris_atomic_load(dev, word, 1, step->sem, step->scope);
        break;
    case LITMUS_ADD:
        values[step->reg] =
            iris_atomic_add(dev, word, value, 1, step->sem, step->scope);
        break;
    case LITMUS_EXCHANGE:
        values[step->reg] =
            iris_atomic_xchg(dev, word, value, 1, step->sem, step->scope);
        break;
    case LITMUS_FENCE:
        iris_fence(step->sem, step->scope);
        break;
    case LITMUS_SET_HALF:
        iris_atomic_store(dev, (uint32_t *)word, (uint32_t)value, 1, step->sem,
                          step->scope);
        break;
    case LITMUS_GET_HALF:
        values[step->reg] =
            iris_atomic_load(dev, (uint32_t *)word, 1, step->sem, step->scope);
        break;
    case LITMUS_WAIT:
        iris_wait_until(dev, word, IRIS_CMP_EQ, value);
        break;
    case LITMUS_PUT_SIGNAL:
        iris_put_signal(dev, &value, &words[X], &words[F], 1, 1);
        break;
    case LITMUS_END:
        break;
    }
}

static int litmus_threads(const struct litmus_test *test)
{
    int count = 0;

    while (count < LITMUS_THREADS &&
           test->threads[count].steps[0].op != LITMUS_END) {
        count++;
    }
    return count;
}

/* The number of the test with that name; NUM_LITMUS: there is none. */
IRIS_UNUSED static int litmus_number(const char *name)
{
    int number = 0;

    while (number < NUM_LITMUS &&
           strcmp(litmus_tests[number].name, name) != 0) {
        number++;
    }
    return number;
}

static int litmus_ranks(const struct litmus_test *test)
{
    int ranks = 2;

    for (int i = 0; i < litmus_threads(test); i++) {
        ranks =
            test->threads[i].rank >= ranks ? test->threads[i].rank + 1 : ranks;
    }
    return ranks;
}

/* Whether the registers are the test's outcome. */
IRIS_UNUSED static int litmus_is_outcome(const struct litmus_test *test,
                                         const uint64_t *values)
{
    int is_it = 1;

    for (int reg = 0; reg < LITMUS_REGISTERS; reg++) {
        is_it &= test->outcome[reg] == LITMUS_ANY ||
                 test->outcome[reg] == values[reg];
    }
    return is_it;
}

#endif /* IRIS_TESTS_CHECK_LITMUS_RUN_H */
