/* SPDX-License-Identifier: MIT
 *
 * The CPU simulation backend: heaps in shared memory, streams and workgroups
 * on threads. What its files share.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_H
#define IRIS_SRC_BACKEND_SIM_SIM_H

#include <pthread.h>
#include <signal.h>
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

/* How long a thread that waits for another spins before it sleeps. */
struct sim_spin {
    unsigned turns;
    int64_t end_ns;
};

/* One turn of a spinning wait; false when it is time to sleep. Starts from a
 * zeroed *spin. */
bool iris_i_sim_spin(struct sim_spin *spin);

/* Between looks at work that a host waits for, and what a kernel gets to end
 * after a stop: waiting ones need one poll. */
#define SIM_TICK_NS 10000000
#define SIM_GRACE_NS 1000000000

/* Whether the stream has work that it has not done or skipped. */
static inline bool iris_i_sim_busy(struct sim_stream *stream)
{
    return atomic_load(&stream->completed) != atomic_load(&stream->submitted);
}

/* Starts a thread that takes no signals but those of its own faults, so that
 * the program's other handlers never run on it. IRIS_ERR_LIMIT */
iris_status_t iris_i_sim_thread_start(const struct iris_backend_params *params,
                                      void *(*entry)(void *), void *argument,
                                      pthread_t *thread_p);

/* Stops all work unless it has been stopped before: what `message` says keeps
 * the stream from going on. */
void iris_i_sim_stop(struct sim_stream *stream, iris_status_t status,
                     const char *message);

static inline bool iris_i_sim_stopped(const struct sim_stream *stream)
{
    return atomic_load_explicit(&stream->sim->stop.status,
                                memory_order_relaxed) != IRIS_OK;
}

/* sim_heap.c, sim_stream.c: slots of the tables. */
iris_status_t iris_i_sim_heap_alloc(struct iris_backend *backend, size_t bytes,
                                    struct iris_heap_region *region_p);
void iris_i_sim_heap_free(struct iris_backend *backend,
                          struct iris_heap_region *region);
iris_status_t iris_i_sim_commit(struct iris_backend *backend, void *at,
                                size_t bytes);
void iris_i_sim_decommit(struct iris_backend *backend, void *at, size_t bytes);
iris_status_t iris_i_sim_heap_export(struct iris_backend *backend,
                                     const struct iris_heap_region *region,
                                     struct iris_heap_handle *handle_p);
iris_status_t iris_i_sim_heap_import(struct iris_backend *backend,
                                     const struct iris_heap_handle *handle,
                                     size_t bytes, void **base_p);
void iris_i_sim_heap_unimport(struct iris_backend *backend, void *base,
                              size_t bytes);
iris_status_t iris_i_sim_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p);
void iris_i_sim_stream_destroy(struct iris_stream *stream);
iris_status_t iris_i_sim_synchronize(struct iris_stream *stream);
int iris_i_sim_query(struct iris_stream *stream, uint64_t *target_p);
iris_status_t iris_i_sim_copy(struct iris_stream *stream, void *dst,
                              const void *src, size_t bytes);
iris_status_t iris_i_sim_set(struct iris_stream *stream, void *dst, int value,
                             size_t bytes);
iris_status_t iris_i_sim_launch(struct iris_stream *stream,
                                const struct iris_launch *launch);

/* sim_fault.c: what workgroups ask of their stream. */
extern const struct iris_cpu_job_ops iris_i_sim_job_ops;

/* Notes workgroups of a grid that do not start because of the stop. */
void iris_i_sim_note_unstarted(struct sim_stream *stream, uint32_t count,
                               uint32_t grid);

/* IRIS_OK, or the instance's fault: makes it one if work was stopped, after the
 * stream where that began has ended. */
iris_status_t iris_i_sim_fault(struct sim_backend *sim);

/* Slot of the table. */
iris_status_t iris_i_sim_clear_fault(struct iris_backend *backend);

/* sim_signal.c. Around the life of each stream: while there is one, a fault in
 * a kernel writes a line to stderr. */
void iris_i_sim_signals_acquire(void);
void iris_i_sim_signals_release(void);

/* Takes the signals of faults out of a set of those to block: a fault whose
 * signal is blocked ends the process without the program's handler. */
void iris_i_sim_signals_unblock(sigset_t *set);

/* Memory for handlers to run in, which the calling thread has until it ends: a
 * kernel may have used up its stack. */
#define SIM_SIGNAL_STACK_BYTES 65536
void iris_i_sim_signals_stack(void *stack, size_t bytes);

/* sim_launch.c. Open and close are for the thread that makes the stream and
 * for its worker; close joins the helpers. */
void iris_i_sim_team_open(struct sim_team *team);
void iris_i_sim_team_close(struct sim_team *team);

/* sim_stream.c. Enqueues a run of the job, whose arguments are copied.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_sim_enqueue_job(struct sim_stream *stream,
                                     const struct iris_cpu_job *job);

/* Runs a job on the worker and its helpers; returns when every workgroup has
 * ended. IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY: nothing was run. */
iris_status_t iris_i_sim_run(struct sim_stream *stream,
                             struct iris_cpu_job *job);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_H */
