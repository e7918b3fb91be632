/* SPDX-License-Identifier: MIT
 *
 * Simulated heaps.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_HEAP_H
#define IRIS_SRC_BACKEND_SIM_SIM_HEAP_H

#include "backend_sim/sim.h"

extern const struct iris_memory_ops iris_i_sim_heap_ops;

#endif /* IRIS_SRC_BACKEND_SIM_SIM_HEAP_H */
