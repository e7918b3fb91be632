/* SPDX-License-Identifier: MIT
 *
 * The host's wait for a stream. It ends kernels that would wait forever.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_SYNCHRONIZE_H
#define IRIS_SRC_BACKEND_SIM_SIM_SYNCHRONIZE_H

#include "backend_sim/sim.h"

/* Waits for all earlier work. False if work was stopped and the running command
 * does not end. */
bool iris_i_sim_wait_all(struct sim_stream *stream);

IRIS_SLOT(iris_i_sim_synchronize, queue, synchronize);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_SYNCHRONIZE_H */
