/* SPDX-License-Identifier: MIT
 *
 * The object with the kernel that reads the device's clock.
 */
#include "trace/kernels.h"

#include <iris/device.h>

struct clock_args {
    int64_t *place;
};

/* A device without a clock of its own has nobody launch it. */
IRIS_KERNEL(iris_trace_clock, struct clock_args)
{
#if IRIS_D_WATCHED
    if (wg.id == 0 && iris_wg_leader(wg)) {
        *args->place = (int64_t)iris_d_clock();
    }
#else
    (void)args;
#endif
}

iris_status_t iris_i_trace_launch_clock(struct iris_queue *queue,
                                        int64_t *place)
{
    const struct clock_args args = {place};
    const struct iris_launch launch = {.kernel = iris_trace_clock,
                                       .grid = 1,
                                       .block = 1,
                                       .args = &args,
                                       .own = true};

    return iris_i_queue_launch(queue->streams, &launch);
}
