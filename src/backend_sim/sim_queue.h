/* SPDX-License-Identifier: MIT
 *
 * A stream's commands and its worker, which takes them in order. It knows
 * nothing of deadlines and peers.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_QUEUE_H
#define IRIS_SRC_BACKEND_SIM_SIM_QUEUE_H

#include "backend_sim/sim.h"

/* Starts the worker of a zeroed stream, whose `sim` is set, and ends it. Unless
 * `finished` what it runs does not end: it frees the stream if it ever does.
 * IRIS_ERR_LIMIT: the stream has been freed. */
iris_status_t iris_i_sim_queue_open(struct sim_stream *stream);
void iris_i_sim_queue_close(struct sim_stream *stream, bool finished);

/* Enqueues a run of the job, whose arguments are copied. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_sim_enqueue_job(struct sim_stream *stream,
                                     const struct iris_cpu_job *job);

/* Runs on the calling thread, which waits for `target` commands, those of them
 * that it may and that nobody has begun: there is no thread to wake. */
void iris_i_sim_run_here(struct sim_stream *stream, uint64_t target);

/* Sleeps until `target` commands are completed, for so long at most. */
void iris_i_sim_sleep(struct sim_stream *stream, uint64_t target, int64_t ns);

IRIS_SLOT(iris_i_sim_copy, queue, copy);
IRIS_SLOT(iris_i_sim_copy_rows, queue, copy_rows);
IRIS_SLOT(iris_i_sim_set, queue, set);
IRIS_SLOT(iris_i_sim_follow, queue, follow);
IRIS_SLOT(iris_i_sim_query, queue, query);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_QUEUE_H */
