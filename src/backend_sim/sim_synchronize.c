/* SPDX-License-Identifier: MIT
 *
 * The host's wait for a stream, which ends kernels that would wait for ever.
 */
#include "config.h"

#include "backend_sim/sim_synchronize.h"

#include "backend_sim/sim_fault.h"
#include "backend_sim/sim_queue.h"
#include "backend_sim/sim_thread.h"

#include "base/clock.h"

#define NS_PER_MS 1000000

/* Stops all work if the core or the deadline says so. */
static void ask_whether_to_stop(struct sim_stream *stream, int64_t waited_ns)
{
    const struct iris_backend_params *params = &stream->sim->params;
    iris_status_t status = params->core_ops->keep_waiting(params->core);

    if (status == IRIS_OK && params->timeout_ms > 0 &&
        waited_ns / NS_PER_MS >= params->timeout_ms) {
        status = iris_i_cpu_late(params);
    }
    if (status != IRIS_OK) {
        iris_i_sim_stop(stream, status, iris_last_error());
    }
}

bool iris_i_sim_wait_all(struct sim_stream *stream)
{
    uint64_t target = atomic_load(&stream->submitted);
    struct sim_spin spin = {0};
    int64_t start_ns;
    int64_t stop_ns = 0;

    iris_i_sim_run_here(stream, target);
    while (atomic_load(&stream->completed) < target) {
        if (!iris_i_sim_spin(&spin)) {
            break;
        }
    }
    start_ns = iris_i_now_ns();
    while (atomic_load(&stream->completed) < target) {
        int64_t now;

        iris_i_sim_sleep(stream, target, SIM_TICK_NS);
        now = iris_i_now_ns();
        if (!iris_i_sim_stopped(stream)) {
            ask_whether_to_stop(stream, now - start_ns);
        } else if (stop_ns == 0) {
            stop_ns = now;
        } else if (now - stop_ns > SIM_GRACE_NS) {
            return false;
        }
    }
    return true;
}

iris_status_t iris_i_sim_synchronize(struct iris_stream *base)
{
    struct sim_stream *stream = (struct sim_stream *)base;

    (void)iris_i_sim_wait_all(stream);
    return iris_i_sim_fault(stream->sim);
}
