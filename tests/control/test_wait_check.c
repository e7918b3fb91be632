/* SPDX-License-Identifier: MIT
 *
 * iris_set_wait_check(): what an interpreter does about Ctrl-C, in every way in
 * which a thread waits on the host, iris_init() included.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"
#include "support/procs.h"
#include "support/wait_kernel.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ASKS 3 /* until a check ends the wait */

/* What a check has seen. */
struct asked {
    int count;
    iris_t *iris;
    void *ptr; /* released by it */
    iris_status_t released;
};

static int end_soon(void *arg)
{
    struct asked *asked = arg;

    if (asked->count == 0 && asked->ptr != NULL) {
        asked->released = iris_free_later(asked->iris, asked->ptr);
        (void)iris_lost_rank(asked->iris);
    }
    return ++asked->count >= ASKS;
}

static int never(void *arg)
{
    return 0;
}

/* ---- With a context ---- */

static int over; /* rank 0 has returned from its wait */

static void await_over(void)
{
    for (int ms = 0; ms < 60000 && !__atomic_load_n(&over, __ATOMIC_ACQUIRE);
         ms++) {
        poll(NULL, 0, 1);
    }
}

/* Rank 0's check ends its wait, rank 1's does not. */
static int in_barrier(iris_t *iris, void *arg)
{
    struct asked asked = {.iris = iris, .released = IRIS_ERR_STATE};
    int rank = iris_rank(iris);

    CHECK_OK(iris_malloc(iris, 64, &asked.ptr));
    iris_set_wait_check(rank == 0 ? end_soon : never, &asked);
    if (rank == 1) {
        await_over();
    }
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_INTERRUPTED);
    CHECK_MESSAGE("rank 0");
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    CHECK_EQUAL(asked.count, rank == 0 ? ASKS : 0);
    CHECK_EQUAL(asked.released, rank == 0 ? IRIS_OK : IRIS_ERR_STATE);
    CHECK_STATUS(iris_finalize(iris), IRIS_ERR_INTERRUPTED);
    iris_set_wait_check(NULL, NULL);
    return IRIS_ERR_INTERRUPTED;
}

/* Rank 0 waits for a kernel of its own, which ends, too. */
static int in_kernel(iris_t *iris, void *arg)
{
    struct asked asked = {.iris = iris};
    int rank = iris_rank(iris);
    uint64_t *word;

    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    if (rank == 1) {
        await_over();
        return 0;
    }
    iris_set_wait_check(end_soon, &asked);
    CHECK_OK(launch_wait(iris, word));
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_INTERRUPTED);
    CHECK_EQUAL(asked.count, ASKS);
    __atomic_store_n(&over, 1, __ATOMIC_RELEASE);
    iris_set_wait_check(NULL, NULL);
    return IRIS_ERR_INTERRUPTED;
}

/* Rank 0's stream is not done, so that what it has released cannot be freed. */
static int in_deferred_free(iris_t *iris, void *arg)
{
    struct asked asked = {.iris = iris};
    void *ptr;
    int rank = iris_rank(iris);
    uint64_t *word;

    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    CHECK_OK(iris_malloc(iris, 64, &ptr));
    if (rank == 0) {
        CHECK_OK(launch_wait(iris, word));
        iris_set_wait_check(end_soon, &asked);
    }
    CHECK_OK(iris_free_later(iris, ptr));
    CHECK_STATUS(iris_free_deferred(iris), IRIS_ERR_INTERRUPTED);
    CHECK_EQUAL(asked.count, rank == 0 ? ASKS : 0);
    iris_set_wait_check(NULL, NULL);
    return IRIS_ERR_INTERRUPTED;
}

/* Rank threads, since a check is one thread's. */
static void run(iris_rank_fn body)
{
    struct iris_config config;
    struct leaks before;
    iris_status_t status;

    iris_config_init(&config);
    config.spawn = "threads";
    __atomic_store_n(&over, 0, __ATOMIC_RELEASE);
    leaks_note(&before);
    status = iris_spawn(&config, 2, body, NULL);
    if (status != IRIS_ERR_INTERRUPTED) {
        print_error("%s: %s\n", iris_status_string(status), iris_last_error());
    }
    assert_int_equal(status, IRIS_ERR_INTERRUPTED);
    assert_int_equal(leaks_found(&before), 0);
}

static TEST(a_check_ends_the_wait_for_ranks)
{
    run(in_barrier);
}

static TEST(a_check_ends_the_wait_for_a_kernel)
{
    run(in_kernel);
}

static TEST(a_check_ends_the_wait_for_deferred_frees)
{
    run(in_deferred_free);
}

/* ---- In iris_init() ---- */

static void init_alone(int64_t rank)
{
    struct iris_config config;
    struct asked asked = {.count = 0};
    struct leaks before;
    iris_t *iris = NULL;

    iris_config_init(&config);
    config.bootstrap = "env";
    config.rank = rank;
    config.num_ranks = 3;
    config.job_id = "test-wait-check";
    config.heap_bases_files = 0;
    config.warn_ms = 1; /* both halves of the wait */
    iris_set_wait_check(end_soon, &asked);
    leaks_note(&before);
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_INTERRUPTED);
    assert_true(harness_message_has("iris_set_wait_check"));
    assert_null(iris);
    assert_int_equal(asked.count, ASKS);
    assert_int_equal(leaks_found(&before), 0);
    iris_set_wait_check(NULL, NULL);
}

static TEST(a_check_ends_the_wait_for_ranks_that_never_come)
{
    init_alone(0);
    init_alone(1);
}

/* Rank 1 has come and waits with rank 0 for rank 2, which never comes. */
static void init_of_two(int rank, struct proc_report *report, void *arg)
{
    struct asked asked = {.count = 0};
    iris_t *iris = NULL;

    if (rank == 2) {
        return;
    }
    if (rank == 1) {
        iris_set_wait_check(end_soon, &asked);
    }
    proc_note(report, iris_init(NULL, &iris));
    iris_set_wait_check(NULL, NULL);
}

static TEST(a_rank_that_was_interrupted_is_lost_to_the_others)
{
    struct procs procs;

    procs_start(&procs, 3, init_of_two, NULL);
    procs_join(&procs);
    assert_int_equal(procs.reports[1].status, IRIS_ERR_INTERRUPTED);
    assert_int_equal(procs.reports[0].status, IRIS_ERR_PEER_LOST);
    assert_non_null(strstr(procs.reports[0].message, "rank 1"));
    procs_free(&procs);
}

TEST_GROUP(unit);
