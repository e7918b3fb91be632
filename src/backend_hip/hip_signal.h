/* SPDX-License-Identifier: MIT
 *
 * Signals and waits that streams do without a kernel.
 */
#ifndef IRIS_SRC_BACKEND_HIP_HIP_SIGNAL_H
#define IRIS_SRC_BACKEND_HIP_HIP_SIGNAL_H

#include "backend_hip/hip.h"

IRIS_SLOT(iris_i_hip_signal, queue, signal);
IRIS_SLOT(iris_i_hip_wait, queue, wait);

#endif /* IRIS_SRC_BACKEND_HIP_HIP_SIGNAL_H */
