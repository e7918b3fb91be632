/* SPDX-License-Identifier: MIT
 *
 * The kernel that reads the device's clock. Compilers for GPUs read this
 * header, too.
 */
#ifndef IRIS_SRC_TRACE_TRACE_KERNELS_H
#define IRIS_SRC_TRACE_TRACE_KERNELS_H

#include <stdint.h>

#include <iris/launch.h>

struct iris_trace_clock_args {
    int64_t *place; /* on the heap: receives the clock */
};

/* Not for devices whose clock_khz is 0. */
const struct iris_kernel *iris_i_trace_clock_kernel(void);

#endif /* IRIS_SRC_TRACE_TRACE_KERNELS_H */
