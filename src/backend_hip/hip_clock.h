/* SPDX-License-Identifier: MIT
 *
 * The rate of the clock that kernels read.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_CLOCK_H
#define IRIS_SRC_BACKEND_HIP_HIP_CLOCK_H

#include "backend_hip/hip.h"

/* Makes info.clock_khz, once streams and kernels are there. */
void iris_i_hip_find_clock(struct hip_backend *hip);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_CLOCK_H */
