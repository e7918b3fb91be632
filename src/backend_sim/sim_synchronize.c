/* SPDX-License-Identifier: MIT
 *
 * The host's wait for a stream. It ends kernels that would wait forever.
 */
#include "config.h"

#include "backend_sim/internal.h"

/* Time that a kernel has to end after a stop. A waiting kernel needs one
 * poll. */
#define GRACE_MS 1000

/* The awaited number of completed commands of a stream. */
struct work {
    struct sim_stream *stream;
    uint64_t target;
    bool stopped; /* work was already stopped when the wait ended */
};

static bool is_done(const struct work *work)
{
    return atomic_load(&work->stream->completed) >= work->target;
}

static iris_status_t fate(void *arg)
{
    struct work *work = arg;
    const struct iris_waiter *waiter = work->stream->sim->params.waiter;

    work->stopped = iris_i_sim_stopped(work->stream);
    return work->stopped          ? IRIS_ERR_STATE
           : waiter->fate != NULL ? waiter->fate(waiter->arg)
                                  : IRIS_OK;
}

static iris_status_t fail_late(const struct iris_wait *wait)
{
    return iris_i_cpu_late(&((struct work *)wait->arg)->stream->sim->params);
}

static void sleep_for(void *arg, int64_t ns)
{
    const struct work *work = arg;

    iris_i_sim_sleep(work->stream, work->target, ns);
}

static const struct iris_wait_type work_wait = {.pace = IRIS_PACE_STREAM,
                                                .fate = fate,
                                                .late = fail_late,
                                                .sleep = sleep_for};

/* Whether stopped work ends in time. */
static bool ends(const struct work *work)
{
    struct iris_wait wait;

    iris_i_wait_moment(&wait, GRACE_MS);
    while (!is_done(work)) {
        if (iris_i_wait_tick(&wait) != IRIS_OK) {
            return false;
        }
    }
    return true;
}

bool iris_i_sim_wait_all(struct sim_stream *stream)
{
    struct work work = {.stream = stream,
                        .target = atomic_load(&stream->submitted)};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_sim_run_here(stream, work.target);
    iris_i_wait_begin(&wait, &work_wait, stream->sim->params.waiter, "the host",
                      &work);
    while (status == IRIS_OK && !is_done(&work)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    if (status != IRIS_OK && !work.stopped) {
        iris_i_sim_stop(stream, status, iris_last_error());
    }
    return status == IRIS_OK || ends(&work);
}

iris_status_t iris_i_sim_synchronize(struct iris_stream *base)
{
    struct sim_stream *stream = (struct sim_stream *)base;

    (void)iris_i_sim_wait_all(stream);
    return iris_i_sim_fault(stream->sim);
}
