/* SPDX-License-Identifier: MIT
 *
 * Workgroups of kernels on CPU threads, for backends that run them there: which
 * one a thread runs, when its waits end, who watches it.
 */
#ifndef IRIS_SRC_BACKEND_WORKGROUP_H
#define IRIS_SRC_BACKEND_WORKGROUP_H

#include <iris/device/layout.h>

#include "backend/backend.h"
#include "base/hooks.h"

/* Why a workgroup stops all work. */
enum iris_cpu_stop {
    IRIS_CPU_STOP_ASKED,   /* it waits, and the core said not to go on */
    IRIS_CPU_STOP_EXPIRED, /* its wait has taken too long */
    IRIS_CPU_STOP_REFUSED, /* it did what it may not; it does not wait */
};

/* What a workgroup asks of its backend, from its own thread. */
struct iris_cpu_job_ops {
    /* All work is to stop, for `status` with this thread's message, unless it
     * has been stopped before. */
    void (*stop)(void *stream, iris_status_t status, enum iris_cpu_stop why,
                 const struct iris_cpu_wg *cpu);

    /* This workgroup ends now, because work was stopped. */
    void (*ended)(void *stream, const struct iris_cpu_wg *cpu);

    /* How many workgroups of the grid have begun, and are done; 0: not known
     * any more. */
    void (*progress)(void *stream, const struct iris_cpu_wg *cpu, uint32_t grid,
                     uint32_t *begun_p, uint32_t *done_p);
};

/* One run of a kernel, as its workgroups see it. */
struct iris_cpu_job {
    const struct iris_cpu_job_ops *ops;
    void *stream; /* first argument of the ops */
    const struct iris_backend_params *params;
    const _Atomic int *stopped;   /* not IRIS_OK: workgroups that wait end */
    struct iris_heap_region heap; /* this rank's */
    const struct iris_kernel *kernel; /* that has a cpu_entry */
    uint32_t grid;
    uint32_t block;
    const void *args;
    uint64_t call;  /* of the launch: id of the host's event; 0: none */
    uint64_t event; /* the same of this run */
    bool own;       /* all its waits are the library's */
    /* When its waits end with IRIS_ERR_TIMEOUT, since whoever waits for the
     * stream runs it and so cannot say when it is time; 0: never. */
    int64_t deadline_ns;
};

/* Around a run, from any thread: calls observers. *event is the caller's to
 * keep in between; `status` is what the run returned. */
void iris_i_cpu_job_begin(struct iris_cpu_job *job,
                          struct iris_host_event *event);
void iris_i_cpu_job_end(const struct iris_cpu_job *job,
                        struct iris_host_event *event, iris_status_t status);

/* IRIS_ERR_TIMEOUT of a stream that is waited for, with its message. */
iris_status_t iris_i_cpu_late(const struct iris_backend_params *params);

/* Runs one workgroup on the calling thread, until it returns or is ended.
 * Frames of an ended kernel are dropped as they are. */
void iris_i_cpu_job_run(const struct iris_cpu_job *job, uint32_t id);

/* The calling thread's workgroup and its rank's parameters; NULL: it runs none.
 * Allowed in signal handlers. */
const struct iris_cpu_wg *
iris_i_cpu_running(const struct iris_backend_params **params_p);

/* Ends the calling thread's kernel, whose members differ; as iris_cpu_end().
 * Kernels of collectives call it (device/kernels/ccl_space.h). */
void iris_i_cpu_mismatch(struct iris_cpu_wg *cpu,
                         const struct iris_dev_mismatch *mismatch);

#endif /* IRIS_SRC_BACKEND_WORKGROUP_H */
