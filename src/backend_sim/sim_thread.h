/* SPDX-License-Identifier: MIT
 *
 * The threads of a stream: their start, and their spinning.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_THREAD_H
#define IRIS_SRC_BACKEND_SIM_SIM_THREAD_H

#include "backend_sim/sim.h"

/* The spinning of a thread that waits for another, before it sleeps. */
struct sim_spin {
    unsigned turns;
    int64_t end_ns;
};

/* One turn of a spinning wait. False: it is time to sleep. *spin is zeroed
 * first. */
bool iris_i_sim_spin(struct sim_spin *spin);

/* Starts a thread that receives no signals except those of its own faults, so
 * that the program's other handlers never run on it. IRIS_ERR_LIMIT */
iris_status_t iris_i_sim_thread_start(const struct iris_backend_params *params,
                                      void *(*entry)(void *), void *argument,
                                      pthread_t *thread_p);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_THREAD_H */
