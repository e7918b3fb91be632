/* SPDX-License-Identifier: MIT
 *
 * A stream as two numbers: how much it was given, and how much of that is done.
 * Giving it work, and the host's wait for that, which watches the peers and the
 * deadline.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include "base/clock.h"

#include <time.h>

/* How long a host thread polls its stream without a pause: launches are short.
 * After that it naps in between. */
#define SPIN_NS 200000
#define NAP_NS 20000
/* Time between questions to the core. */
#define ASK_NS 2000000
/* An event is recorded behind so many calls. */
#define EVENT_EVERY 64
/* Back-pressure: a stream takes no more with so many calls to do, nor one that
 * would make it more than the second number. Where a queue of the driver's is
 * full it holds up the call and watches nothing (CUDA 13.0, H200: with 1021
 * calls to do, or 734 kernels of 4 KB of arguments). A graph counts there as
 * its nodes at most. */
#define FULL 512
#define FULL_WITH_LARGE 1000

static void raise_number(_Atomic uint64_t *number, uint64_t to)
{
    uint64_t seen = *number;

    while (seen < to && !atomic_compare_exchange_weak(number, &seen, to)) {
    }
}

/* ---- Captures ---- */

bool iris_i_hip_capturing(struct hip_stream *stream)
{
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    hipError_t error = hipStreamIsCapturing(stream->native, &status);

    /* The second: the default stream, which would disturb another's capture. */
    return error == hipSuccess ? status != hipStreamCaptureStatusNone
                               : error == hipErrorStreamCaptureImplicit;
}

iris_status_t iris_i_hip_fail_captured(const struct hip_backend *hip,
                                       const char *what)
{
    return iris_i_hip_refuse(hip, IRIS_ERR_STATE,
                             "%s cannot be captured in a graph; do it before "
                             "or after the capture",
                             what);
}

/* ---- The ring of events; the stream's lock is held ---- */

/* Records an event behind all that was submitted, if there is one left.
 * Without, the next one will do: what it says holds for this one, too. */
static hipError_t record(struct hip_stream *stream)
{
    struct hip_event *one = &stream->events[stream->num_recorded % HIP_EVENTS];
    hipError_t error = hipSuccess;

    if (stream->num_recorded - stream->num_passed == HIP_EVENTS) {
        return hipSuccess;
    }
    if (one->event == NULL) {
        error = hipEventCreateWithFlags(&one->event, hipEventDisableTiming);
    }
    error = error ? error : hipEventRecord(one->event, stream->native);
    if (error == hipSuccess) {
        stream->recorded = one->number = stream->submitted;
        stream->num_recorded++;
    }
    return error;
}

/* Of a failed device, too: what it has left to do will not be done. */
static void complete_all(struct hip_stream *stream)
{
    raise_number(&stream->completed, stream->submitted);
    stream->num_passed = stream->num_recorded;
}

/* A stream is not done before its errands have run, whatever the runtime says:
 * HIP's marker of a callback completes before the callback runs. */
static hipError_t unless_before(uint64_t limit, uint64_t number,
                                hipError_t error)
{
    return error == hipSuccess && number > limit ? hipErrorNotReady : error;
}

hipError_t iris_i_hip_update(struct hip_stream *stream)
{
    uint64_t limit = iris_i_hip_errand_limit(stream);
    hipError_t error = hipSuccess;

    while (error == hipSuccess && stream->num_passed != stream->num_recorded) {
        struct hip_event *one =
            &stream->events[stream->num_passed % HIP_EVENTS];

        error = unless_before(limit, one->number, hipEventQuery(one->event));
        if (error == hipSuccess) {
            raise_number(&stream->completed, one->number);
            stream->num_passed++;
        }
    }
    if (error == hipSuccess && stream->completed < stream->submitted) {
        /* One that is captured must not be asked. Of one that the program has,
         * too, a call of its own may be held up, and who asks with it. */
        error = stream->shared || iris_i_hip_capturing(stream)
                    ? hipErrorNotReady
                    : hipStreamQuery(stream->native);
        error = unless_before(limit, stream->submitted, error);
        if (error == hipSuccess) {
            complete_all(stream);
        }
    }
    return error;
}

/* Whether the device fails; nor can a stream be asked that is captured. */
static bool is_failure(hipError_t error)
{
    return error != hipSuccess && error != hipErrorNotReady &&
           error != hipErrorStreamCaptureUnsupported &&
           error != hipErrorStreamCaptureImplicit;
}

