/* SPDX-License-Identifier: MIT
 *
 * Launching kernels.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_LAUNCH_H
#define IRIS_SRC_BACKEND_SIM_SIM_LAUNCH_H

#include "backend_sim/sim.h"

IRIS_SLOT(iris_i_sim_launch, queue, launch);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_LAUNCH_H */
