/* SPDX-License-Identifier: MIT
 *
 * The limits of the checks, as docs/checking.md has them.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdatomic.h>
#include <stdbool.h>
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

/* Sets the context, 1024 bytes of data and two flags. */
static int open_limit(iris_t *iris, struct limit_args *args)
{
    args->context = iris_device_context(iris);
    CHECK_OK(iris_calloc(iris, 1, 1024, (void **)&args->data));
    CHECK_OK(iris_calloc(iris, 2, 8, (void **)&args->flag));
    return 0;
}

/* A rank's body: the kernel with the arguments, and its end. */
#define RANK_LAUNCHES(name, kernel, grid, lanes)                               \
    static int name(iris_t *iris, void *arg)                                   \
    {                                                                          \
        struct limit_args args = *(const struct limit_args *)arg;              \
                                                                               \
        CHECK_EQUAL(open_limit(iris, &args), 0);                               \
        CHECK_OK(                                                              \
            iris_launch(iris, kernel, grid, lanes, &args, sizeof args, NULL)); \
        CHECK_OK(iris_stream_synchronize(iris, NULL));                         \
        return 0;                                                              \
    }

/* Ten seeds of the weak mode; returns the number of old values. */
static int count_seeds(iris_rank_fn body, struct limit_args *args)
{
    *args->num_old = 0;
    for (int seed = 1; seed <= 10; seed++) {
        struct iris_config config = harness_sim_config("weak");

        config.seed = seed;
        assert_int_equal(iris_spawn(&config, 2, body, args), IRIS_OK);
    }
    return *args->num_old;
}

/* ---- Workgroups ---- */

IRIS_KERNEL(store_by_two, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (wg.id == 0 || wg.id == args->other) {
        iris_store(dev, args->data, 1, dev.rank);
    }
}

RANK_LAUNCHES(run_two, store_by_two, 257, 1)

