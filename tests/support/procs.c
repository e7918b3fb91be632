/* SPDX-License-Identifier: MIT
 *
 * Starting, killing and reaping rank processes.
 */
#include "config.h"

#include "support/procs.h"

#include "support/leaks.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int64_t procs_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void set_number(const char *name, long number)
{
    char text[32];

    snprintf(text, sizeof text, "%ld", number);
    setenv(name, text, 1);
}

static void __attribute__((noreturn))
child_main(const struct procs *procs, int rank, proc_body body, void *arg)
{
    struct proc_report *report = &procs->reports[rank];
    struct leaks before;
    char job[64];

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    set_number("IRIS_RANK", rank);
    set_number("IRIS_NUM_RANKS", procs->num_ranks);
    /* The parent's reports are where no other job's are. */
    snprintf(job, sizeof job, "test-%ld-%p", (long)getppid(),
             (void *)procs->reports);
    setenv("IRIS_JOB_ID", job, 1);
    leaks_note(&before);
    body(rank, report, arg);
    report->leaked = leaks_found(&before);
    report->ended = 1;
    fflush(NULL);
    exit(0);
}

void procs_start(struct procs *procs, int num_ranks, proc_body body, void *arg)
{
    memset(procs, 0, sizeof *procs);
    procs->num_ranks = num_ranks;
    procs->reports =
        mmap(NULL, PROCS_MAX * sizeof *procs->reports, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(procs->reports, MAP_FAILED);
    fflush(NULL);
    for (int rank = 0; rank < num_ranks; rank++) {
        procs->pids[rank] = fork();
        assert_true(procs->pids[rank] >= 0);
        if (procs->pids[rank] == 0) {
            child_main(procs, rank, body, arg);
        }
    }
}

void proc_note(struct proc_report *report, iris_status_t status)
{
    report->end_ns = procs_now_ns();
    report->status = status;
    snprintf(report->message, sizeof report->message, "%s", iris_last_error());
}

void proc_reach(struct proc_report *report, int stage)
{
    __atomic_store_n(&report->stage, stage, __ATOMIC_SEQ_CST);
}

iris_t *proc_init(struct proc_report *report)
{
    iris_t *iris = NULL;

    proc_note(report, iris_init(NULL, &iris));
    return iris;
}

void proc_finalize(struct proc_report *report, iris_t *iris)
{
    report->finalize_status = iris_finalize(iris);
    report->finalized_ns = procs_now_ns();
}

static int has_ended(pid_t pid)
{
    siginfo_t info = {0};

    return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
           info.si_pid != 0;
}

void procs_await(const struct procs *procs, int rank, int stage)
{
    while (__atomic_load_n(&procs->reports[rank].stage, __ATOMIC_SEQ_CST) <
               stage &&
           !has_ended(procs->pids[rank])) {
        poll(NULL, 0, 1);
    }
}

static int reap(struct procs *procs, int rank)
{
    int how = -1;

    while (waitpid(procs->pids[rank], &how, 0) < 0 && errno == EINTR) {
    }
    procs->pids[rank] = 0;
    return how;
}

int64_t procs_kill(struct procs *procs, int rank)
{
    kill(procs->pids[rank], SIGKILL);
    reap(procs, rank);
    return procs_now_ns();
}

void procs_join(struct procs *procs)
{
    for (int rank = 0; rank < procs->num_ranks; rank++) {
        const struct proc_report *report = &procs->reports[rank];
        int how;

        if (procs->pids[rank] == 0) {
            continue;
        }
        how = reap(procs, rank);
        if (how != 0 || report->leaked) {
            print_error("rank %d: wait status %d, leaked %d, %s: %s\n", rank,
                        how, report->leaked, iris_status_string(report->status),
                        report->message);
        }
        assert_int_equal(how, 0);
        assert_int_equal(report->leaked, 0);
    }
    assert_int_equal(leaks_found_files(), 0);
}

void procs_free(struct procs *procs)
{
    munmap(procs->reports, PROCS_MAX * sizeof *procs->reports);
}
