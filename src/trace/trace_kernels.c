/* SPDX-License-Identifier: MIT
 *
 * The library's object file with the kernel that reads the device's clock.
 */
#include "trace/kernels.h"

#include <iris/device.h>

/* Never launched on a device without a clock. */
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
