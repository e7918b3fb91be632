/* SPDX-License-Identifier: MIT
 *
 * Workgroups of kernels on CPU threads, for backends that run them there: the
 * workgroup of a thread, the end of its waits, and its observers.
 */
#ifndef IRIS_SRC_BACKEND_WORKGROUP_H
#define IRIS_SRC_BACKEND_WORKGROUP_H

#include <iris/device/layout.h>

#include "backend/backend.h"
#include "base/hooks.h"

/* The reason why a workgroup stops all work. */
enum iris_cpu_stop {
    IRIS_CPU_STOP_ASKED,   /* it waits, and the core ended the wait */
    IRIS_CPU_STOP_EXPIRED, /* its wait has taken too long */
    IRIS_CPU_STOP_REFUSED, /* it made an access that is not allowed; it does
                            * not wait */
};

/* Calls of a workgroup to its backend, on its own thread. */
struct iris_cpu_job_ops {
    /* Stops all work, with `status` and this thread's message, unless it was
     * stopped before. */
    void (*stop)(void *stream, iris_status_t status, enum iris_cpu_stop why,
                 const struct iris_cpu_wg *cpu);

    /* This workgroup ends now, because work was stopped. */
    void (*ended)(void *stream, const struct iris_cpu_wg *cpu);

    /* Numbers of workgroups of the grid that have begun and that are done; 0:
     * no longer known. */
    void (*progress)(void *stream, const struct iris_cpu_wg *cpu, uint32_t grid,
                     uint32_t *begun_p, uint32_t *done_p);
};

/* One run of a kernel, for its workgroups. */
struct iris_cpu_job {
    const struct iris_cpu_job_ops *ops;
    void *stream; /* first argument of the ops */
    const struct iris_backend_params *params;
    const _Atomic int *stopped;       /* not IRIS_OK: workgroups that wait have
                                   * to end */
    struct iris_heap_region heap;     /* this rank's */
    const struct iris_kernel *kernel; /* a kernel with a cpu_entry */
    uint32_t grid;
    uint32_t block;
    const void *args;
    uint64_t call;  /* id of the host's event for the launch; 0: no event */
    uint64_t event; /* id of the host's event for this run */
    bool own;       /* all its waits are the library's */
    /* The time at which its waits end with IRIS_ERR_TIMEOUT. It is set if the
     * thread that waits for the stream also runs it, and so cannot watch the
     * deadline; 0: never. */
    int64_t deadline_ns;
};

/* Calls observers around a run, from any thread. The caller keeps *event in
 * between. `status` is the run's result. */
void iris_i_cpu_job_begin(struct iris_cpu_job *job,
                          struct iris_host_event *event);
void iris_i_cpu_job_end(const struct iris_cpu_job *job,
                        struct iris_host_event *event, iris_status_t status);

/* IRIS_ERR_TIMEOUT of a wait for a stream, with its message. */
iris_status_t iris_i_cpu_late(const struct iris_backend_params *params);

/* Runs one workgroup on the calling thread, until it returns or is ended. The
 * stack frames of an ended kernel are dropped without cleanup. */
void iris_i_cpu_job_run(const struct iris_cpu_job *job, uint32_t id);

/* The calling thread's workgroup and its rank's parameters; NULL: it runs none.
 * Allowed in signal handlers. */
const struct iris_cpu_wg *
iris_i_cpu_running(const struct iris_backend_params **params_p);

#endif /* IRIS_SRC_BACKEND_WORKGROUP_H */
