/* SPDX-License-Identifier: MIT
 *
 * Launching kernels.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_LAUNCH_H
#define IRIS_SRC_BACKEND_HIP_HIP_LAUNCH_H

#include "backend_hip/hip.h"

/* Loads all of the program's GPU code now: later, loading could wait for a
 * kernel. */
void iris_i_hip_load_images(struct hip_backend *hip);

IRIS_SLOT(iris_i_hip_launch, queue, launch);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_LAUNCH_H */
