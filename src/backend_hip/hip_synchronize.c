/* SPDX-License-Identifier: MIT
 *
 * What the host waits for: that a stream's work is done, or that it has space
 * for more. It watches the peers, the deadline and the fault.
 */
#include "config.h"

#include "backend_hip/hip_synchronize.h"

#include "backend_hip/hip_call.h"
#include "backend_hip/hip_fault.h"
#include "backend_hip/hip_queue.h"
#include "backend_hip/hip_waits.h"

#include "base/clock.h"

#include <time.h>

/* How long a host thread polls its stream without a pause: launches are short.
 * After that it naps in between. */
#define SPIN_NS 200000
#define NAP_NS 20000
/* Time between questions to the core. */
#define ASK_NS 2000000

/* A device that fails is done, with a fault. */
static bool is_done(struct hip_stream *stream, uint64_t *target_p)
{
    hipError_t error = iris_i_hip_poll(stream, target_p);

    if (error != hipSuccess && error != hipErrorNotReady) {
        (void)iris_i_hip_fail(stream->hip, error, "work failed");
        iris_i_hip_raise(stream->hip, IRIS_ERR_DEVICE);
    }
    return error != hipErrorNotReady;
}

/* Makes what the core says against waiting, or the deadline, the fault. */
static void ask(struct hip_stream *stream, const char *what, bool late)
{
    const struct iris_backend_params *params = &stream->hip->params;
    char waits[IRIS_MESSAGE_BYTES / 4];
    iris_status_t status;

    if (late) {
        iris_i_hip_describe_wait(stream, waits, sizeof waits);
        status = iris_i_fail(
            NULL, IRIS_ERR_TIMEOUT,
            "rank %d: %s not done in %lld ms (IRIS_TIMEOUT_MS); kernels that "
            "wait were ended. Look at what its kernels wait for "
            "(IRIS_DEVICE_TIMEOUT_MS makes them report)%s",
            params->rank, what, (long long)params->timeout_ms, waits);
    } else {
        status = params->core_ops->keep_waiting(params->core);
    }
    if (status != IRIS_OK) {
        iris_i_hip_raise(stream->hip, status);
    }
}

/* Waits until so many are completed, or what cannot be ended is given up. The
 * fault, if there is one. */
static iris_status_t wait_for(struct hip_stream *stream, uint64_t target,
                              const char *what, bool *finished_p)
{
    struct hip_backend *hip = stream->hip;
    int64_t begin = iris_i_now_ns(), next_ask = begin + ASK_NS;
    int64_t deadline = iris_i_deadline(hip->params.timeout_ms);
    int64_t grace = INT64_MAX, now = begin;

    while (!(*finished_p = is_done(stream, &target)) && now < grace) {
        if (now - begin > SPIN_NS) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
        now = iris_i_now_ns();
        if (now < next_ask) {
            continue;
        }
        next_ask = now + ASK_NS;
        if (iris_i_hip_check(hip) == IRIS_OK) {
            ask(stream, what, now >= deadline);
        } else {
            grace = grace == INT64_MAX ? now + HIP_GRACE_NS : grace;
            iris_i_hip_end_waits(hip);
        }
    }
    return iris_i_hip_check(hip);
}

iris_status_t iris_i_hip_wait_all(struct hip_stream *stream, const char *what,
                                  bool *finished_p)
{
    return wait_for(stream, stream->shared ? 0 : stream->submitted, what,
                    finished_p);
}

iris_status_t iris_i_hip_synchronize(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);
    bool finished;

    return iris_i_hip_capturing(stream)
               ? iris_i_hip_fail_captured(stream->hip, "waiting for a stream")
               : iris_i_hip_wait_all(stream, HIP_WORK, &finished);
}

int iris_i_hip_query(struct iris_stream *base, uint64_t *target_p)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);

    if (*target_p == 0 && !stream->shared) {
        *target_p = stream->submitted;
        if (*target_p == 0) {
            return 1;
        }
    }
    return is_done(stream, target_p);
}

iris_status_t iris_i_hip_enqueue(struct iris_stream *base, size_t calls,
                                 hip_enqueue_t enqueue, void *what)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);
    iris_status_t status = iris_i_hip_check(stream->hip);
    uint64_t target;
    bool finished;

    while (status == IRIS_OK &&
           (target = iris_i_hip_begin(stream, calls)) != 0) {
        status = wait_for(stream, target, HIP_WORK, &finished);
    }
    if (status == IRIS_OK) {
        status = enqueue(stream, what);
        iris_i_hip_end(stream, calls);
    }
    return status;
}
