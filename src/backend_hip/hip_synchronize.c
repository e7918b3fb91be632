/* SPDX-License-Identifier: MIT
 *
 * How the host waits until a stream's work is done, or until the stream has
 * space for more work. It watches the peers, the deadline and the fault.
 */
#include "config.h"

#include "backend_hip/internal.h"

/* The awaited number of a stream's completed calls. */
struct work {
    struct hip_stream *stream;
    uint64_t target;
    const char *what;
};

/* If the device fails, the wait is done, with a fault. */
static bool is_done(void *arg)
{
    struct work *work = arg;
    struct hip_backend *hip = work->stream->hip;
    hipError_t error = iris_i_hip_poll(work->stream, &work->target);

    if (error != hipSuccess && error != hipErrorNotReady) {
        (void)iris_i_hip_fail(hip, error, "work failed");
        iris_i_hip_raise(hip, IRIS_ERR_DEVICE);
    }
    return error != hipErrorNotReady;
}

static iris_status_t fate(void *arg)
{
    struct hip_backend *hip = ((struct work *)arg)->stream->hip;
    const struct iris_waiter *waiter = hip->params.waiter;
    iris_status_t status = iris_i_hip_check(hip);

    return status == IRIS_OK && waiter->fate != NULL ? waiter->fate(waiter->arg)
                                                     : status;
}

static iris_status_t fail_late(const struct iris_wait *wait)
{
    const struct work *work = wait->arg;
    char waits[IRIS_MESSAGE_BYTES / 4];

    iris_i_hip_describe_wait(work->stream, waits, sizeof waits);
    return iris_i_fail(
        NULL, IRIS_ERR_TIMEOUT,
        "rank %d: %s not done in %lld ms (IRIS_TIMEOUT_MS); kernels that "
        "wait were ended. Find out why its kernels wait "
        "(IRIS_DEVICE_TIMEOUT_MS makes them report)%s",
        work->stream->hip->params.rank, work->what,
        (long long)wait->waiter->timeout_ms, waits);
}

static const struct iris_wait_type work_wait = {
    .pace = IRIS_PACE_QUEUE, .fate = fate, .late = fail_late};

/* Waits until this number is completed, or work that cannot be ended is given
 * up. Returns the fault, if there is one: the reason that ends the wait becomes
 * the fault. */
static iris_status_t wait_for(struct work *work, bool *finished_p)
{
    struct hip_backend *hip = work->stream->hip;
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &work_wait, hip->params.waiter, "the host", work);
    while (status == IRIS_OK && !is_done(work)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    *finished_p = status == IRIS_OK;
    if (status != IRIS_OK) {
        iris_i_hip_raise(hip, status);
        *finished_p = iris_i_hip_end_work(hip, is_done, work);
    }
    return iris_i_hip_check(hip);
}

iris_status_t iris_i_hip_wait_all(struct hip_stream *stream, const char *what,
                                  bool *finished_p)
{
    struct work work = {stream, stream->shared ? 0 : stream->submitted, what};

    return wait_for(&work, finished_p);
}

iris_status_t iris_i_hip_synchronize(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);
    bool finished;

    /* The program may free memory that earlier work used. */
    atomic_fetch_add_explicit(&stream->hip->waits, 1, memory_order_relaxed);
    return iris_i_hip_capturing(stream)
               ? iris_i_hip_fail_captured(stream->hip, "waiting for a stream")
               : iris_i_hip_wait_all(stream, HIP_WORK, &finished);
}

int iris_i_hip_query(struct iris_stream *base, uint64_t *target_p)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct work work = {stream, *target_p, HIP_WORK};
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);
    bool done;

    if (work.target == 0 && !stream->shared) {
        work.target = stream->submitted;
    }
    done = (work.target == 0 && !stream->shared) || is_done(&work);
    *target_p = work.target;
    return done;
}

iris_status_t iris_i_hip_enqueue(struct iris_stream *base, size_t calls,
                                 hip_enqueue_t enqueue, void *what)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);
    iris_status_t status = iris_i_hip_check(stream->hip);
    struct work space = {stream, 0, HIP_WORK};
    bool finished;

    while (status == IRIS_OK &&
           (space.target = iris_i_hip_begin(stream, calls)) != 0) {
        status = wait_for(&space, &finished);
    }
    if (status == IRIS_OK) {
        status = enqueue(stream, what);
        iris_i_hip_end(stream, calls);
    }
    return status;
}
