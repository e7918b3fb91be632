/* SPDX-License-Identifier: MIT
 *
 * The limits of the checks, as docs/checking.md has them.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if IRIS_ON_CPU /* the checks are the simulation's */

#define SYS IRIS_SCOPE_SYSTEM

struct limit_args {
    const int64_t *context;
    int8_t *data; /* two parts of `bytes` bytes each */
    uint64_t *flag;
    unsigned other;
    size_t bytes;
    int *num_old;
};

static struct iris_config limit_settings(const char *check)
{
    struct iris_config config;

    iris_config_init(&config);
    config.spawn = "threads";
    config.backend = "sim";
    config.sim_device = "cpu";
    config.heap_bytes = 16 << 20;
    config.heap_bases_files = 0;
    config.check = check;
    config.log_level = "off";
    return config;
}

/* ---- Workgroups ---- */

IRIS_KERNEL(store_by_two, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (wg.id == 0 || wg.id == args->other) {
        iris_store(dev, args->data, 1, dev.rank);
    }
}

static int run_two(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    void *data;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 1, 64, &data));
    args.data = data;
    CHECK_OK(iris_launch(iris, store_by_two, 257, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static TEST(workgroups_that_are_256_apart_count_as_one)
{
    struct limit_args args = {.other = 255};
    struct iris_config config = limit_settings("race");

    assert_int_equal(iris_spawn(&config, 1, run_two, &args), IRIS_ERR_RACE);
    args.other = 256;
    assert_int_equal(iris_spawn(&config, 1, run_two, &args), IRIS_OK);
}

/* ---- Lanes ---- */

/* A wg barrier is missing between the loop and the signal. */
IRIS_KERNEL(signal_ahead, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (dev.rank == 0) {
        IRIS_WG_LANES (wg, i, 64) {
            iris_store(dev, &args->data[i], 7, 1);
        }
        if (iris_wg_leader(wg)) {
            iris_signal_set(dev, args->flag, 1, 1);
        }
    } else {
        (void)iris_wait_until(dev, args->flag, IRIS_CMP_EQ, 1);
        (void)iris_load(dev, &args->data[63], 1);
    }
}

static int run_lanes(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    void *data, *flag;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 1, 64, &data));
    CHECK_OK(iris_calloc(iris, 1, 8, &flag));
    args.data = data;
    args.flag = flag;
    CHECK_OK(iris_launch(iris, signal_ahead, 1, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* tests/check/lanes.c has it as a bug of a program that iriscc --check compiled. */
static TEST(without_the_compiler_a_workgroup_is_one_lane)
{
    struct limit_args args = {.other = 0};
    struct iris_config config = limit_settings("race");

    assert_int_equal(iris_spawn(&config, 2, run_lanes, &args), IRIS_OK);
}

/* ---- Long accesses ---- */

IRIS_KERNEL(get_behind_flag, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int8_t *to = args->data + args->bytes;

    if (dev.rank == 0) {
        IRIS_WG_LANES (wg, i, args->bytes) {
            to[i] = 7;
        }
        iris_wg_put(wg, dev, to, args->data, args->bytes, 1);
        iris_atomic_store(dev, args->flag, 1, 1, IRIS_RELAXED, SYS);
    } else {
        while (iris_atomic_load(dev, args->flag, 1, IRIS_RELAXED, SYS) == 0) {
        }
        iris_wg_get(wg, dev, args->data, to, args->bytes, 1);
        *args->num_old += to[args->bytes - 1] != 7;
    }
}

static int run_get(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    void *data, *flag;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 2, args.bytes, &data));
    CHECK_OK(iris_calloc(iris, 1, 8, &flag));
    args.data = data;
    args.flag = flag;
    CHECK_OK(
        iris_launch(iris, get_behind_flag, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static int count_old(size_t bytes)
{
    int num_old = 0;
    struct limit_args args = {.bytes = bytes, .num_old = &num_old};

    for (int seed = 1; seed <= 10; seed++) {
        struct iris_config config = limit_settings("weak");

        config.seed = seed;
        assert_int_equal(iris_spawn(&config, 2, run_get, &args), IRIS_OK);
    }
    return num_old;
}

static TEST(a_long_access_sees_the_newest_values)
{
    assert_int_not_equal(count_old(64), 0);
    assert_int_equal(count_old(65536 + 8), 0);
}

/* ---- Age ---- */

IRIS_KERNEL(read_behind_flag, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *x = args->flag + 1;

    if (dev.rank == 0) {
        iris_atomic_store(dev, x, 7, 1, IRIS_RELAXED, SYS);
        for (unsigned i = 0; i < args->other; i++) {
            (void)iris_load(dev, args->data, 0);
        }
        iris_atomic_store(dev, args->flag, 1, 1, IRIS_RELAXED, SYS);
    } else {
        while (iris_atomic_load(dev, args->flag, 1, IRIS_RELAXED, SYS) == 0) {
        }
        *args->num_old += iris_atomic_load(dev, x, 1, IRIS_RELAXED, SYS) != 7;
    }
}

static int run_read(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    void *data, *flag;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 1, 64, &data));
    CHECK_OK(iris_calloc(iris, 2, 8, &flag));
    args.data = data;
    args.flag = flag;
    CHECK_OK(
        iris_launch(iris, read_behind_flag, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static int count_late(unsigned accesses)
{
    int num_old = 0;
    struct limit_args args = {.other = accesses, .num_old = &num_old};

    for (int seed = 1; seed <= 10; seed++) {
        struct iris_config config = limit_settings("weak");

        config.seed = seed;
        assert_int_equal(iris_spawn(&config, 2, run_read, &args), IRIS_OK);
    }
    return num_old;
}

static TEST(a_write_is_visible_after_200_accesses)
{
    assert_int_not_equal(count_late(0), 0);
    assert_int_equal(count_late(200), 0);
}

/* ---- Words ---- */

#define MANY_WORDS 20000

IRIS_KERNEL(add_to_many, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (size_t i = 0; wg.id == 0 && i < MANY_WORDS; i++) {
        iris_atomic_add(dev, &args->flag[i], 1, dev.rank, IRIS_RELEASE, SYS);
    }
}

static int run_many(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    void *flag;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, MANY_WORDS, 8, &flag));
    args.flag = flag;
    CHECK_OK(iris_launch(iris, add_to_many, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static TEST(more_words_than_there_is_room_for_are_told)
{
    struct limit_args args = {.other = 0};
    struct iris_config config = limit_settings("race");
    struct harness_capture capture;

    config.log_level = "warning";
    harness_capture(&capture);
    assert_int_equal(iris_spawn(&config, 1, run_many, &args), IRIS_OK);
    assert_non_null(strstr(harness_captured(&capture), "races may"));
    free(capture.text);
}

/* ---- Steps ---- */

IRIS_KERNEL(store_in_loop, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_WG_LANES (wg, i, 64) {
        iris_store(dev, &args->data[i], 7, 0);
    }
}

static int run_loop(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    void *data;

    args.context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 1, 256, &data));
    args.data = data;
    CHECK_OK(iris_launch(iris, store_in_loop, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* A switch of threads for each element takes long. */
static TEST(under_a_seed_a_series_of_stores_is_a_few_steps)
{
    struct limit_args args = {.other = 0};
    struct iris_config config = limit_settings("race");
    char path[300], *text;
    int num_steps = 0;

    snprintf(path, sizeof path, "%s/schedule", harness_folder());
    config.seed = 1;
    config.schedule = path;
    assert_int_equal(iris_spawn(&config, 1, run_loop, &args), IRIS_OK);
    text = harness_read_file(path);
    assert_non_null(text);
    for (const char *at = text; (at = strstr(at, "store_in_loop")) != NULL;
         at++) {
        num_steps++;
    }
    free(text);
    unlink(path);
    assert_in_range(num_steps, 1, 4);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
#endif /* IRIS_ON_CPU */
