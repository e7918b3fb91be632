/* SPDX-License-Identifier: MIT
 *
 * IRIS_CHECK=weak: the five bugs of docs/checking.md read the old values that
 * the page names, under the seeds that it names. Without the bug every seed
 * gives the right value.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if IRIS_ON_CPU && !defined(IRIS_I_IMAGE) /* the mode is the simulation's */

#define SYS IRIS_SCOPE_SYSTEM
#define RLX IRIS_RELAXED
#define SEEDS 20

struct stale_args {
    const int64_t *context;
    int32_t *x; /* an element, zero at first */
    uint64_t *f;
    int bug;
    int wrong;
};

static atomic_int seen; /* what a bug's last read gave */

#define STALE(name) \
    static void name(iris_dev_t d, int32_t *x, uint64_t *f, int wrong)

/* Polls in no order. */
static void poll(iris_dev_t d, const uint64_t *f, uint64_t value,
                 iris_sem_t sem)
{
    while (iris_atomic_load(d, f, 1, sem, SYS) < value) {
    }
}

STALE(flag_releases_nothing)
{
    if (d.rank == 0) {
        iris_store(d, x, 7, 1);
        iris_atomic_store(d, f, 1, 1, wrong ? RLX : IRIS_RELEASE, SYS);
    } else if (d.rank == 1) {
        iris_wait_until(d, f, IRIS_CMP_EQ, 1);
        atomic_store(&seen, iris_load(d, x, 1));
    }
}

/* In the second round; the first one waits. */
STALE(poll_acquires_nothing)
{
    if (d.rank == 0) {
        iris_store(d, x, 1, 1);
        iris_signal_set(d, f, 1, 1);
        iris_wait_until(d, &f[1], IRIS_CMP_EQ, 1);
        iris_store(d, x, 2, 1);
        iris_signal_set(d, f, 2, 1);
    } else if (d.rank == 1) {
        iris_wait_until(d, f, IRIS_CMP_EQ, 1);
        (void)iris_load(d, x, 1);
        iris_signal_set(d, &f[1], 1, 0);
        poll(d, f, 2, wrong ? RLX : IRIS_ACQUIRE);
        atomic_store(&seen, iris_load(d, x, 1));
    }
}

/* Each rank draws a number; the sum of the two is 1. */
STALE(tickets_of_agent)
{
    if (d.rank < 2) {
        atomic_fetch_add(&seen,
                         (int)iris_atomic_add(d, f, 1, 1, RLX,
                                              wrong ? IRIS_SCOPE_AGENT : SYS));
    }
    (void)x;
}

/* Two ranks add 1 under a lock. */
STALE(lock_releases_nothing)
{
    int32_t sum;

    if (d.rank > 1) {
        return;
    }
    while (iris_atomic_cas(d, f, 0, 1, 1, IRIS_ACQUIRE, SYS) != 0) {
    }
    sum = iris_load(d, x, 1) + 1;
    iris_store(d, x, sum, 1);
    if (sum > atomic_load(&seen)) {
        atomic_store(&seen, sum);
    }
    iris_atomic_store(d, f, 0, 1, wrong ? RLX : IRIS_RELEASE, SYS);
}

/* Rank 1 counts on, and releases nothing of its own. */
STALE(count_by_a_store)
{
    if (d.rank == 0) {
        iris_store(d, x, 7, 1);
        iris_signal_set(d, f, 1, 1);
    } else if (d.rank == 1) {
        poll(d, f, 1, RLX);
        if (wrong) {
            iris_atomic_store(d, f, 2, 1, RLX, SYS);
        } else {
            iris_atomic_add(d, f, 1, 1, RLX, SYS);
        }
    } else {
        poll(d, f, 2, IRIS_ACQUIRE);
        atomic_store(&seen, iris_load(d, x, 1));
    }
}

static const struct {
    const char *name;
    void (*run)(iris_dev_t d, int32_t *x, uint64_t *f, int wrong);
    int seed; /* the first that shows it */
    int stale;
    int right;
} bugs[] = {
    {"flag_releases_nothing", flag_releases_nothing, 1, 0, 7},
    {"poll_acquires_nothing", poll_acquires_nothing, 1, 1, 2},
    {"tickets_of_agent", tickets_of_agent, 3, 0, 1},
    {"lock_releases_nothing", lock_releases_nothing, 1, 1, 2},
    {"count_by_a_store", count_by_a_store, 2, 0, 7},
};
#define NUM_BUGS ((int)(sizeof bugs / sizeof *bugs))

IRIS_KERNEL(show_stale, struct stale_args)
{
    bugs[args->bug].run(iris_dev_init(args->context), args->x, args->f,
                        args->wrong);
}

