/* SPDX-License-Identifier: MIT
 *
 * A stream's commands and its worker, which runs them in order. It does not
 * know deadlines and peers.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_QUEUE_H
#define IRIS_SRC_BACKEND_SIM_SIM_QUEUE_H

#include "backend_sim/sim.h"

/* Starts the worker of a zeroed stream whose `sim` is set; ends it. If
 * `finished` is false, its current command does not end: the worker frees the
 * stream if that ever ends. IRIS_ERR_LIMIT: the stream has been freed. */
iris_status_t iris_i_sim_queue_open(struct sim_stream *stream);
void iris_i_sim_queue_close(struct sim_stream *stream, bool finished);

/* Enqueues a run of the job and copies its arguments. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_sim_enqueue_job(struct sim_stream *stream,
                                     const struct iris_cpu_job *job);

/* Runs commands up to `target` on the calling thread, if it may run them and
 * they have not begun. This wakes no thread. */
void iris_i_sim_run_here(struct sim_stream *stream, uint64_t target);

/* Sleeps until `target` commands are complete, at most for this time. */
void iris_i_sim_sleep(struct sim_stream *stream, uint64_t target, int64_t ns);

IRIS_SLOT(iris_i_sim_copy, queue, copy);
IRIS_SLOT(iris_i_sim_copy_rows, queue, copy_rows);
IRIS_SLOT(iris_i_sim_set, queue, set);
IRIS_SLOT(iris_i_sim_follow, queue, follow);
IRIS_SLOT(iris_i_sim_query, queue, query);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_QUEUE_H */
