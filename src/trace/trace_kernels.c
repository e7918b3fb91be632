/* SPDX-License-Identifier: MIT
 *
 * The object with the kernel that reads the device's clock.
 */
#include "trace/trace_kernels.h"

#include <iris/device.h>

/* A device without a clock of its own has nobody launch it. */
IRIS_KERNEL(iris_k_trace_clock, struct iris_trace_clock_args)
{
#if !IRIS_ON_CPU || IRIS_D_WATCHED
    if (wg.id == 0 && iris_wg_leader(wg)) {
        *args->place = (int64_t)iris_d_clock();
    }
#else
    (void)args;
#endif
}

const struct iris_kernel *iris_i_trace_clock_kernel(void)
{
    return iris_k_trace_clock;
}
