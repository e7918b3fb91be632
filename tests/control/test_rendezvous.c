/* SPDX-License-Identifier: MIT
 *
 * The meeting of rank processes when something is wrong with one of them:
 * everyone learns what, and at once.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"
#include "support/procs.h"

#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS 3

/* What one process finds in its environment besides what procs_start() sets. */
struct variable {
    int process;
    const char *name;
    const char *value;
};

#define END            \
    {                  \
        -1, NULL, NULL \
    }

static void set_variables(int process, const struct variable *variables)
{
    for (; variables->name != NULL; variables++) {
        if (variables->process == process) {
            setenv(variables->name, variables->value, 1);
        }
    }
}

/* Init, a barrier, finalize. */
static void join(int process, struct proc_report *report, void *arg)
{
    iris_t *iris;

    set_variables(process, arg);
    iris = proc_init(report);
    if (iris != NULL) {
        report->value = iris_rank(iris);
        proc_note(report, iris_barrier(iris, NULL, NULL));
        proc_finalize(report, iris);
    }
}

/* Every process ends with `status` and a message that has `text`. */
static void expect(int count, const struct variable *variables,
                   iris_status_t status, const char *text)
{
    struct procs procs;

    procs_start(&procs, count, join, (void *)(uintptr_t)variables);
    procs_join(&procs);
    for (int i = 0; i < count; i++) {
        const struct proc_report *report = &procs.reports[i];

        if (report->status != status ||
            (status != IRIS_OK && strstr(report->message, text) == NULL)) {
            print_error("process %d: %s: %s\n", i,
                        iris_status_string(report->status), report->message);
        }
        assert_int_equal(report->status, status);
        if (status != IRIS_OK) {
            assert_non_null(strstr(report->message, text));
            assert_int_equal(report->message[0], '[');
        }
    }
    procs_free(&procs);
}

static TEST(forked_processes_meet_by_environment)
{
    static const struct variable torch[] = {{0, "IRIS_RANK", ""},
                                            {1, "IRIS_RANK", ""},
                                            {2, "IRIS_RANK", ""},
                                            {0, "RANK", "2"},
                                            {1, "RANK", "0"},
                                            {2, "RANK", "1"},
                                            {0, "WORLD_SIZE", "3"},
                                            {1, "WORLD_SIZE", "3"},
                                            {2, "WORLD_SIZE", "3"},
                                            {0, "IRIS_BOOTSTRAP", "env"},
                                            {1, "IRIS_BOOTSTRAP", "env"},
                                            {2, "IRIS_BOOTSTRAP", "env"},
                                            END};
    static const struct variable none[] = {END};

    for (int count = 1; count <= PROCS_MAX; count++) {
        expect(count, none, IRIS_OK, "");
    }
    expect(RANKS, torch, IRIS_OK, "");
}

static TEST(a_bad_value_on_one_rank_reaches_all_at_once)
{
    for (int rank = 0; rank < RANKS; rank++) {
        const struct variable size[] = {{rank, "IRIS_HEAP_SIZE", "big"}, END};
        const struct variable cus[] = {{rank, "IRIS_SIM_CUS", "0"}, END};
        const struct variable backend[] = {{rank, "IRIS_BACKEND", "quantum"},
                                           END};
        const struct variable prefix[] = {
            {rank, "IRIS_HEAP_BASES_PREFIX", "/no/such/folder/x"}, END};

        expect(RANKS, size, IRIS_ERR_CONFIG, "IRIS_HEAP_SIZE=\"big\"");
        expect(RANKS, cus, IRIS_ERR_CONFIG, "IRIS_SIM_CUS=\"0\"");
        expect(RANKS, backend, IRIS_ERR_BACKEND, "\"quantum\"");
        expect(RANKS, prefix, IRIS_ERR_SYSTEM, "IRIS_HEAP_BASES_PREFIX");
    }
}

/* Which would otherwise wait for connections that nobody makes. */
static TEST(different_transports_are_told_with_both_values)
{
    for (int rank = 0; rank < 2; rank++) {
        const struct variable one[] = {{rank, "IRIS_TRANSPORT", "none"},
                                       {1 - rank, "IRIS_TRANSPORT", "socket"},
                                       {0, "IRIS_NODES", "2"},
                                       {1, "IRIS_NODES", "2"},
                                       END};

        expect(2, one, IRIS_ERR_MISMATCH, "IRIS_TRANSPORT=none");
        expect(2, one, IRIS_ERR_MISMATCH, "IRIS_TRANSPORT=socket");
    }
    {
        const struct variable same[] = {{0, "IRIS_TRANSPORT", "auto"},
                                        {1, "IRIS_TRANSPORT", "socket"},
                                        END};

        expect(2, same, IRIS_OK, "");
    }
}

/* It does not know how many ranks there are, nor, as rank 0, that any are. */
static TEST(a_bad_number_of_ranks_on_one_reaches_all_at_once)
{
    for (int rank = 0; rank < RANKS; rank++) {
        const struct variable count[] = {{rank, "IRIS_NUM_RANKS", "many"}, END};

        expect(RANKS, count, IRIS_ERR_CONFIG, "IRIS_NUM_RANKS=\"many\"");
    }
}

struct turn {
    int bad; /* the rank with a bad setting */
    atomic_int told;
};

/* Rank 2 comes once rank 1 has got its answer: too late, if rank 0 answers only
 * when it has waited long enough for rank 2. */
static void join_in_turn(int rank, struct proc_report *report, void *arg)
{
    struct turn *turn = arg;

    while (rank == 2 && atomic_load(&turn->told) == 0) {
        poll(NULL, 0, 1);
    }
    if (rank == turn->bad) {
        setenv("IRIS_HEAP_SIZE", "big", 1);
    }
    proc_init(report);
    if (rank == 1) {
        atomic_store(&turn->told, 1);
    }
}

