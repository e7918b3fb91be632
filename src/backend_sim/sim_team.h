/* SPDX-License-Identifier: MIT
 *
 * A launch's workgroups on a stream's threads.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_TEAM_H
#define IRIS_SRC_BACKEND_SIM_SIM_TEAM_H

#include "backend_sim/sim.h"

/* Only the thread that makes the stream and its worker open and close; close
 * joins the helpers. */
void iris_i_sim_team_open(struct sim_team *team);
void iris_i_sim_team_close(struct sim_team *team);

/* Runs a job on the worker and its helpers; returns when every workgroup has
 * ended. IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY: nothing was run. */
iris_status_t iris_i_sim_run(struct sim_stream *stream,
                             struct iris_cpu_job *job);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_TEAM_H */
