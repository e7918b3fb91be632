/* SPDX-License-Identifier: MIT
 *
 * Rank processes that may be killed: forked by the test, meeting by
 * environment, reporting through shared memory.
 */
#ifndef IRIS_TESTS_PROCS_H
#define IRIS_TESTS_PROCS_H

#include "support/harness.h"

#include <sys/types.h>

#define PROCS_MAX 8
#define PROCS_MESSAGE 1024

/* What one rank process has to say. Its body fills it in. */
struct proc_report {
    int stage; /* how far it has come, in the body's own terms */
    iris_status_t status;
    char message[PROCS_MESSAGE];
    int64_t end_ns; /* when `status` was known */
    iris_status_t finalize_status;
    int64_t finalized_ns; /* when that was known */
    int leaked;           /* it ended holding more than it began with */
    int ended;            /* the body returned */
    int64_t value;        /* whatever the body likes */
};

struct procs {
    int num_ranks;
    pid_t pids[PROCS_MAX]; /* 0: reaped */
    struct proc_report *reports;
};

typedef void (*proc_body)(int rank, struct proc_report *report, void *arg);

/* Starts num_ranks processes with IRIS_RANK, IRIS_NUM_RANKS and a job id of
 * their own. */
void procs_start(struct procs *procs, int num_ranks, proc_body body, void *arg);

/* In a body: sets the report's status, message and time. */
void proc_note(struct proc_report *report, iris_status_t status);
void proc_reach(struct proc_report *report, int stage);

/* iris_init(), noted; NULL if it failed. iris_finalize(), noted. */
iris_t *proc_init(struct proc_report *report);
void proc_finalize(struct proc_report *report, iris_t *iris);

/* Waits until the rank is at `stage` or has ended. */
void procs_await(const struct procs *procs, int rank, int stage);

/* Kills with SIGKILL, reaps, and returns the time of death. */
int64_t procs_kill(struct procs *procs, int rank);

/* Waits for all that live; they must exit with 0, having held on to nothing.
 * procs_free() then gives back the reports. */
void procs_join(struct procs *procs);
void procs_free(struct procs *procs);

int64_t procs_now_ns(void);

#endif /* IRIS_TESTS_PROCS_H */
