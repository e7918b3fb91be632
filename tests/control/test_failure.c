/* SPDX-License-Identifier: MIT
 *
 * One rank is killed with SIGKILL while the others wait, each in its own way:
 * they return IRIS_ERR_PEER_LOST within two seconds of the death.
 */
#include "config.h"

#define IRIS_FAR 1 /* in GPU code, too */
#include "support/harness.h"
#include "support/leaks.h"
#include "support/wait_kernel.h"
#if IRIS_ON_CPU /* C that is no C++ */
#include "support/procs.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANKS 4
#define BOUND_NS 2000000000

/* What a body reaches once it is about to wait. */
#define WAITING 1

/* For a lock that is never given back: the user's own loop. */
IRIS_KERNEL(spin_for_lock, struct wait_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    while (iris_atomic_cas_u64(dev, args->word, 1, 2, 0, IRIS_ACQUIRE,
                               IRIS_SCOPE_SYSTEM) != 1) {
    }
}

/* Atomics on a rank of another node, whose answers have to come. */
IRIS_KERNEL(add_across, struct wait_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (int i = 0; i < 20; i++) {
        (void)iris_atomic_add_u64(dev, args->word, 1, (dev.rank + 2) % RANKS,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    }
}

/* How the ranks wait when one is killed; the rank `victim` gets there, too. */
struct scenario {
    const char *name;
    iris_status_t (*wait)(iris_t *iris, int rank, int victim);
};

static iris_status_t wait_in_kernel(iris_t *iris,
                                    const struct iris_kernel *kernel)
{
    struct wait_args args = {.context = iris_device_context(iris)};
    iris_status_t status;

    status = iris_calloc(iris, 1, sizeof(uint64_t), (void **)&args.word);
    if (status == IRIS_OK) {
        status = iris_launch(iris, kernel, 6, 1, &args, sizeof args, NULL);
    }
    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

static iris_status_t in_signal_wait(iris_t *iris, int rank, int victim)
{
    return wait_in_kernel(iris, wait_for_one);
}

/* A loop of the kernel's own cannot be ended on a GPU. */
static iris_status_t in_spin_loop(iris_t *iris, int rank, int victim)
{
    return harness_on_gpu(iris) ? in_signal_wait(iris, rank, victim)
                                : wait_in_kernel(iris, spin_for_lock);
}

static void stay(void)
{
    for (;;) {
        pause();
    }
}

static iris_status_t outside_the_library(iris_t *iris, int rank, int victim)
{
    if (rank == victim) {
        stay();
    }
    return iris_barrier(iris, NULL, NULL);
}

/* The victim and the others are in the barrier; one rank is not and has long
 * work to do, on its device. */
static iris_status_t in_barrier(iris_t *iris, int rank, int victim)
{
    struct wait_args args = {.context = iris_device_context(iris)};

    if (rank != (victim + 1) % RANKS) {
        return iris_barrier(iris, NULL, NULL);
    }
    args.word =
        (uint64_t *)(uintptr_t)args.context + IRIS_CONTEXT_ALL_WORDS(RANKS);
    iris_launch(iris, wait_for_one, 1, 1, &args, sizeof args, NULL);
    return iris_barrier(iris, NULL, NULL); /* synchronises the stream first */
}

static iris_status_t in_device_barrier(iris_t *iris, int rank, int victim)
{
    iris_status_t status = IRIS_OK;

    if (rank == victim) {
        stay();
    }
    status = iris_device_barrier(iris, NULL, NULL);
    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

/* Enqueues more than a GPU's stream takes: there a launch has to notice. */
static iris_status_t in_a_launch(iris_t *iris, int rank, int victim)
{
    iris_status_t status = IRIS_OK;

    if (rank == victim) {
        stay();
    }
    for (int i = 0; i < 3000 && status == IRIS_OK; i++) {
        status = iris_device_barrier(iris, NULL, NULL);
    }
    return status == IRIS_OK && !harness_on_gpu(iris)
               ? iris_stream_synchronize(iris, NULL)
               : status;
}

static iris_status_t between_device_barriers(iris_t *iris, int rank, int victim)
{
    iris_status_t status = IRIS_OK;

    while (status == IRIS_OK) {
        status = iris_device_barrier(iris, NULL, NULL);
        if (status == IRIS_OK) {
            status = iris_stream_synchronize(iris, NULL);
        }
    }
    return status;
}

static iris_status_t between_collectives(iris_t *iris, int rank, int victim)
{
    iris_status_t status;
    void *words;

    status = iris_calloc(iris, 100000, 4, &words);
    for (size_t count = 1; status == IRIS_OK; count = count * 7 % 99991) {
        status = iris_all_reduce(iris, words, words, count, IRIS_DTYPE_U32,
                                 IRIS_REDUCE_SUM, NULL);
        if (status == IRIS_OK) {
            status = iris_stream_synchronize(iris, NULL);
        }
    }
    return status;
}

static iris_status_t between_atomics(iris_t *iris, int rank, int victim)
{
    iris_status_t status = IRIS_OK;

    while (status == IRIS_OK) {
        status = wait_in_kernel(iris, add_across);
    }
    return status;
}

static iris_status_t between_allocations(iris_t *iris, int rank, int victim)
{
    iris_status_t status = IRIS_OK;
    void *ptr;

    while (status == IRIS_OK) {
        status = iris_malloc(iris, 100000, &ptr);
        if (status == IRIS_OK) {
            status = iris_free(iris, ptr);
        }
    }
    return status;
}

static iris_status_t between_deferred_frees(iris_t *iris, int rank, int victim)
{
    iris_status_t status = IRIS_OK;
    void *ptrs[4];

    while (status == IRIS_OK) {
        for (int i = 0; i < 4 && status == IRIS_OK; i++) {
            status = iris_malloc(iris, 100000, &ptrs[i]);
        }
        for (int i = 0; i < 4 && status == IRIS_OK; i++) {
            status = iris_free_later(iris, ptrs[(i + rank) % 4]);
        }
    }
    return status;
}

static iris_status_t between_groups(iris_t *iris, int rank, int victim)
{
    static const int all[RANKS] = {3, 1, 0, 2};
    iris_status_t status = IRIS_OK;
    iris_group_t *group;

    while (status == IRIS_OK) {
        status = iris_group_create(iris, all, RANKS, &group);
        if (status == IRIS_OK) {
            status = iris_group_destroy(iris, group);
        }
    }
    return status;
}

static const struct scenario scenarios[] = {
    {"outside the library", outside_the_library},
    {"in a barrier", in_barrier},
    {"in a signal wait", in_signal_wait},
    {"in a spin loop", in_spin_loop},
    {"in a device barrier", in_device_barrier},
    {"in a launch", in_a_launch},
    {"between device barriers", between_device_barriers},
    {"between collectives", between_collectives},
    {"between allocations", between_allocations},
    {"between deferred frees", between_deferred_frees},
    {"between groups", between_groups},
};

/* Ranks from `victim` to `last` are killed. */
struct plan {
    const struct scenario *scenario;
    int victim;
    int last;
};

/* Whether the message says that one of those has died. */
static int names_victim(const struct plan *plan, const char *message)
{
    char text[32];
    int named = 0;

    for (int rank = plan->victim; rank <= plan->last; rank++) {
        snprintf(text, sizeof text, "rank %d (pid", rank);
        named |= strstr(message, text) != NULL;
    }
    return named && strstr(message, "died") != NULL;
}

static void body(int rank, struct proc_report *report, void *arg)
{
    const struct plan *plan = arg;
    iris_t *iris = proc_init(report);
    void *ptr;

    if (iris == NULL) {
        return;
    }
    proc_reach(report, WAITING);
    proc_note(report, plan->scenario->wait(iris, rank, plan->victim));
    /* It stays so, and nothing waits any more. */
    report->value = iris_malloc(iris, 100, &ptr);
    proc_finalize(report, iris);
}

static void check_survivor(const struct proc_report *report,
                           const struct plan *plan, int64_t death_ns)
{
    if (report->status != IRIS_ERR_PEER_LOST ||
        !names_victim(plan, report->message) ||
        report->end_ns - death_ns > BOUND_NS) {
        print_error(
            "%s, victim %d: %s after %lld us: %s\n", plan->scenario->name,
            plan->victim, iris_status_string(report->status),
            (long long)(report->end_ns - death_ns) / 1000, report->message);
    }
    assert_int_equal(report->status, IRIS_ERR_PEER_LOST);
    assert_true(names_victim(plan, report->message));
    assert_true(report->end_ns - death_ns <= BOUND_NS);
    assert_int_equal(report->value, IRIS_ERR_PEER_LOST);
    assert_int_equal(report->finalize_status, IRIS_ERR_PEER_LOST);
}

static void kill_all_in(const struct scenario *scenario, int victim, int last)
{
    struct plan plan = {scenario, victim, last};
    struct procs procs;
    int64_t death_ns = 0;

    procs_start(&procs, RANKS, body, &plan);
    for (int rank = 0; rank < RANKS; rank++) {
        procs_await(&procs, rank, WAITING);
    }
    for (int rank = victim; rank <= last; rank++) {
        death_ns = procs_kill(&procs, rank);
    }
    procs_join(&procs);
    for (int rank = 0; rank < RANKS; rank++) {
        if (rank < victim || rank > last) {
            check_survivor(&procs.reports[rank], &plan, death_ns);
        }
    }
    procs_free(&procs);
}

static void kill_in(const struct scenario *scenario, int victim)
{
    kill_all_in(scenario, victim, victim);
}

/* Kernels of two nodes, of which each rank's waits for ranks of the other. */
static TEST(survivors_on_other_nodes_learn_who_died)
{
    static const struct scenario across[] = {
        {"in a spin loop across nodes", in_spin_loop},
        {"in a device barrier across nodes", in_device_barrier},
        {"between atomics across nodes", between_atomics},
        {"between collectives across nodes", between_collectives},
    };

    setenv("IRIS_NODES", "2", 1);
    for (size_t i = 0; i < sizeof across / sizeof across[0]; i++) {
        kill_in(&across[i], 0);
        kill_in(&across[i], RANKS - 1);
        kill_all_in(&across[i], RANKS / 2, RANKS - 1); /* a node */
    }
    /* In a long run 330 jobs. */
    for (size_t round = 1; round < harness_count(11, 1); round++) {
        for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
            kill_in(&scenarios[i], 0);
            kill_in(&scenarios[i], RANKS - 1);
            kill_all_in(&scenarios[i], RANKS / 2, RANKS - 1);
        }
    }
    unsetenv("IRIS_NODES");
}

static TEST(survivors_learn_who_died_wherever_they_wait)
{
    static const int victims[] = {0, 2, RANKS - 1};
    /* A process takes seconds to open a GPU: each scenario has one victim. */
    size_t rounds = harness_count(75, harness_has_gpu() ? 1 : 3);

    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++) {
            kill_in(&scenarios[i], victims[(round + i) % 3]);
        }
    }
}

