/* SPDX-License-Identifier: MIT
 *
 * Launching kernels.
 */
#include "config.h"

#include "backend_sim/internal.h"

iris_status_t iris_i_sim_launch(struct iris_stream *base,
                                const struct iris_launch *launch)
{
    struct sim_stream *stream = (struct sim_stream *)base;
    const struct iris_cpu_job job = {
        .ops = &iris_i_sim_job_ops,
        .stream = stream,
        .params = &stream->sim->params,
        .stopped = &stream->sim->stop.status,
        .heap = stream->sim->heap,
        .kernel = launch->kernel,
        .grid = launch->grid,
        .block = launch->block,
        .args = launch->args,
        .own = launch->own,
        .call = launch->call,
    };

    return launch->kernel->cpu_entry != NULL
               ? iris_i_sim_enqueue_job(stream, &job)
               : iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                             "kernel %s has no CPU version in this program; "
                             "compile its IRIS_KERNEL for the CPU too",
                             launch->kernel->name);
}
