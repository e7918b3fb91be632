/* SPDX-License-Identifier: MIT
 *
 * Ranks that do not come: too late, elsewhere, or gone after an error of their
 * own. In both ways iris_spawn() makes ranks.
 */
#include "config.h"

#include "context/context.h"
#include "support/harness.h"
#include "support/leaks.h"
#include "support/procs.h"

#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RANKS 3

/* What the ranks of one run share, whether threads or processes. */
struct shared {
    atomic_int told; /* ranks that have got what they came for */
    int code;        /* what the failing function returns */
};

static struct shared *share(void)
{
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    assert_ptr_not_equal(shared, MAP_FAILED);
    return shared;
}

/* Gives up in the end: a rank that failed a check never tells. */
static void await_told(struct shared *shared, int count)
{
    for (int ms = 0; ms < 60000 && atomic_load(&shared->told) < count; ms++) {
        poll(NULL, 0, 1);
    }
}

/* Runs `body` as threads and as processes; the job ends with `expected`. */
static void run(iris_rank_fn body, int code, iris_status_t expected,
                const char *text)
{
    static const char *const ways[] = {"threads", "processes"};

    for (int way = 0; way < 2; way++) {
        struct shared *shared = share();
        struct iris_config config;
        struct leaks before;
        iris_status_t status;

        iris_config_init(&config);
        config.spawn = ways[way];
        shared->code = code;
        leaks_note(&before);
        status = iris_spawn(&config, RANKS, body, shared);
        if (status != expected || !harness_message_has(text)) {
            print_error("%s: %s: %s\n", ways[way], iris_status_string(status),
                        iris_last_error());
        }
        assert_int_equal(status, expected);
        assert_true(harness_message_has(text));
        assert_int_equal(leaks_found(&before), 0);
        munmap(shared, sizeof *shared);
    }
}

/* How long a rank waits for another that does not come: set when it has come so
 * far that nothing else has to be done in that time. */
#define DEADLINE 1000

static int never_comes(iris_t *iris, void *arg)
{
    struct shared *shared = arg;
    void *ptr;

    CHECK_OK(iris_malloc(iris, 100, &ptr));
    if (iris_rank(iris) == 1) {
        await_told(shared, RANKS - 1);
        CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_TIMEOUT);
        CHECK_MESSAGE("rank 1, this one, came too late");
        return 0;
    }
    iris->control->timeout_ms = DEADLINE;
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("rank 1 has not come to iris_barrier within 1000 ms");
    CHECK_MESSAGE("IRIS_TIMEOUT_MS");
    CHECK_MESSAGE("outside the library since its iris_malloc");
    CHECK_MESSAGE("after 1 collective calls");
    CHECK_MESSAGE("does every rank make this call?");
    /* Later calls do not wait again: rank 1 would not come before `told`. */
    CHECK_STATUS(iris_malloc(iris, 100, &ptr), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("rank 1 came too late to an earlier collective call");
    CHECK_STATUS(iris_malloc(iris, 0, &ptr), IRIS_ERR_INVALID);
    CHECK_MESSAGE("0 bytes");
    atomic_fetch_add(&shared->told, 1);
    return 0;
}

static TEST(a_rank_that_never_comes_is_named_with_what_it_does)
{
    run(never_comes, 0, IRIS_ERR_TIMEOUT, "rank 1");
}

/* Rank 1's stream waits in a device barrier, and rank 1 for it, in a barrier on
 * the host or, with the code, before that. */
static int wait_for_stream(iris_t *iris, const struct shared *shared)
{
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    if (shared->code != 0) {
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_TIMEOUT);
    return 0;
}

static int wait_for_late(iris_t *iris, const struct shared *shared)
{
    iris->control->timeout_ms = DEADLINE;
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_TIMEOUT);
    CHECK_MESSAGE("rank 1 has not come to iris_barrier within 1000 ms");
    CHECK_MESSAGE(shared->code == 0
                      ? "it is busy in iris_barrier, waiting for a stream"
                      : "it is waiting for a stream since its start");
    CHECK_MESSAGE("IRIS_DEVICE_TIMEOUT_MS makes them report");
    CHECK(!harness_message_has("does every rank make this call?"));
    return 0;
}

/* The others come to the device barrier when rank 0 has given up. Nobody leaves
 * before all are through: who does is lost to the rest. */
