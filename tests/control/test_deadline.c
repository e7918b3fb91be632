/* SPDX-License-Identifier: MIT
 *
 * Kernels that do not end by themselves: the deadline ends those that wait and
 * says what for, and names the one it cannot end.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define DEADLINE_MS 500 /* of what does not end; the rest has the usual one */
#define GRID 8u
#define LEFT_OUT "test_device_timeout is about GPUs"

/* All about the CPU, whose kernels count in the host's own memory. */
#if IRIS_ON_CPU
#include "context/context.h"

struct deadline_args {
    const int64_t *context;
    uint64_t *word;      /* symmetric */
    atomic_int *running; /* workgroups, in this process's own memory */
    atomic_int *go;      /* the same */
};

/* The last workgroup waits for what nobody writes. */
IRIS_KERNEL(wait_for_ever, struct deadline_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    atomic_fetch_add(args->running, 1);
    if (iris_wg_leader(wg) && wg.id == wg.num_wgs - 1) {
        (void)iris_wait_until(dev, args->word, IRIS_CMP_GE, 7);
    }
}

/* All wait for the last workgroup, which runs only if there is room. */
IRIS_KERNEL(wait_for_last, struct deadline_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    atomic_fetch_add(args->running, 1);
    if (iris_wg_leader(wg) && wg.id == wg.num_wgs - 1) {
        iris_signal_set(dev, args->word, 1, dev.rank);
    } else if (iris_wg_leader(wg)) {
        (void)iris_wait_until(dev, args->word, IRIS_CMP_EQ, 1);
    }
}

IRIS_KERNEL(write_word, struct deadline_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    /* Waits and reports may read the word meanwhile. */
    if (iris_wg_leader(wg)) {
        iris_signal_set(dev, args->word, 42, dev.rank);
    }
}

/* Runs until the host lets it go, and asks the library for nothing. */
IRIS_KERNEL(turn_on_the_spot, struct deadline_args)
{
    atomic_fetch_add(args->running, 1);
    while (iris_wg_leader(wg) && atomic_load(args->go) == 0) {
    }
}

/* Launches and waits until `count` workgroups run: the deadline counts from the
 * synchronize that follows, so it finds them all however busy the machine. */
static int start(iris_t *iris, const struct iris_kernel *kernel, unsigned grid,
                 int count, const struct deadline_args *args)
{
    CHECK_OK(iris_launch(iris, kernel, grid, 1, args, sizeof *args, NULL));
    while (atomic_load(args->running) < count) {
        sched_yield();
    }
    return 0;
}

/* Synchronises with the short deadline. */
static iris_status_t synchronize(iris_t *iris)
{
    int64_t usual = iris->waiter.timeout_ms;
    iris_status_t status;

    iris->waiter.timeout_ms = DEADLINE_MS;
    status = iris_stream_synchronize(iris, NULL);
    iris->waiter.timeout_ms = usual;
    return status;
}

/* The same error comes from every call until it is cleared; the context then
 * does what it is told. */
static int check_usable(iris_t *iris, const struct deadline_args *args)
{
    char message[1024];
    uint64_t seen;

    snprintf(message, sizeof message, "%s", iris_last_error());
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE(message);
    CHECK_STATUS(iris_launch(iris, write_word, 1, 1, args, sizeof *args, NULL),
                 IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE(message);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_launch(iris, write_word, 1, 1, args, sizeof *args, NULL));
    CHECK_OK(harness_read(iris, &seen, args->word, sizeof seen));
    CHECK_EQUAL(seen, 42);
    return 0;
}

static RANK_TEST(a_wait_that_never_ends_says_what_it_waited_for, 1, 2)
{
    atomic_int running = 0;
    struct deadline_args args = {iris_device_context(iris), NULL, &running,
                                 NULL};
    uint64_t three = 3;
    char text[64];

    (void)arg;
    CPU_ONLY(iris, LEFT_OUT);
    CHECK_OK(iris_calloc(iris, 1, sizeof *args.word, (void **)&args.word));
    CHECK_OK(harness_write(iris, args.word, &three, sizeof three));
    CHECK_EQUAL(start(iris, wait_for_ever, 2, 2, &args), 0);
    CHECK_STATUS(synchronize(iris), IRIS_ERR_TIMEOUT);
    snprintf(text, sizeof text, "rank %d:", iris_rank(iris));
    CHECK_MESSAGE(text);
    CHECK_MESSAGE("not done after 500 ms (IRIS_TIMEOUT_MS)");
    CHECK_MESSAGE("kernel wait_for_ever: workgroup 1 waited");
    snprintf(text, sizeof text, "the value at %p (heap offset",
             (void *)args.word);
    CHECK_MESSAGE(text);
    CHECK_MESSAGE("to be >= 7 and last saw 3");
    CHECK_MESSAGE("workgroups ended: 1");
    return check_usable(iris, &args);
}

/* *arg is whether the grid fits. */
static int residency_body(iris_t *iris, void *arg)
{
    atomic_int running = 0;
    struct deadline_args args = {iris_device_context(iris), NULL, &running,
                                 NULL};
    unsigned cus = (unsigned)iris_num_cus(iris);
    uint64_t seen;

    CPU_ONLY(iris, LEFT_OUT);
    CHECK_OK(iris_calloc(iris, 1, sizeof *args.word, (void **)&args.word));
    CHECK_EQUAL(start(iris, wait_for_last, GRID, (int)cus, &args), 0);
    if (*(const int *)arg) {
        CHECK_EQUAL(cus, GRID);
        CHECK_OK(harness_read(iris, &seen, args.word, sizeof seen));
        CHECK_EQUAL(seen, 1);
        return 0;
    }
    CHECK_EQUAL(cus * 2, GRID);
    CHECK_STATUS(synchronize(iris), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("kernel wait_for_last: workgroup 0 waited");
    CHECK_MESSAGE("to be == 1 and last saw 0");
    CHECK_MESSAGE("workgroups ended: 4");
    CHECK_MESSAGE("4 of 8 workgroups never started, see IRIS_SIM_CUS");
    CHECK_EQUAL(*args.word, 0); /* the last one never ran */
    return check_usable(iris, &args);
}

static RANK_TEST(a_kernel_that_cannot_be_ended_may_be_let_go, 1)
{
    atomic_int running = 0, go = 0;
    struct deadline_args args = {iris_device_context(iris), NULL, &running,
                                 &go};

    (void)arg;
    CPU_ONLY(iris, LEFT_OUT);
    CHECK_OK(iris_calloc(iris, 1, sizeof *args.word, (void **)&args.word));
    CHECK_EQUAL(start(iris, turn_on_the_spot, 1, 1, &args), 0);
    CHECK_STATUS(synchronize(iris), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("turn_on_the_spot still runs");
    CHECK_MESSAGE("cannot be ended");
    /* The error stays until the kernel has ended. */
    CHECK_STATUS(iris_clear_error(iris), IRIS_ERR_STATE);
    CHECK_MESSAGE("cannot be ended");
    CHECK_STATUS(synchronize(iris), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("turn_on_the_spot still runs");
    atomic_store(&go, 1);
    return check_usable(iris, &args);
}

static TEST(a_grid_that_waits_for_its_last_workgroup_has_to_fit)
{
    int fits = 0;

    setenv("IRIS_SIM_CUS", "4", 1);
    harness_run(2, residency_body, &fits);
    fits = 1;
    setenv("IRIS_SIM_CUS", "8", 1);
    harness_run(2, residency_body, &fits);
    unsetenv("IRIS_SIM_CUS");
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit, waits);
#endif /* IRIS_ON_CPU */
