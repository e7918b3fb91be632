/* SPDX-License-Identifier: MIT
 *
 * Ranks killed with SIGKILL before and during init, at every moment of it.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"
#include "support/procs.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RANKS 4
#define BOUND_NS 2000000000
#define SAMPLE_ROUNDS 24
#define MANY_ROUNDS 1000
/* The last moment to be killed at; init takes a few milliseconds. */
#define LAST_NS 4000000

static void body(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris;
    void *ptr;

    proc_reach(report, 1);
    iris = proc_init(report);
    while (iris != NULL && report->status == IRIS_OK) {
        iris_status_t status = iris_malloc(iris, 64, &ptr);

        proc_note(report, status == IRIS_OK ? iris_free(iris, ptr) : status);
    }
    if (iris != NULL) {
        proc_finalize(report, iris);
    }
}

/* A rank killed before rank 0 has heard of it cannot be known: then the
 * deadline tells that it is missing. */
static void check_survivor(const struct proc_report *report, int victim,
                           int64_t death_ns)
{
    int late = report->status == IRIS_ERR_PEER_LOST &&
               report->end_ns - death_ns > BOUND_NS;
    char text[32];

    snprintf(text, sizeof text, "rank %d", victim);
    if ((report->status != IRIS_ERR_PEER_LOST &&
         report->status != IRIS_ERR_TIMEOUT) ||
        strstr(report->message, text) == NULL || late) {
        print_error("victim %d: %s: %s\n", victim,
                    iris_status_string(report->status), report->message);
        fail();
    }
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static TEST(a_rank_may_die_at_any_moment_of_init)
{
    size_t rounds = harness_count(MANY_ROUNDS, SAMPLE_ROUNDS);
    uint64_t random = 7;
    char kept[32];

    snprintf(kept, sizeof kept, "%s", getenv("IRIS_TIMEOUT_MS"));
    setenv("IRIS_TIMEOUT_MS", "1000", 1);
    for (size_t round = 0; round < rounds; round++) {
        int victim = (int)(round % RANKS);
        struct timespec delay = {.tv_nsec = next_random(&random) % LAST_NS};
        int64_t death_ns;
        struct procs procs;

        procs_start(&procs, RANKS, body, NULL);
        procs_await(&procs, victim, 1);
        nanosleep(&delay, NULL); /* the moment is the test's input */
        death_ns = procs_kill(&procs, victim);
        procs_join(&procs);
        for (int rank = 0; rank < RANKS; rank++) {
            if (rank != victim) {
                check_survivor(&procs.reports[rank], victim, death_ns);
            }
        }
        procs_free(&procs);
    }
    setenv("IRIS_TIMEOUT_MS", kept, 1);
}

/* Counts the forks of iris_spawn(); the child of one of them dies at once. */
static int forks_until_death = -1;

static void before_fork(void)
{
    forks_until_death -= forks_until_death >= 0;
}

static void in_child(void)
{
    if (forks_until_death == 0) {
        kill(getpid(), SIGKILL);
    }
}

static int never(iris_t *iris, void *arg)
{
    return harness_failed(__FILE__, __LINE__, "the function ran", 1, 0);
}

static TEST(spawn_does_not_wait_for_a_child_that_died_before_init)
{
    struct iris_config config;
    struct leaks before;
    char text[64];

    pthread_atfork(before_fork, NULL, in_child);
    iris_config_init(&config);
    config.spawn = "processes";
    config.timeout_ms = 0; /* none: waiting would be for ever */
    leaks_note(&before);
    for (int victim = 0; victim < RANKS; victim++) {
        forks_until_death = victim + 1;
        assert_int_equal(iris_spawn(&config, RANKS, never, NULL),
                         IRIS_ERR_PEER_LOST);
        snprintf(text, sizeof text, "rank %d (pid ", victim);
        assert_true(harness_message_has(text));
        assert_true(harness_message_has("was killed by signal 9"));
    }
    forks_until_death = -1;
    assert_int_equal(leaks_found(&before), 0);
    assert_int_equal(leaks_found_files(), 0);
}

TEST_GROUP(unit, waits);