bool iris_i_hip_is_done(struct hip_stream *stream, uint64_t *target_p)
{
    hipError_t error = hipSuccess;

    /* Who enqueues has it, and may be held up behind what is to be ended. */
    if (pthread_mutex_trylock(&stream->lock) == 0) {
        if (*target_p == 0) {
            *target_p = ++stream->submitted;
        }
        if (stream->shared && stream->recorded < *target_p &&
            !iris_i_hip_capturing(stream)) {
            error = record(stream);
        }
        error = error ? error : iris_i_hip_update(stream);
        if (is_failure(error)) {
            iris_i_hip_call_off_errands(stream);
            complete_all(stream);
        }
        pthread_mutex_unlock(&stream->lock);
    }
    if (is_failure(error)) {
        (void)iris_i_hip_fail(stream->hip, error, "work failed");
        iris_i_hip_raise(stream->hip, IRIS_ERR_DEVICE);
    }
    return *target_p != 0 && stream->completed >= *target_p;
}

void iris_i_hip_update_all(struct hip_backend *hip, struct hip_stream *held)
{
    pthread_mutex_lock(&hip->streams_lock);
    for (struct hip_stream *stream = hip->streams; stream != NULL;
         stream = stream->next) {
        if (stream == held) {
            (void)iris_i_hip_update(stream);
        } else if (pthread_mutex_trylock(&stream->lock) == 0) {
            (void)iris_i_hip_update(stream);
            pthread_mutex_unlock(&stream->lock);
        }
    }
    pthread_mutex_unlock(&hip->streams_lock);
}

/* ---- Waiting on the host ---- */

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

    raise_number(&stream->wanted, target);
    while (!(*finished_p = iris_i_hip_is_done(stream, &target)) &&
           now < grace) {
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
            iris_i_hip_update_all(hip, NULL);
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
    raise_number(&stream->wanted, *target_p);
    return iris_i_hip_is_done(stream, target_p);
}

/* ---- Enqueueing ---- */

static bool is_full(const struct hip_stream *stream, size_t calls)
{
    uint64_t left = stream->submitted - stream->completed;

    return left >= FULL || (left > 0 && left + calls > FULL_WITH_LARGE);
}

/* What has to be completed before so many calls find room. */
static uint64_t room_for(const struct hip_stream *stream, size_t calls)
{
    uint64_t kept = calls < FULL_WITH_LARGE ? FULL_WITH_LARGE - calls : 0;

    kept = kept < FULL / 2 ? kept : FULL / 2;
    return stream->submitted - kept;
}

/* On success the stream's lock is held. What comes into a capture needs no
 * room. */
static iris_status_t begin(struct hip_stream *stream, size_t calls)
{
    struct hip_backend *hip = stream->hip;
    iris_status_t status = iris_i_hip_check(hip);
    bool finished;

    pthread_mutex_lock(&stream->lock);
    while (!(stream->capturing = iris_i_hip_capturing(stream)) &&
           status == IRIS_OK && is_full(stream, calls)) {
        uint64_t target = room_for(stream, calls);

        pthread_mutex_unlock(&stream->lock);
        status = wait_for(stream, target, HIP_WORK, &finished);
        pthread_mutex_lock(&stream->lock);
    }
    if (status != IRIS_OK) {
        pthread_mutex_unlock(&stream->lock);
        return status;
    }
    /* Else who waits for a stream that always gets more would wait for that,
     * too. */
    if (!stream->capturing && stream->wanted > stream->completed) {
        if (stream->wanted > stream->recorded) {
            (void)record(stream);
        }
        (void)iris_i_hip_update(stream);
    }
    return IRIS_OK;
}

static void end(struct hip_stream *stream, size_t calls)
{
    stream->submitted += stream->capturing ? 0 : calls;
    if (!stream->capturing &&
        stream->submitted - stream->recorded >= EVENT_EVERY) {
        (void)record(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}

iris_status_t iris_i_hip_enqueue(struct iris_stream *base, size_t calls,
                                 hip_enqueue_t enqueue, void *what)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);
    iris_status_t status = begin(stream, calls);

    if (status == IRIS_OK) {
        status = enqueue(stream, what);
        end(stream, calls);
    }
    return status;
}