static TEST(workgroups_that_are_256_apart_count_as_one)
{
    struct limit_args args = {.other = 255};
    struct iris_config config = harness_sim_config("race");

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

RANK_LAUNCHES(run_lanes, signal_ahead, 1, 64)

/* tests/check/lanes.c has it as a bug of a program that iriscc --check compiled. */
static TEST(without_the_compiler_a_workgroup_is_one_lane)
{
    struct limit_args args = {.other = 0};
    struct iris_config config = harness_sim_config("race");

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

    return count_seeds(run_get, &args);
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

RANK_LAUNCHES(run_read, read_behind_flag, 1, 1)

static int count_late(unsigned accesses)
{
    int num_old = 0;
    struct limit_args args = {.other = accesses, .num_old = &num_old};

    return count_seeds(run_read, &args);
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
    struct iris_config config = harness_sim_config("race");
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

RANK_LAUNCHES(run_loop, store_in_loop, 1, 1)

/* A switch of threads for each element takes long. */
static TEST(under_a_seed_a_series_of_stores_is_a_few_steps)
{
    struct limit_args args = {.other = 0};
    struct iris_config config = harness_sim_config("race");
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

/* ---- Four accesses ---- */

/* Each rank but the last stores a byte of one word, the last one all of it, in the
 * order of ranks. Relaxed atomics order nothing. */
IRIS_KERNEL(store_by_turns, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    while (iris_atomic_load(dev, args->flag, 0, IRIS_RELAXED, SYS) !=
           (uint64_t)dev.rank) {
    }
    if (dev.rank < (int)args->other) {
        iris_store(dev, &args->data[dev.rank], 1, 0);
    } else {
        iris_store(dev, (uint64_t *)args->data, 1, 0);
    }
    iris_atomic_store(dev, args->flag, (uint64_t)dev.rank + 1, 0, IRIS_RELAXED,
                      SYS);
}

RANK_LAUNCHES(run_turns, store_by_turns, 1, 1)

/* How many of that many accesses to one word the check has kept. */
static int count_kept(unsigned accesses)
{
    struct limit_args args = {.other = accesses};
    struct iris_config config = harness_sim_config("race");
    char prefix[300], path[320], *text;
    const char *at;
    int count = 0, num = 0;

    snprintf(prefix, sizeof prefix, "%s/kept", harness_folder());
    snprintf(path, sizeof path, "%s_races.json", prefix);
    config.report = prefix;
    assert_int_equal(iris_spawn(&config, (int)accesses + 1, run_turns, &args),
                     IRIS_ERR_RACE);
    text = harness_read_file(path);
    assert_non_null(text);
    for (at = text; (at = strstr(at, "\"count\": ")) != NULL; at++) {
        num++;
        count += atoi(at + strlen("\"count\": "));
    }
    assert_in_range(num, 1, accesses);
    free(text);
    unlink(path);
    snprintf(path, sizeof path, "%s_races.sarif", prefix);
    unlink(path);
    return count;
}

static TEST(each_word_keeps_four_accesses_without_order)
{
    assert_int_equal(count_kept(3), 3);
    assert_int_equal(count_kept(4), 4);
    assert_int_equal(count_kept(5), 4);
    assert_int_equal(count_kept(6), 4);
}

/* ---- Collectives ---- */

enum { ALL_REDUCE, DENSE_ROWS, ROWS_WITH_GAPS, TO_ALL, TO_ALL_AT_DISPLS };

/* If `few`, member 0 sends nothing to member 1. */
static iris_status_t collect(iris_t *iris, const struct limit_args *args,
                             bool few, iris_stream_t *stream)
{
    size_t to[2] = {4, few && iris_rank(iris) == 0 ? 0 : 4};
    size_t from[2] = {few && iris_rank(iris) == 1 ? 0 : 4, 4}, at[2] = {0, 8};
    const size_t *displs = args->other == TO_ALL_AT_DISPLS ? at : NULL;
    struct iris_ccl_options options;

    iris_ccl_options_init(&options);
    options.stream = stream;
    if (args->other >= TO_ALL) {
        return iris_all_to_allv(iris, args->data, to, displs, &args->data[256],
                                from, displs, IRIS_DTYPE_I32, &options);
    }
    options.rows = args->other == ALL_REDUCE ? 0 : 4;
    options.in_stride = args->other == ROWS_WITH_GAPS ? 8 : 0;
    return iris_all_reduce(iris, args->data, &args->data[256], 4,
                           IRIS_DTYPE_I32, IRIS_REDUCE_SUM, &options);
}

/* Nothing orders the collective behind the fill of its input. */
static int run_collective(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    iris_stream_t *stream;

    CHECK_EQUAL(open_limit(iris, &args), 0);
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(collect(iris, &args, false, stream)); /* makes the workspace */
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_memset(iris, args.data, 1, 16, NULL));
    CHECK_OK(collect(iris, &args, false, stream));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    iris_stream_destroy(iris, stream);
    return 0;
}

static iris_status_t check_collective(unsigned which)
{
    struct limit_args args = {.other = which};
    struct iris_config config = harness_sim_config("race");

    return iris_spawn(&config, 2, run_collective, &args);
}

static TEST(buffers_with_rows_or_displacements_are_left_out)
{
    assert_int_equal(check_collective(ALL_REDUCE), IRIS_ERR_RACE);
    assert_int_equal(check_collective(DENSE_ROWS), IRIS_OK);
    assert_int_equal(check_collective(ROWS_WITH_GAPS), IRIS_OK);
    assert_int_equal(check_collective(TO_ALL), IRIS_ERR_RACE);
    assert_int_equal(check_collective(TO_ALL_AT_DISPLS), IRIS_OK);
}

/* Rank 1 reads what rank 0 puts, behind an iris_all_to_allv() in which rank 0
 * sends nothing to it; with no `bytes` there is none. */
static int run_few(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    int8_t *there, *seen;

    CHECK_EQUAL(open_limit(iris, &args), 0);
    there = &args.data[512];
    seen = &args.data[768];
    CHECK_OK(collect(iris, &args, true, NULL)); /* makes the workspace */
    if (iris_rank(iris) == 0) {
        CHECK_OK(iris_put_on_stream(iris, there, seen, 64, 1, NULL));
    }
    if (args.bytes != 0) {
        CHECK_OK(collect(iris, &args, true, NULL));
    }
    if (iris_rank(iris) == 1) {
        CHECK_OK(iris_memcpy(iris, seen, there, 64, NULL));
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static TEST(an_all_to_allv_counts_as_one_from_all_to_all)
{
    struct limit_args args = {.other = TO_ALL};
    struct iris_config config = harness_sim_config("race");

    assert_int_equal(iris_spawn(&config, 2, run_few, &args), IRIS_ERR_RACE);
    args.bytes = 1;
    assert_int_equal(iris_spawn(&config, 2, run_few, &args), IRIS_OK);
}

/* ---- Copies on streams ---- */

enum { BY_KERNELS, PUT_BY_COPY, READ_BY_COPY };

/* Rank 0 stores 7, and in PUT_BY_COPY a copy then puts 9. Rank 1 reads. */
IRIS_KERNEL(use_data, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (dev.rank == 0) {
        iris_store(dev, args->data, 7, 1);
    } else {
        *args->num_old += iris_load(dev, args->data, 1) !=
                          (args->other == PUT_BY_COPY ? 9 : 7);
    }
}

IRIS_KERNEL(pass_flag, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (dev.rank == 0) {
        iris_atomic_store(dev, args->flag, 1, 1, IRIS_RELAXED, SYS);
    } else {
        while (iris_atomic_load(dev, args->flag, 1, IRIS_RELAXED, SYS) == 0) {
        }
    }
}

static int run_late(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;
    int8_t value = 9;

    CHECK_EQUAL(open_limit(iris, &args), 0);
    if (iris_rank(iris) == 0) {
        CHECK_OK(iris_launch(iris, use_data, 1, 1, &args, sizeof args, NULL));
        if (args.other == PUT_BY_COPY) {
            CHECK_OK(iris_put_on_stream(iris, args.data, &value, 1, 1, NULL));
        }
        CHECK_OK(iris_launch(iris, pass_flag, 1, 1, &args, sizeof args, NULL));
    } else {
        CHECK_OK(iris_launch(iris, pass_flag, 1, 1, &args, sizeof args, NULL));
        if (args.other == READ_BY_COPY) {
            CHECK_OK(iris_memcpy(iris, &value, args.data, 1, NULL));
        } else {
            CHECK_OK(
                iris_launch(iris, use_data, 1, 1, &args, sizeof args, NULL));
        }
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    if (iris_rank(iris) == 1 && args.other == READ_BY_COPY) {
        *args.num_old += value != 7;
    }
    return 0;
}

static TEST(a_copy_on_a_stream_is_never_late)
{
    int num_old = 0;
    struct limit_args args = {.other = BY_KERNELS, .num_old = &num_old};

    assert_int_not_equal(count_seeds(run_late, &args), 0);
    args.other = PUT_BY_COPY;
    assert_int_equal(count_seeds(run_late, &args), 0);
    args.other = READ_BY_COPY;
    assert_int_equal(count_seeds(run_late, &args), 0);
}

/* ---- Hosts that poll ---- */

IRIS_KERNEL(set_flag, struct limit_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    iris_atomic_store(dev, args->flag, 1, dev.rank, IRIS_RELEASE, SYS);
}

static int run_polling(iris_t *iris, void *arg)
{
    struct limit_args args = *(const struct limit_args *)arg;

    CHECK_EQUAL(open_limit(iris, &args), 0);
    CHECK_OK(iris_launch(iris, set_flag, 1, 1, &args, sizeof args, NULL));
    while (atomic_load((_Atomic uint64_t *)args.flag) == 0) {
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static TEST(a_host_that_polls_lets_workgroups_run_early)
{
    struct limit_args args = {.other = 0};
    struct iris_config config = harness_sim_config("weak");
    char path[300], *text;

    snprintf(path, sizeof path, "%s/schedule", harness_folder());
    config.seed = 1;
    config.schedule = path;
    assert_int_equal(iris_spawn(&config, 1, run_polling, &args), IRIS_OK);
    text = harness_read_file(path);
    assert_non_null(text);
    assert_non_null(strstr(text, "\nearly\n"));
    free(text);
    unlink(path);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
#endif /* IRIS_ON_CPU */
