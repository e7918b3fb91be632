/* SPDX-License-Identifier: MIT
 *
 * A stream's two numbers: calls submitted, and calls completed.
 */
#include "config.h"

#include "backend_hip/internal.h"

/* Number of calls between two recorded events. */
#define EVENT_EVERY 64
/* Back-pressure: a stream accepts no more calls from this number of incomplete
 * calls on, and no call that would exceed the second number. If a queue of the
 * driver is full, the driver blocks the call and watches nothing (CUDA 13.0,
 * H200: with 1021 incomplete calls, or 734 kernels with 4 KB of arguments). A
 * graph counts as at most its number of nodes. */
#define FULL 512
#define FULL_WITH_LARGE 1000

static void raise_number(_Atomic uint64_t *number, uint64_t to)
{
    uint64_t seen = *number;

    while (seen < to && !atomic_compare_exchange_weak(number, &seen, to)) {
    }
}

bool iris_i_hip_capturing(struct hip_stream *stream)
{
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;
    hipError_t error = hipStreamIsCapturing(stream->native, &status);

    /* The second error: the default stream, which would disturb another
     * stream's capture. */
    return error == hipSuccess ? status != hipStreamCaptureStatusNone
                               : error == hipErrorStreamCaptureImplicit;
}

/* ---- The ring of events; the stream's lock is held ---- */

/* Records an event after all submitted calls, if one is free. Otherwise the
 * next event will do: it also covers these calls. */
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

/* Also for a failed device: its remaining work will not be done. */
static void complete_all(struct hip_stream *stream)
{
    raise_number(&stream->completed, stream->submitted);
    stream->num_passed = stream->num_recorded;
}

/* A stream is not done before its errands have run, even if the runtime says
 * so: HIP's marker of a callback completes before the callback runs. */
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
        /* A stream that is capturing must not be queried. In a stream that the
         * program uses, too, a call of the program may block, and a query would
         * block with it. */
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

/* Whether the error is a failure of the device. A query of a capturing stream
 * is not one. */
static bool is_failure(hipError_t error)
{
    return error != hipSuccess && error != hipErrorNotReady &&
           error != hipErrorStreamCaptureUnsupported &&
           error != hipErrorStreamCaptureImplicit;
}

hipError_t iris_i_hip_poll(struct hip_stream *stream, uint64_t *target_p)
{
    hipError_t error = hipSuccess;

    raise_number(&stream->wanted, *target_p);
    /* Another thread that enqueues holds the lock, and may be blocked behind
     * the work that should be ended. */
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
        return error;
    }
    return *target_p != 0 && stream->completed >= *target_p ? hipSuccess
                                                            : hipErrorNotReady;
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

/* ---- Enqueueing ---- */

static bool is_full(const struct hip_stream *stream, size_t calls)
{
    uint64_t left = stream->submitted - stream->completed;

    return left >= FULL || (left > 0 && left + calls > FULL_WITH_LARGE);
}

/* Number of completed calls at which this number of calls finds space: never
 * 0. */
static uint64_t room_for(const struct hip_stream *stream, size_t calls)
{
    uint64_t kept = calls < FULL_WITH_LARGE ? FULL_WITH_LARGE - calls : 0;

    kept = kept < FULL / 2 ? kept : FULL / 2;
    return stream->submitted - kept;
}

/* Captured calls need no space. */
uint64_t iris_i_hip_begin(struct hip_stream *stream, size_t calls)
{
    pthread_mutex_lock(&stream->lock);
    stream->capturing = iris_i_hip_capturing(stream);
    if (stream->capturing) {
        return 0;
    }
    if (is_full(stream, calls)) {
        uint64_t target = room_for(stream, calls);

        pthread_mutex_unlock(&stream->lock);
        return target;
    }
    /* Otherwise a thread that waits for a stream with constantly new work would
     * wait for that work, too. */
    if (stream->wanted > stream->completed) {
        if (stream->wanted > stream->recorded) {
            (void)record(stream);
        }
        (void)iris_i_hip_update(stream);
    }
    return 0;
}

void iris_i_hip_end(struct hip_stream *stream, size_t calls)
{
    stream->submitted += stream->capturing ? 0 : calls;
    if (!stream->capturing &&
        stream->submitted - stream->recorded >= EVENT_EVERY) {
        (void)record(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}
