/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/trace: kernels and their launches, in C and in
 * C++ for GPUs.
 */
#ifndef IRIS_SRC_TRACE_KERNELS_H
#define IRIS_SRC_TRACE_KERNELS_H

#include <iris/launch.h>

#include <stdint.h>

/* ---- trace_kernels.c ---- */

struct iris_trace_clock_args {
    int64_t *place; /* on the heap: receives the clock */
};

/* Not for devices whose clock_khz is 0. */
const struct iris_kernel *iris_i_trace_clock_kernel(void);

#endif /* IRIS_SRC_TRACE_KERNELS_H */
