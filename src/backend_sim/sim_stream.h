/* SPDX-License-Identifier: MIT
 *
 * Streams: created and destroyed.
 */
#ifndef IRIS_SRC_BACKEND_SIM_SIM_STREAM_H
#define IRIS_SRC_BACKEND_SIM_SIM_STREAM_H

#include "backend_sim/sim.h"

IRIS_SLOT(iris_i_sim_stream_create, device, stream_create);
IRIS_SLOT(iris_i_sim_stream_destroy, device, stream_destroy);

#endif /* IRIS_SRC_BACKEND_SIM_SIM_STREAM_H */
