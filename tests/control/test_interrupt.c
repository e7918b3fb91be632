/* SPDX-License-Identifier: MIT
 *
 * iris_interrupt() from a signal handler, and the call that says who is lost:
 * waits of the host end, peers are told.
 */
#include "config.h"

#include "support/harness.h"
#include "support/leaks.h"
#include "support/procs.h"
#include "support/wait_kernel.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define RANKS 3

#if IRIS_ON_CPU /* C that is no C++ */
#include "context/context.h"

#include <stdatomic.h>

/* What the ranks of one run share, whether threads or processes. */
struct shared {
    atomic_int begun; /* ranks about to wait */
    atomic_int over;  /* ranks that have returned from the wait */
    atomic_int pid;   /* rank 0's */
    atomic_int right; /* ranks that saw what they should */
};

/* Rank 0's context, in its process. */
static iris_t *_Atomic target;
#endif

static void on_alarm(int number)
{
    iris_interrupt(atomic_load(&target));
}

static void await(atomic_int *count, int least)
{
    for (int ms = 0; ms < 60000 && atomic_load(count) < least; ms++) {
        poll(NULL, 0, 1);
    }
}

/* Called by every rank first. */
static void begin(iris_t *iris, struct shared *shared)
{
    if (iris_rank(iris) == 0) {
        struct sigaction action = {.sa_handler = on_alarm};

        atomic_store(&target, iris);
        sigaction(SIGALRM, &action, NULL);
        atomic_store(&shared->pid, (int)getpid());
    }
}

/* Runs `body` as threads and as processes; the job ends with `expected`. */
static void run_for(iris_rank_fn body, iris_status_t expected, const char *text)
{
    static const char *const ways[] = {"threads", "processes"};

    for (int way = 0; way < 2; way++) {
        struct shared *shared =
            mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        struct iris_config config;
        struct leaks before;
        iris_status_t status;

        iris_config_init(&config);
        config.spawn = ways[way];
        leaks_note(&before);
        status = iris_spawn(&config, RANKS, body, shared);
        atomic_store(&target, NULL);
        if (status != expected || !harness_message_has(text)) {
            print_error("%s: %s: %s\n", ways[way], iris_status_string(status),
                        iris_last_error());
        }
        assert_int_equal(status, expected);
        assert_true(harness_message_has(text));
        assert_int_equal(atomic_load(&shared->right), RANKS);
        assert_int_equal(leaks_found(&before), 0);
        munmap(shared, sizeof *shared);
    }
}

static void run(iris_rank_fn body, iris_status_t expected)
{
    run_for(body, expected, "interrupted");
}

/* Ranks 0 and 1 wait for rank 2, which interrupts rank 0. */
static int barrier_body(iris_t *iris, void *arg)
{
    struct shared *shared = arg;
    int rank = iris_rank(iris);

    begin(iris, shared);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (rank == 2) {
        await(&shared->begun, 2);
        kill(atomic_load(&shared->pid), SIGALRM);
        await(&shared->over, 2);
    }
    atomic_fetch_add(&shared->begun, 1);
    CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_INTERRUPTED);
    CHECK_MESSAGE(rank == 0 ? "rank 0, this one, was interrupted"
                            : "rank 0 was interrupted (iris_interrupt)");
    atomic_fetch_add(&shared->over, 1);
    await(&shared->over, RANKS);
    CHECK_STATUS(iris_finalize(iris), IRIS_ERR_INTERRUPTED);
    atomic_fetch_add(&shared->right, 1);
    return IRIS_ERR_INTERRUPTED;
}

static TEST(a_barrier_can_be_interrupted)
{
    run(barrier_body, IRIS_ERR_INTERRUPTED);
}

/* Rank 0 waits for a kernel that waits for ever; it then leaves. Rank 1 waits
 * for rank 0 on the host, rank 2 in a kernel. */
static int kernel_body(iris_t *iris, void *arg)
{
    struct shared *shared = arg;
    int rank = iris_rank(iris);
    iris_status_t status;
    uint64_t *word;

    begin(iris, shared);
    CHECK_OK(iris_calloc(iris, 1, sizeof *word, (void **)&word));
    atomic_fetch_add(&shared->begun, 1);
    if (rank == 1) {
        await(&shared->begun, RANKS);
        kill(atomic_load(&shared->pid), SIGALRM);
        status = iris_barrier(iris, NULL, NULL);
    } else {
        CHECK_OK(launch_wait(iris, word));
        status = iris_stream_synchronize(iris, NULL);
    }
    CHECK_EQUAL(status, rank == 0 ? IRIS_ERR_INTERRUPTED : IRIS_ERR_PEER_LOST);
    CHECK_MESSAGE("rank 0");
    CHECK_MESSAGE("was interrupted (iris_interrupt)");
    if (rank != 0) {
        CHECK_EQUAL(iris_lost_rank(iris), 0);
    }
    atomic_fetch_add(&shared->right, 1);
    return status;
}

static TEST(a_wait_for_a_kernel_can_be_interrupted)
{
    run(kernel_body, IRIS_ERR_INTERRUPTED);
}

