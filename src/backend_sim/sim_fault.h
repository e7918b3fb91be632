/* SPDX-License-Identifier: MIT
 *
 * Stops work, and makes the error the instance's fault.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_FAULT_H
#define IRIS_SRC_BACKEND_SIM_SIM_FAULT_H

#include "backend_sim/sim.h"

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

#endif /* IRIS_SRC_BACKEND_SIM_SIM_FAULT_H */
