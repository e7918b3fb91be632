/* SPDX-License-Identifier: MIT
 *
 * IRIS_DEVICE_DELAY: a rank's kernels on a GPU wait before their operations.
 */
#define IRIS_TRACE 1 /* before the device API */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdlib.h>

#define RANKS 2
#define NUM_OPS 64
#define DELAYED 1 /* the rank */

struct delay_args {
    const int64_t *context;
    uint64_t *data;
    uint64_t *ticks; /* that each operation took; NULL on the CPU */
};

IRIS_KERNEL(store_slowly, struct delay_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int partner = (dev.rank + 1) % dev.num_ranks;

    (void)wg;
    for (int i = 0; i < NUM_OPS; i++) {
#if IRIS_D_TRACES
        uint64_t start = args->ticks == NULL ? 0 : iris_d_clock();
#endif

        iris_store(dev, &args->data[i], (uint64_t)i + 1, partner);
#if IRIS_D_TRACES
        if (args->ticks != NULL) {
            args->ticks[i] = iris_d_clock() - start;
        }
#endif
    }
}

static int read_delay(iris_t *iris, uint64_t *delay)
{
    const int64_t *context = iris_device_context(iris);

    CHECK_OK(harness_read(iris, delay,
                          &context[IRIS_CONTEXT_OWN(iris_num_ranks(iris),
                                                    IRIS_CONTEXT_OWN_DELAY)],
                          sizeof *delay));
    return 0;
}

static int delayed(iris_t *iris, void *arg)
{
    uint64_t seen[2 * NUM_OPS], delay, longest = 0;
    struct delay_args args = {.context = iris_device_context(iris)};
    void *memory;

    CHECK(read_delay(iris, &delay) == 0);
    CHECK_EQUAL(delay != 0, harness_on_gpu(iris) && iris_rank(iris) == DELAYED);
    CHECK_OK(iris_calloc(iris, 2 * NUM_OPS, sizeof(uint64_t), &memory));
    args.data = memory;
    args.ticks = harness_on_gpu(iris) ? args.data + NUM_OPS : NULL;
    CHECK_OK(iris_launch(iris, store_slowly, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, seen, memory, sizeof seen));
    for (uint64_t i = 0; i < NUM_OPS; i++) {
        CHECK_EQUAL(seen[i], i + 1);
        longest = seen[NUM_OPS + i] > longest ? seen[NUM_OPS + i] : longest;
    }
    CHECK(longest >= delay / 2); /* in one run of 2^64 it is not */
    return 0;
}

/* The other rank's operations may be slow, too: nothing is known of them. */
static TEST(operations_of_the_rank_wait)
{
    setenv("IRIS_DEVICE_DELAY", "0:0,1:1000,7:5", 1);
    harness_run(RANKS, delayed, NULL);
}

static int without(iris_t *iris, void *arg)
{
    uint64_t delay;

    CHECK(read_delay(iris, &delay) == 0);
    CHECK_EQUAL(delay, 0);
    return 0;
}

static TEST(without_the_setting_nothing_waits)
{
    unsetenv("IRIS_DEVICE_DELAY");
    harness_run(RANKS, without, NULL);
}

static TEST(other_texts_are_refused)
{
    static const char *const texts[] = {"5",    "1:",   "x:5",       "1:-5",
                                        "-1:5", "1:5x", "1:1000001", "1:5;0:5"};
    struct iris_config config;

    iris_config_init(&config);
    config.log_level = "off";
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        config.device_delay = texts[i];
        assert_int_equal(iris_spawn(&config, RANKS, without, NULL),
                         IRIS_ERR_CONFIG);
    }
}

TEST_GROUP(unit);