/* Rank 0 waits in iris_finalize() for the others, who come once it is back. */
static int finalize_body(iris_t *iris, void *arg)
{
    struct shared *shared = arg;
    int rank = iris_rank(iris);

    begin(iris, shared);
    if (rank == 0) {
        atomic_fetch_add(&shared->begun, 1);
        CHECK_STATUS(iris_finalize(iris), IRIS_ERR_INTERRUPTED);
        CHECK_MESSAGE("rank 0, this one, was interrupted");
        atomic_fetch_add(&shared->over, 1);
        atomic_fetch_add(&shared->right, 1);
        return IRIS_ERR_INTERRUPTED;
    }
    await(&shared->begun, 1);
    if (rank == 1) {
        kill(atomic_load(&shared->pid), SIGALRM);
    }
    await(&shared->over, 1);
    CHECK_STATUS(iris_finalize(iris), IRIS_ERR_INTERRUPTED);
    CHECK_MESSAGE("rank 0 was interrupted");
    atomic_fetch_add(&shared->right, 1);
    return IRIS_ERR_INTERRUPTED;
}

static TEST(finalize_can_be_interrupted)
{
    run(finalize_body, IRIS_ERR_INTERRUPTED);
}

/* Rank 0 leaves for a reason of its own, with or without an interrupt; the
 * others make a call that it does not make. */
static int leave_for(iris_t *iris, void *arg, int interrupt)
{
    struct shared *shared = arg;
    int rank = iris_rank(iris);

    if (rank == 0) {
        iris_set_leave_reason(iris, "a\tbug");
        if (interrupt) {
            iris_interrupt(iris);
        }
        CHECK_STATUS(iris_finalize(iris),
                     interrupt ? IRIS_ERR_INTERRUPTED : IRIS_ERR_MISMATCH);
    } else {
        CHECK_STATUS(iris_barrier(iris, NULL, NULL), IRIS_ERR_PEER_LOST);
        CHECK_MESSAGE("rank 0 (pid");
        CHECK_MESSAGE("left the job: a bug;");
    }
    atomic_fetch_add(&shared->right, 1);
    return IRIS_ERR_PEER_LOST;
}

static int fail_body(iris_t *iris, void *arg)
{
    return leave_for(iris, arg, 1);
}

static int end_body(iris_t *iris, void *arg)
{
    return leave_for(iris, arg, 0);
}

static TEST(peers_learn_why_a_rank_failed)
{
    run_for(fail_body, IRIS_ERR_PEER_LOST, "");
}

static TEST(peers_learn_why_a_rank_ended)
{
    run_for(end_body, IRIS_ERR_PEER_LOST, "");
}

/* Rank 1 ends at the first sign; the others make no call but the question. */
static void ask_who_is_lost(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);

    if (iris == NULL) {
        return;
    }
    report->value = iris_lost_rank(iris);
    proc_reach(report, 1);
    while (rank != 1 && iris_lost_rank(iris) < 0) {
        poll(NULL, 0, 1);
    }
    while (rank == 1) {
        pause();
    }
    proc_note(report, (iris_status_t)iris_lost_rank(iris));
    proc_finalize(report, iris);
}

static TEST(the_rank_that_was_lost_is_known_without_a_wait)
{
    struct procs procs;

    procs_start(&procs, RANKS, ask_who_is_lost, NULL);
    for (int rank = 0; rank < RANKS; rank++) {
        procs_await(&procs, rank, 1);
    }
    procs_kill(&procs, 1);
    procs_join(&procs);
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(procs.reports[rank].value, -1);
        if (rank != 1) {
            assert_int_equal((int)procs.reports[rank].status, 1);
            assert_int_equal(procs.reports[rank].finalize_status,
                             IRIS_ERR_PEER_LOST);
        }
    }
    procs_free(&procs);
    assert_int_equal(iris_lost_rank(NULL), -1);
    iris_interrupt(NULL);
}

#define SPINNING 1

/* The threads of an interpreter that wait for a peer's store, each in a loop of
 * its own. */
static void *spin(void *arg)
{
    while (iris_lost_rank(arg) < 0) {
    }
    return NULL;
}

static void spin_beside(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);
    pthread_t threads[2];

    if (iris == NULL) {
        return;
    }
    for (int i = 0; rank != 1 && i < 2; i++) {
        pthread_create(&threads[i], NULL, spin, iris);
    }
    proc_reach(report, SPINNING);
    while (rank == 1) {
        pause();
    }
    proc_note(report, iris_barrier(iris, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
    }
    report->value = iris_lost_rank(iris);
    proc_finalize(report, iris);
}

static TEST(threads_that_spin_learn_of_a_loss_while_another_waits)
{
    struct procs procs;

    procs_start(&procs, 2, spin_beside, NULL);
    procs_await(&procs, 0, SPINNING);
    procs_await(&procs, 1, SPINNING);
    procs_kill(&procs, 1);
    procs_join(&procs);
    assert_int_equal(procs.reports[0].status, IRIS_ERR_PEER_LOST);
    assert_int_equal(procs.reports[0].value, 1);
    procs_free(&procs);
}

TEST_GROUP(unit);