static int run_rank(iris_t *iris, void *arg)
{
    struct stale_args args = *(const struct stale_args *)arg;
    void *x, *f;

    CHECK_OK(iris_calloc(iris, 1, 64, &x));
    CHECK_OK(iris_calloc(iris, 1, 64, &f));
    args.context = iris_device_context(iris);
    args.x = x;
    args.f = f;
    CHECK_OK(iris_launch(iris, show_stale, 1, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static int value_under(int bug, int wrong, int seed)
{
    struct stale_args args = {.bug = bug, .wrong = wrong};
    struct iris_config config = harness_sim_config("weak");

    config.seed = seed;
    atomic_store(&seen, 0);
    assert_int_equal(iris_spawn(&config, 3, run_rank, &args), IRIS_OK);
    return atomic_load(&seen);
}

static TEST(a_bug_reads_an_old_value)
{
    for (int bug = 0; bug < NUM_BUGS; bug++) {
        int seed = 1;

        while (seed < SEEDS && value_under(bug, 1, seed) == bugs[bug].right) {
            seed++;
        }
        assert_int_equal(seed, bugs[bug].seed);
        assert_int_equal(value_under(bug, 1, seed), bugs[bug].stale);
    }
}

static TEST(without_the_bug_all_is_right)
{
    for (int bug = 0; bug < NUM_BUGS; bug++) {
        for (int seed = 1; seed <= SEEDS; seed++) {
            assert_int_equal(value_under(bug, 0, seed), bugs[bug].right);
        }
    }
}

/* Two kernels of two streams. The second one says whether it began behind the end
 * of the first, which orders nothing. */
static atomic_int has_ended, began_behind;

IRIS_KERNEL(store_first, struct stale_args)
{
    iris_store(iris_dev_init(args->context), args->x, 7, 0);
    atomic_store(&has_ended, 1);
}

IRIS_KERNEL(load_second, struct stale_args)
{
    atomic_store(&began_behind, atomic_load(&has_ended));
    atomic_store(&seen, iris_load(iris_dev_init(args->context), args->x, 0));
}

static int run_streams(iris_t *iris, void *arg)
{
    struct stale_args args = *(const struct stale_args *)arg;
    iris_stream_t *streams[2];
    void *x;

    CHECK_OK(iris_calloc(iris, 1, 64, &x));
    CHECK_OK(iris_stream_create(iris, &streams[0]));
    CHECK_OK(iris_stream_create(iris, &streams[1]));
    args.context = iris_device_context(iris);
    args.x = x;
    CHECK_OK(
        iris_launch(iris, store_first, 1, 64, &args, sizeof args, streams[0]));
    if (!args.wrong) {
        CHECK_OK(iris_stream_synchronize(iris, streams[0]));
    }
    CHECK_OK(
        iris_launch(iris, load_second, 1, 64, &args, sizeof args, streams[1]));
    CHECK_OK(iris_stream_synchronize(iris, streams[0]));
    CHECK_OK(iris_stream_synchronize(iris, streams[1]));
    return 0;
}

static int load_behind(int wrong, int seed)
{
    struct stale_args args = {.wrong = wrong};
    struct iris_config config = harness_sim_config("weak");

    config.seed = seed;
    atomic_store(&has_ended, 0);
    assert_int_equal(iris_spawn(&config, 1, run_streams, &args), IRIS_OK);
    return atomic_load(&began_behind) ? atomic_load(&seen) : 7;
}

static TEST(streams_of_a_rank_are_not_ordered)
{
    int seed = 1;

    while (seed < SEEDS && load_behind(1, seed) == 7) {
        seed++;
    }
    assert_int_not_equal(seed, SEEDS);
    for (seed = 1; seed <= SEEDS; seed++) {
        assert_int_equal(load_behind(0, seed), 7);
    }
}

static TEST(the_page_has_these_values)
{
    const char *folder = getenv("srcdir"); /* make sets it */
    char text[512], *page;

    if (folder == NULL) {
        print_message("left out: srcdir is not set\n");
        skip();
    }
    snprintf(text, sizeof text, "%s/docs/checking.md", folder);
    page = harness_read_file(text);
    assert_non_null(page);
    for (int bug = 0; bug < NUM_BUGS; bug++) {
        snprintf(text, sizeof text, "`%s`, seed %d: %d instead of %d.",
                 bugs[bug].name, bugs[bug].seed, bugs[bug].stale,
                 bugs[bug].right);
        if (strstr(page, text) == NULL) {
            print_message("docs/checking.md does not have: %s\n", text);
        }
        assert_non_null(strstr(page, text));
    }
    free(page);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
#endif
