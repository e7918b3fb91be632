/* SPDX-License-Identifier: MIT
 *
 * Malformed values of every public struct give an error, never a crash, and
 * are never accepted: cases from a generator, and those that once crashed.
 */
#include "config.h"

#include "support/harness.h"

#include "fuzz/structs.h"

/* splitmix64, so that a seed is a case on any machine. */
static uint64_t next_number(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static int run_cases(iris_t *iris, void *arg)
{
    size_t count = *(const size_t *)arg;
    uint64_t numbers[INPUT_BYTES / sizeof(uint64_t)];
    struct fuzz fuzz;

    CPU_ONLY(iris, "its verdicts are about host memory");
    CHECK_EQUAL(fuzz_open(&fuzz, iris), 0);
    for (size_t i = 0; i < count; i++) {
        uint64_t state = i;

        for (size_t j = 0; j < sizeof numbers / sizeof numbers[0]; j++) {
            numbers[j] = next_number(&state);
        }
        fuzz_case(&fuzz, (const uint8_t *)numbers, sizeof numbers);
        if (fuzz.failures != 0) {
            return harness_failed(__FILE__, __LINE__, "case", (long long)i, -1);
        }
    }
    fuzz_close(&fuzz);
    return 0;
}

static TEST(malformed_structs_are_refused)
{
    size_t count = harness_count(1000000, 10000);

    setenv("IRIS_LOG_LEVEL", "off", 1);
    harness_run(2, run_cases, &count);
}

static TEST(malformed_structs_are_refused_where_bounds_are_checked)
{
    size_t count = harness_count(200000, 2000);

    setenv("IRIS_CHECK", "bounds", 1);
    harness_run(2, run_cases, &count);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