static int stuck(iris_t *iris, void *arg)
{
    struct shared *shared = arg;

    if (iris_rank(iris) == 1) {
        CHECK_EQUAL(wait_for_stream(iris, shared), 0);
    } else {
        if (iris_rank(iris) == 0) {
            CHECK_EQUAL(wait_for_late(iris, shared), 0);
            atomic_fetch_add(&shared->told, 1);
        }
        await_told(shared, 1);
        CHECK_OK(iris_device_barrier(iris, NULL, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
    }
    atomic_fetch_add(&shared->told, 1);
    await_told(shared, 1 + RANKS);
    return 0;
}

static TEST(a_rank_that_waits_for_its_stream_is_said_to)
{
    run(stuck, 0, IRIS_ERR_TIMEOUT, "rank 1");
    run(stuck, 1, IRIS_ERR_TIMEOUT, "rank 1");
}

/* Rank 0 waits for all, with a short deadline; rank 1 is in a barrier with rank
 * 2, which comes once rank 0 has given up. */
static void elsewhere(int rank, struct proc_report *report, void *arg)
{
    static const int pair[] = {1, 2};
    iris_group_t *group = NULL;
    iris_t *iris;

    iris = proc_init(report);
    if (iris == NULL) {
        return;
    }
    iris_group_create(iris, pair, rank == 0 ? 0 : 2, &group);
    if (rank == 0) {
        iris->control->timeout_ms = DEADLINE;
    }
    if (rank == 2) {
        await_told(arg, 1);
    }
    proc_note(report, iris_barrier(iris, NULL, group));
    if (rank == 0) {
        atomic_fetch_add(&((struct shared *)arg)->told, 1);
    }
    proc_finalize(report, iris);
}

static TEST(a_rank_in_another_groups_call_is_said_to_be_there)
{
    struct shared *shared = share();
    struct procs procs;

    procs_start(&procs, RANKS, elsewhere, shared);
    procs_join(&procs);
    assert_int_equal(procs.reports[0].status, IRIS_ERR_TIMEOUT);
    assert_non_null(strstr(procs.reports[0].message,
                           "rank 1 has not come to iris_barrier"));
    assert_non_null(
        strstr(procs.reports[0].message, "it is busy in iris_barrier"));
    for (int rank = 1; rank < RANKS; rank++) {
        assert_int_equal(procs.reports[rank].status, IRIS_OK);
        assert_int_not_equal(procs.reports[rank].finalize_status, IRIS_OK);
    }
    procs_free(&procs);
    munmap(shared, sizeof *shared);
}

static int one_fails(iris_t *iris, void *arg)
{
    const struct shared *shared = arg;
    void *ptr;

    if (iris_rank(iris) == 1) {
        if (shared->code == IRIS_ERR_NO_MEMORY) {
            return iris_calloc(iris, SIZE_MAX / 2, 1, &ptr);
        }
        return shared->code;
    }
    if (shared->code == IRIS_ERR_NO_MEMORY) {
        CHECK_STATUS(iris_calloc(iris, SIZE_MAX / 2, 1, &ptr),
                     IRIS_ERR_NO_MEMORY);
    }
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_PEER_LOST);
    CHECK_MESSAGE("rank 1");
    CHECK_MESSAGE("left the job after an error");
    CHECK_STATUS(iris_malloc(iris, 100, &ptr), IRIS_ERR_PEER_LOST);
    CHECK_MESSAGE("rank 1");
    return IRIS_ERR_PEER_LOST;
}

static TEST(a_rank_whose_function_fails_is_lost_to_the_others)
{
    run(one_fails, 7, IRIS_ERR_PEER_LOST, "the function of rank 1 returned 7");
    run(one_fails, IRIS_ERR_NO_MEMORY, IRIS_ERR_NO_MEMORY, "IRIS_HEAP_SIZE");
}

/* Rank 1 fails, rank 0 notices and leaves, rank 2 only waits for rank 0. */
static int chain(iris_t *iris, void *arg)
{
    static const int with_one[] = {0, 1}, with_two[] = {0, 2};
    int rank = iris_rank(iris);
    iris_group_t *first = NULL, *second = NULL;

    CHECK_OK(iris_group_create(iris, with_one, rank == 2 ? 0 : 2, &first));
    CHECK_OK(iris_group_create(iris, with_two, rank == 1 ? 0 : 2, &second));
    if (rank == 1) {
        return 9;
    }
    CHECK_STATUS(iris_barrier(iris, NULL, rank == 0 ? first : second),
                 IRIS_ERR_PEER_LOST);
    CHECK_MESSAGE("rank 1 (pid");
    return IRIS_ERR_PEER_LOST;
}

static TEST(the_rank_where_it_began_is_named_through_others)
{
    run(chain, 0, IRIS_ERR_PEER_LOST, "the function of rank 1 returned 9");
}

/* Rank 0 works for long, rank 1 fails: rank 2, which waits for both, need not
 * wait for rank 0 to learn of it. */
static int busy(iris_t *iris, void *arg)
{
    struct shared *shared = arg;
    int rank = iris_rank(iris);

    if (rank == 1) {
        return 5;
    }
    if (rank == 0) {
        await_told(shared, 1);
    }
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_PEER_LOST);
    CHECK_MESSAGE("rank 1");
    atomic_fetch_add(&shared->told, 1);
    return IRIS_ERR_PEER_LOST;
}

static TEST(a_loss_is_noticed_while_waiting_for_another_rank)
{
    run(busy, 0, IRIS_ERR_PEER_LOST, "the function of rank 1 returned 5");
}

static int finalize_early(iris_t *iris, void *arg)
{
    if (iris_rank(iris) == 2) {
        return 0; /* and on to iris_finalize() */
    }
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("rank 2 called iris_finalize()");
    CHECK_MESSAGE("rank 0 called iris_barrier()");
    return IRIS_ERR_MISMATCH;
}

static TEST(finalize_against_a_barrier_is_a_mismatch)
{
    run(finalize_early, 0, IRIS_ERR_MISMATCH, "iris_finalize()");
}

TEST_GROUP(unit, waits);
