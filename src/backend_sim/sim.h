/* SPDX-License-Identifier: MIT
 *
 * The CPU simulation backend: heaps in shared memory, streams and workgroups
 * on threads. The types that its files share.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_H
#define IRIS_SRC_BACKEND_SIM_SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backend/workgroup.h"

struct sim_import;

/* What ended work, until the fault is cleared. While `status` is not IRIS_OK,
 * waiting workgroups of all streams end and commands are skipped. A synchronize
 * makes it the instance's fault, once the stream that it began in has ended:
 * only then all is known that its message says. */
struct sim_stop {
    _Atomic int status;        /* iris_status_t; written under the lock */
    struct sim_stream *origin; /* where it began; NULL: that stream is gone */
    char message[IRIS_MESSAGE_BYTES];
    struct iris_cpu_wg
        ended;              /* of the origin: lowest workgroup that it ended */
    unsigned num_ended;     /* of the origin's kernel */
    uint32_t num_unstarted; /* and those that it kept from starting, */
    uint32_t grid;          /* of so many */
    bool refused;           /* a kernel did what it may not: it did not wait */
    bool expired; /* it comes from a wait's deadline: `ended` is that one */
};

struct sim_backend {
    struct iris_backend base;
    struct iris_backend_params params;
    struct iris_heap_region heap; /* this rank's, for checks */
    struct sim_import *imports;   /* live heap_import()s, in no order */
    bool abandoned; /* a kernel that could not be ended still uses the heaps,
                     * and this */
    pthread_mutex_t lock; /* guards the stop and the list of streams; taken
                           * before a stream's */
    struct sim_stop stop;
    struct sim_stream *streams; /* live ones */
};

/* The threads that run a stream's workgroups beside its worker. The worker
 * publishes a job by storing `remaining`; whoever takes one off it owns the
 * workgroup grid - remaining, and may read `job` until it has counted that
 * workgroup in `done`. Nobody looks at `job` otherwise, so a helper that wakes
 * late finds nothing or a newer job, and either is fine. There are never more
 * threads than compute units, hence never more workgroups at once. */
struct sim_team {
    pthread_mutex_t lock; /* guards sleepers, worker_sleeps */
    pthread_cond_t start; /* remaining became positive, or quit */
    pthread_cond_t end;   /* done reached the grid */
    pthread_t *helpers;
    uint32_t num_helpers;
    uint32_t sleepers;
    bool worker_sleeps;
    atomic_bool quit;
    const struct iris_cpu_job *job;
    _Atomic uint32_t remaining;
    _Atomic uint32_t done;
};

struct sim_command;

/* A stream: a worker thread and the commands it takes in order. */
struct sim_stream {
    struct iris_stream base;
    struct sim_backend *sim;
    struct sim_stream *next; /* under the backend's lock */
    pthread_t worker;
    pthread_mutex_t lock; /* guards all down to abandoned; not the atomics */
    pthread_cond_t work;  /* a command came, or quit */
    pthread_cond_t done;  /* wake_at commands were completed */
    struct sim_command *head; /* of those that nobody has begun */
    struct sim_command *tail;
    bool begun;          /* a command is being executed */
    bool worker_sleeps;  /* until it is woken */
    bool worker_naps;    /* for a moment: it leaves commands to the host */
    int64_t enqueued_ns; /* when the last command came */
    uint64_t wake_at;    /* fewest completed commands that a waiter waits for */
    const char *running; /* name of what the worker runs; NULL: nothing */
    bool abandoned;      /* by stream_destroy(): the worker frees the stream */
    atomic_bool quit;
    _Atomic unsigned prompt; /* synchronizes in a row right behind a command */
    _Atomic uint64_t submitted; /* commands; written under the lock */
    _Atomic uint64_t completed; /* commands; written under the lock */
    struct sim_team team;
};

#endif /* IRIS_SRC_BACKEND_SIM_SIM_H */