static TEST(who_is_there_is_told_at_once_who_comes_later_too)
{
    for (int bad = 0; bad < 2; bad++) {
        struct turn *turn = mmap(NULL, sizeof *turn, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct procs procs;

        turn->bad = bad;
        procs_start(&procs, RANKS, join_in_turn, turn);
        procs_join(&procs);
        for (int rank = 0; rank < RANKS; rank++) {
            assert_int_equal(procs.reports[rank].status, IRIS_ERR_CONFIG);
            assert_non_null(
                strstr(procs.reports[rank].message, "IRIS_HEAP_SIZE=\"big\""));
        }
        procs_free(&procs);
        munmap(turn, sizeof *turn);
    }
}

static TEST(ranks_that_want_different_jobs_are_told)
{
    static const struct variable heap[] = {{1, "IRIS_HEAP_SIZE", "32M"}, END};
    static const struct variable check[] = {{1, "IRIS_CHECK", "bounds"}, END};
    static const struct variable heap0[] = {{0, "IRIS_HEAP_SIZE", "32M"}, END};
    static const struct variable count[] = {{2, "IRIS_NUM_RANKS", "7"}, END};
    static const struct variable count0[] = {{0, "IRIS_NUM_RANKS", "2"}, END};
    static const struct variable twice[] = {{2, "IRIS_RANK", "1"}, END};

    expect(RANKS, heap, IRIS_ERR_MISMATCH,
           "rank 1 has a heap of 33554432 bytes, rank 0 of 16777216; set "
           "IRIS_HEAP_SIZE");
    expect(RANKS, heap0, IRIS_ERR_MISMATCH, "rank 0 of 33554432");
    expect(RANKS, check, IRIS_ERR_MISMATCH, "set IRIS_CHECK alike");
    expect(RANKS, count, IRIS_ERR_MISMATCH,
           "rank 2 believes in a job of 7 ranks, rank 0 in one of 3");
    expect(RANKS, count0, IRIS_ERR_MISMATCH,
           "rank 0 in one of 2; give all the same IRIS_NUM_RANKS");
    expect(RANKS, twice, IRIS_ERR_BOOTSTRAP, "rank 1 came twice: pid ");
}

static char deadline[32]; /* what it is but for set_deadline() */

static void set_deadline(const char *ms)
{
    if (deadline[0] == '\0') {
        snprintf(deadline, sizeof deadline, "%s", getenv("IRIS_TIMEOUT_MS"));
    }
    setenv("IRIS_TIMEOUT_MS", ms, 1);
}

static TEST(a_second_rank_0_is_told_who_the_first_is)
{
    static const struct variable twice[] = {{2, "IRIS_RANK", "0"}, END};
    struct procs procs;
    int refused = -1;

    /* Processes 0 and 1, or 2 and 1, wait for rank 2, which never comes. */
    set_deadline("2000");
    procs_start(&procs, RANKS, join, (void *)(uintptr_t)twice);
    procs_join(&procs);
    for (int i = 0; i < RANKS; i++) {
        const struct proc_report *report = &procs.reports[i];

        if (strstr(report->message, "is already there: pid ") != NULL) {
            assert_int_equal(report->status, IRIS_ERR_BOOTSTRAP);
            assert_non_null(strstr(report->message, "IRIS_JOB_ID"));
            assert_int_equal(refused, -1);
            refused = i;
        } else {
            assert_int_equal(report->status, IRIS_ERR_TIMEOUT);
            assert_non_null(strstr(report->message, "missing: rank 2"));
        }
    }
    assert_true(refused == 0 || refused == 2);
    procs_free(&procs);
    set_deadline(deadline);
}

/* The rank *arg never gets as far as iris_init(). */
static void stay_away(int rank, struct proc_report *report, void *arg)
{
    static const struct variable none[] = {END};

    if (rank != *(int *)arg) {
        join(rank, report, (void *)(uintptr_t)none);
    }
}

static TEST(a_rank_that_does_not_come_is_named)
{
    for (int absent = 0; absent < RANKS; absent++) {
        struct procs procs;

        /* Without rank 0 there is nothing to be done in that time. */
        set_deadline(absent == 0 ? "400" : "2000");
        procs_start(&procs, RANKS, stay_away, &absent);
        procs_join(&procs);
        for (int rank = 0; rank < RANKS; rank++) {
            const char *message = procs.reports[rank].message;
            char text[64];

            if (rank == absent) {
                continue;
            }
            assert_int_equal(procs.reports[rank].status, IRIS_ERR_TIMEOUT);
            snprintf(text, sizeof text,
                     absent == 0 ? "rank 0 of job \"job-"
                                 : "2 of 3 ranks came before the deadline "
                                   "(IRIS_TIMEOUT_MS); missing: rank %d",
                     absent);
            assert_non_null(strstr(message, text));
            assert_non_null(strstr(message, "IRIS_TIMEOUT_MS"));
        }
        procs_free(&procs);
    }
    set_deadline(deadline);
}

static TEST(names_left_in_shared_memory_do_not_matter)
{
    static const struct variable job[] = {{0, "IRIS_JOB_ID", "iris-stale"},
                                          {1, "IRIS_JOB_ID", "iris-stale"},
                                          END};
    static const char *const paths[] = {"/dev/shm/iris-stale", "/dev/shm/iris",
                                        "/dev/shm/iris_0_iris-stale"};

    for (size_t i = 0; i < 3; i++) {
        close(open(paths[i], O_CREAT | O_RDWR, 0000));
    }
    leaks_note_files();
    expect(2, job, IRIS_OK, "");
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(unlink(paths[i]), 0);
    }
}

TEST_GROUP(unit);
