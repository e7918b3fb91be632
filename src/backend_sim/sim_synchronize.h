/* SPDX-License-Identifier: MIT
 *
 * The host's wait for a stream, which ends kernels that would wait for ever.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_SYNCHRONIZE_H
#define IRIS_SRC_BACKEND_SIM_SIM_SYNCHRONIZE_H

#include "backend_sim/sim.h"

/* Waits for all that was enqueued before. False if work was stopped and what
 * runs does not end. */
bool iris_i_sim_wait_all(struct sim_stream *stream);

IRIS_SLOT(iris_i_sim_synchronize, queue, synchronize);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_SYNCHRONIZE_H */
