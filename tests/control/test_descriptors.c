/* SPDX-License-Identifier: MIT
 *
 * Too few file descriptors, on one rank or on all: an error that says what to
 * raise, on every rank, and nobody waits in vain.
 */
#include "config.h"

#include "support/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/leaks.h"
#include "support/procs.h"

#define RANKS 3
/* More descriptors than a rank of RANKS needs. */
#define ENOUGH 24

/* Leaves this process `count` free descriptors. */
static void limit_descriptors(int count)
{
    struct rlimit limit;
    int fd = 0;

    getrlimit(RLIMIT_NOFILE, &limit);
    for (; count > 0 || fcntl(fd, F_GETFD) >= 0; fd++) {
        count -= fcntl(fd, F_GETFD) < 0;
    }
    limit.rlim_cur = (rlim_t)fd;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static void unlimit_descriptors(void)
{
    struct rlimit limit;

    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int init_with_few_descriptors(void *arg)
{
    int succeeded = 0;

    for (int count = 0; count < ENOUGH; count++) {
        struct leaks before;
        iris_status_t status;
        iris_t *iris = NULL;

        leaks_note(&before);
        limit_descriptors(count);
        status = iris_init(NULL, &iris);
        if (status == IRIS_OK) {
            CHECK_OK(iris_finalize(iris));
        }
        unlimit_descriptors();
        if (status != IRIS_OK) {
            CHECK_EQUAL(succeeded, 0); /* more never gives less */
            CHECK_STATUS(status, IRIS_ERR_LIMIT);
            CHECK_MESSAGE("[0/1]");
            CHECK_MESSAGE("RLIMIT_NOFILE (ulimit -n)");
            CHECK(iris == NULL);
        }
        succeeded |= status == IRIS_OK;
        CHECK_EQUAL(leaks_found(&before), 0);
    }
    CHECK_EQUAL(succeeded, 1);
    return 0;
}

static TEST(init_without_descriptors_says_what_to_raise)
{
    harness_in_child(init_with_few_descriptors, NULL);
}

struct few {
    int rank;  /* who has few descriptors */
    int count; /* how many */
};

static void body_few(int rank, struct proc_report *report, void *arg)
{
    const struct few *few = arg;
    iris_t *iris;

    if (rank == few->rank) {
        limit_descriptors(few->count);
    }
    iris = proc_init(report);
    if (iris != NULL) {
        proc_note(report, iris_barrier(iris, NULL, NULL));
        proc_finalize(report, iris);
    }
    if (rank == few->rank) {
        unlimit_descriptors();
    }
}

/* Rank 0 cannot tell its reason to a rank that has not proven itself yet; that
 * rank sees it go, and names it. */
static int is_seen_going(const struct few *few,
                         const struct proc_report *report)
{
    return few->rank == 0 && report->status == IRIS_ERR_PEER_LOST &&
           strstr(report->message, "rank 0") != NULL;
}

/* With none, a rank cannot even talk to the others, who miss it in the end.
 * Rank 0 with one takes no connection, and they see it go. Returns 1 if the job
 * ran. */
static int check_few(const struct few *few, const struct proc_report *reports)
{
    const struct proc_report *own = &reports[few->rank];
    char text[32];

    snprintf(text, sizeof text, "rank %d", few->rank);
    for (int rank = 0; rank < RANKS; rank++) {
        const struct proc_report *report = &reports[rank];

        if (own->status == IRIS_OK) {
            assert_int_equal(report->status, IRIS_OK);
        } else if (rank != few->rank && few->count < (few->rank == 0 ? 2 : 1)) {
            assert_int_equal(report->status, few->count == 0
                                                 ? IRIS_ERR_TIMEOUT
                                                 : IRIS_ERR_PEER_LOST);
            assert_non_null(strstr(report->message, text));
        } else if (rank == few->rank || !is_seen_going(few, report)) {
            if (report->status != IRIS_ERR_LIMIT) {
                print_error("rank %d, when rank %d has %d descriptors: %s: "
                            "%s\n",
                            rank, few->rank, few->count,
                            iris_status_string(report->status),
                            report->message);
            }
            assert_int_equal(report->status, IRIS_ERR_LIMIT);
            assert_non_null(strstr(report->message, "ulimit -n"));
            assert_non_null(
                strstr(report->message, rank == few->rank ? "[" : text));
        }
    }
    return own->status == IRIS_OK;
}

static TEST(one_rank_without_descriptors_fails_all_and_is_named)
{
    char kept[32];

    snprintf(kept, sizeof kept, "%s", getenv("IRIS_TIMEOUT_MS"));
    for (int rank = 0; rank < RANKS; rank++) {
        int ran = 0;

        for (int count = 0; count < ENOUGH && !ran; count++) {
            struct few few = {rank, count};
            struct procs procs;

            setenv("IRIS_TIMEOUT_MS", count == 0 ? "400" : kept, 1);
            procs_start(&procs, RANKS, body_few, &few);
            procs_join(&procs);
            ran = check_few(&few, procs.reports);
            procs_free(&procs);
        }
        assert_int_equal(ran, 1);
    }
    setenv("IRIS_TIMEOUT_MS", kept, 1);
}

static int nothing(iris_t *iris, void *arg)
{
    return iris_barrier(iris, NULL, NULL);
}

/* Rank threads share one limit: whoever runs out first, all return. */
static int spawn_with_few_descriptors(void *arg)
{
    iris_status_t status = IRIS_ERR_STATE;

    for (int count = 0; count < 4 * ENOUGH && status != IRIS_OK; count++) {
        struct leaks before;

        leaks_note(&before);
        limit_descriptors(count);
        status = iris_spawn(NULL, 4, nothing, NULL);
        unlimit_descriptors();
        if (status != IRIS_OK) {
            CHECK_STATUS(status, IRIS_ERR_LIMIT);
            CHECK_MESSAGE("ulimit -n");
            CHECK_MESSAGE("/4]");
        }
        CHECK_EQUAL(leaks_found(&before), 0);
    }
    CHECK_STATUS(status, IRIS_OK);
    return 0;
}

static TEST(rank_threads_without_descriptors_all_return)
{
    harness_in_child(spawn_with_few_descriptors, NULL);
}

TEST_GROUP_WITH(harness_cpu_setup, harness_teardown, unit);