/* Rank 2 dies in finalize's wait for rank 1, or while the others wait there. */
static void body_finalize(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);

    if (iris == NULL) {
        return;
    }
    proc_reach(report, WAITING);
    if (rank == *(int *)arg) {
        stay();
    }
    proc_note(report, iris_finalize(iris));
}

static TEST(finalize_does_not_wait_for_the_dead)
{
    for (int victim = 0; victim < RANKS; victim++) {
        struct procs procs;
        int64_t death_ns;

        procs_start(&procs, RANKS, body_finalize, &victim);
        for (int rank = 0; rank < RANKS; rank++) {
            procs_await(&procs, rank, WAITING);
        }
        death_ns = procs_kill(&procs, victim);
        procs_join(&procs);
        for (int rank = 0; rank < RANKS; rank++) {
            const struct proc_report *report = &procs.reports[rank];

            if (rank != victim) {
                assert_int_equal(report->status, IRIS_ERR_PEER_LOST);
                assert_true(report->end_ns - death_ns <= BOUND_NS);
            }
        }
        procs_free(&procs);
    }
}

/* A rank that left in good order may end: nobody calls that a loss. */
static void body_orderly(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);

    if (iris != NULL) {
        proc_note(report, iris_finalize(iris));
    }
}

static TEST(ranks_that_finalize_and_end_are_not_lost)
{
    size_t rounds = harness_count(200, harness_has_gpu() ? 2 : 10);

    for (size_t round = 0; round < rounds; round++) {
        struct procs procs;

        procs_start(&procs, RANKS, body_orderly, NULL);
        procs_join(&procs);
        for (int rank = 0; rank < RANKS; rank++) {
            assert_int_equal(procs.reports[rank].status, IRIS_OK);
        }
        procs_free(&procs);
    }
}

TEST_GROUP(unit, waits);
