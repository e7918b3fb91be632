/* SPDX-License-Identifier: MIT
 *
 * A third backend: it holds to the contract, and a job of rank threads runs on
 * it without a word about it in the library.
 */
#include "config.h"

#include "support/harness.h"
#include "support/wait_kernel.h"

#include <iris/device.h>

#include "backend/contract.h"
#if IRIS_ON_CPU /* C that is no C++ */
#include "backend/backend.h"
#include "backend_malloc/malloc_backend.h"
#endif

#define NUM_RANKS 4
#define COUNT ((size_t)1000)

struct neighbour_args {
    const int64_t *context;
    uint32_t *inbox;  /* written by the rank before */
    uint32_t *result; /* what this rank got from the rank behind */
    size_t count;
};

IRIS_KERNEL(put_next, struct neighbour_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int next = (dev.rank + 1) % dev.num_ranks;

    IRIS_LANES (wg, i, args->count) {
        iris_store(dev, &args->inbox[i], (uint32_t)(1000 * dev.rank + (int)i),
                   next);
    }
}

IRIS_KERNEL(get_next, struct neighbour_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int next = (dev.rank + 1) % dev.num_ranks;

    IRIS_LANES (wg, i, args->count) {
        args->result[i] = iris_load(dev, &args->inbox[i], next);
    }
}

/* Each rank's inbox has what the rank before wrote; so what a rank gets of the
 * next one's is what it put there. */
static int check_words(iris_t *iris, const struct neighbour_args *args)
{
    int rank = iris_rank(iris);
    int before = (rank + NUM_RANKS - 1) % NUM_RANKS;
    uint32_t inbox[COUNT], result[COUNT];

    CHECK_OK(harness_read(iris, inbox, args->inbox, sizeof inbox));
    CHECK_OK(harness_read(iris, result, args->result, sizeof result));
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_EQUAL(inbox[i], 1000 * before + (int)i);
        CHECK_EQUAL(result[i], 1000 * rank + (int)i);
    }
    return 0;
}

static int exchange_words(iris_t *iris, void *arg)
{
    struct neighbour_args args = {iris_device_context(iris), NULL, NULL, COUNT};
    void *inbox, *result;

    CHECK_EQUAL(strcmp(iris_backend_name(iris), "malloc"), 0);
    CHECK_OK(iris_calloc(iris, COUNT, sizeof(uint32_t), &inbox));
    CHECK_OK(iris_malloc(iris, COUNT * sizeof(uint32_t), &result));
    args.inbox = (uint32_t *)inbox;
    args.result = (uint32_t *)result;
    CHECK_OK(iris_launch(iris, put_next, 3, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    CHECK_OK(iris_launch(iris, get_next, 3, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(check_words(iris, &args), 0);
    CHECK_OK(iris_free(iris, result));
    CHECK_OK(iris_free(iris, inbox));
    return 0;
}

static void run(const char *spawn, int num_ranks, iris_rank_fn body)
{
    struct iris_config config;

    iris_config_init(&config);
    config.backend = "malloc";
    config.spawn = spawn;
    if (iris_spawn(&config, num_ranks, body, NULL) != IRIS_OK) {
        fail_msg("%s", iris_last_error());
    }
}

static TEST(rank_threads_put_and_get_on_a_third_backend)
{
    run("threads", NUM_RANKS, exchange_words);
}

static int see_no_peer(iris_t *iris, void *arg)
{
    int other = 1 - iris_rank(iris);
    void *ptr, *remote;

    CHECK_OK(iris_malloc(iris, 64, &ptr));
    CHECK_EQUAL(iris_is_reachable(iris, other), 0);
    CHECK_STATUS(iris_as_remote(iris, ptr, other, &remote),
                 IRIS_ERR_UNREACHABLE);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

static TEST(a_rank_in_another_process_is_unreachable)
{
    run("processes", 2, see_no_peer);
}

/* The word is never written. */
static int wait_in_vain(iris_t *iris, void *arg)
{
    uint64_t *never;

    CHECK_OK(iris_calloc(iris, 1, sizeof *never, (void **)&never));
    CHECK_OK(launch_wait(iris, never));
    for (int i = 0; i < 2; i++) { /* it stays */
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("is not over after 50 ms");
    }
    CHECK_STATUS(iris_memset(iris, never, 1, sizeof *never, NULL),
                 IRIS_ERR_TIMEOUT);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

static TEST(a_wait_that_takes_too_long_is_a_fault_until_cleared)
{
    struct iris_config config;

    iris_config_init(&config);
    config.backend = "malloc";
    config.spawn = "threads";
    config.device_timeout_ms = 50;
    assert_int_equal(iris_spawn(&config, 2, wait_in_vain, NULL), IRIS_OK);
}

static int TEST_FILE(unit)
{
    if (iris_i_registry_add(&malloc_backend_type) != IRIS_OK) {
        return 1;
    }
    return contract_run("malloc") +
           harness_run_file(__FILE__, harness_setup, harness_teardown);
}
