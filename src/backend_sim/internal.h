/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/backend_sim: devices simulated on the CPU.
 */
#ifndef IRIS_SRC_BACKEND_SIM_INTERNAL_H
#define IRIS_SRC_BACKEND_SIM_INTERNAL_H

#include "backend/backend.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- Sim ---- */

/* The CPU simulation backend: heaps in shared memory, streams and workgroups on
 * threads. This header has the types that its files share. */

struct sim_import;

/* The error that stopped work, until the fault is cleared. While `status` is
 * not IRIS_OK, waiting workgroups of all streams end and commands are skipped.
 * A synchronize makes it the instance's fault, after the stream of its origin
 * has ended: only then is everything known for its message. */
struct sim_stop {
    _Atomic int status;        /* iris_status_t; written under the lock */
    struct sim_stream *origin; /* the stream of its origin; NULL: that stream
                                * is gone */
    char message[IRIS_MESSAGE_BYTES];
    struct iris_cpu_wg ended; /* of the origin: the lowest ended workgroup */
    unsigned num_ended; /* workgroups of the origin's kernel that were ended, */
    uint32_t num_unstarted; /* and of workgroups that did not start */
    uint32_t grid;          /* number of workgroups in the grid */
    bool refused;           /* an access that is not allowed, not a wait */
    bool expired;           /* a wait's deadline: `ended` is that wait */
};

struct sim_backend {
    struct iris_backend base;
    struct iris_backend_params params;
    struct iris_heap_region heap; /* this rank's heap, for checks */
    struct sim_import *imports;   /* live results of heap_import(), in no
                                   * order */
    bool abandoned; /* a kernel that could not be ended still uses the heaps
                     * and this struct */
    pthread_mutex_t lock; /* guards the stop and the list of streams; taken
                           * before a stream's lock */
    struct sim_stop stop;
    struct sim_stream *streams IRIS_GUARDED_BY(lock); /* live ones */
};

/* The threads that run a stream's workgroups beside its worker. The worker
 * publishes a job by storing `remaining`. A thread that decrements it owns the
 * workgroup grid - remaining, and may read `job` until it has counted that
 * workgroup in `done`. No thread reads `job` at other times. So a helper that
 * wakes late finds no job or a newer one, and either is correct. There are
 * never more threads than compute units, hence never more workgroups at
 * once. */
struct sim_team {
    pthread_mutex_t lock;
    pthread_cond_t start; /* remaining became positive, or quit */
    pthread_cond_t end;   /* done reached the grid */
    pthread_t *helpers;
    uint32_t num_helpers;
    uint32_t sleepers IRIS_GUARDED_BY(lock);
    bool worker_sleeps IRIS_GUARDED_BY(lock);
    atomic_bool quit;
    const struct iris_cpu_job *job;
    _Atomic uint32_t remaining;
    _Atomic uint32_t done;
};

struct sim_command;

/* A stream: a worker thread and the commands that it takes in order. */
struct sim_stream {
    struct iris_stream base;
    struct sim_backend *sim;
    struct sim_stream *next; /* under the backend's lock */
    pthread_t worker;
    pthread_mutex_t lock;
    pthread_cond_t work; /* signals a new command, or quit */
    pthread_cond_t done; /* signals that wake_at commands are complete */
    /* The oldest command that was not begun. */
    struct sim_command *head IRIS_GUARDED_BY(lock);
    struct sim_command *tail IRIS_GUARDED_BY(lock);
    struct sim_command *
        spares IRIS_GUARDED_BY(lock); /* for the next commands */
    unsigned num_spares IRIS_GUARDED_BY(lock);
    bool begun IRIS_GUARDED_BY(lock); /* a command is being executed */
    /* It sleeps until it is woken; it sleeps briefly, and leaves commands to the
     * host. */
    bool worker_sleeps IRIS_GUARDED_BY(lock);
    bool worker_naps IRIS_GUARDED_BY(lock);
    int64_t enqueued_ns IRIS_GUARDED_BY(lock); /* time of the last enqueue */
    /* The smallest number of completed commands that a waiter needs. */
    uint64_t wake_at IRIS_GUARDED_BY(lock);
    /* Name of the kernel that the worker runs; NULL: no kernel. */
    const char *running IRIS_GUARDED_BY(lock);
    bool abandoned; /* set before `quit`: the worker frees the stream */
    atomic_bool quit;
    _Atomic unsigned prompt;    /* number of consecutive synchronizes right
                              * after a command */
    _Atomic uint64_t submitted; /* number of commands; written under the lock */
    _Atomic uint64_t completed; /* number of commands; written under the lock */
    struct sim_team team;
};

/* ---- fault.c ---- */

/* Stops all work unless it was stopped before. `message` says why the stream
 * cannot go on. */
void iris_i_sim_stop(struct sim_stream *stream, iris_status_t status,
                     const char *message);

static inline bool iris_i_sim_stopped(const struct sim_stream *stream)
{
    return atomic_load_explicit(&stream->sim->stop.status,
                                memory_order_relaxed) != IRIS_OK;
}

/* The functions that workgroups call on their stream. */
extern const struct iris_cpu_job_ops iris_i_sim_job_ops;

/* Notes workgroups of a grid that do not start because of the stop. */
void iris_i_sim_note_unstarted(struct sim_stream *stream, uint32_t count,
                               uint32_t grid);

/* IRIS_OK, or the instance's fault. If work was stopped, makes that the fault,
 * after the stream of its origin has ended. */
iris_status_t iris_i_sim_fault(struct sim_backend *sim);

IRIS_SLOT(iris_i_sim_clear_fault, device, clear_fault);

/* Called around the life of each stream. While there is a stream, a fault in a
 * kernel writes a line to stderr. */
void iris_i_sim_signals_acquire(void);
void iris_i_sim_signals_release(void);

/* Size of a stack for handlers, which the calling thread has until it ends: a
 * kernel may have used up its own stack. */
#define SIM_SIGNAL_STACK_BYTES 65536
void iris_i_sim_signals_stack(void *stack, size_t bytes);

/* ---- heap.c ---- */

extern const struct iris_memory_ops iris_i_sim_heap_ops;

/* ---- stream.c ---- */

IRIS_SLOT(iris_i_sim_stream_create, device, stream_create);
IRIS_SLOT(iris_i_sim_stream_destroy, device, stream_destroy);

extern const struct iris_queue_ops iris_i_sim_queue_ops;

#endif /* IRIS_SRC_BACKEND_SIM_INTERNAL_H */
