/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's events, places in streams, and what asks of streams or
 * waits for them.
 */
#include "config.h"

#include "fake_stream.h"

#include <stdlib.h>

struct ihipEvent_t {
    hipStream_t stream; /* NULL: not recorded */
    uint64_t target;
    hipGraph_t capture; /* that it was recorded in; NULL: none */
    unsigned lane;
};

FAKE_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *event_p,
                                               unsigned flags)
{
    hipError_t error = fake_enter(__func__);

    (void)flags;
    if (error == hipSuccess) {
        *event_p = calloc(1, sizeof **event_p);
        error = *event_p == NULL ? hipErrorOutOfMemory : hipSuccess;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipEventDestroy(hipEvent_t event)
{
    free(event);
    return fake_enter(__func__);
}

FAKE_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t handle)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error != hipSuccess) {
        return error;
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    if (error == hipSuccess) {
        event->stream = stream;
        event->capture = stream->capture;
        event->lane = stream->lane;
        event->target = stream->capture == NULL
                            ? stream->submitted
                            : stream->capture->lengths[stream->lane];
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

/* Takes the stream into the capture that the event is of, if it is in none. */
static hipError_t join(hipStream_t stream, hipEvent_t event)
{
    hipStream_t other;

    if (fake_stream_find(event->stream, &other) != hipSuccess ||
        other->capture != event->capture ||
        (stream->capture != NULL && stream->capture != event->capture)) {
        stream->broken = true;
        return hipErrorStreamCaptureUnsupported;
    }
    if (stream->capture == NULL && event->capture->lanes < FAKE_LANES) {
        stream->capture = event->capture;
        stream->lane = event->capture->lanes++;
        stream->broken = false;
        stream->mode = other->mode;
        stream->capturer = other->capturer;
    }
    if (event->capture->awaited[event->lane] < event->target) {
        event->capture->awaited[event->lane] = event->target;
    }
    return stream->capture == NULL ? hipErrorOutOfMemory : hipSuccess;
}

FAKE_EXPORT hipError_t hipStreamWaitEvent(hipStream_t handle, hipEvent_t event,
                                          unsigned flags)
{
    hipError_t error = fake_enter(__func__);
    struct fake_op op = {.kind = FAKE_FOLLOW};
    hipStream_t stream;

    if (error != hipSuccess || event->stream == NULL) {
        return fake_leave(error);
    }
    (void)flags;
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    if (error == hipSuccess &&
        (event->capture != NULL || stream->capture != NULL)) {
        error = join(stream, event);
    }
    op.other = event->stream;
    op.other_lane = event->lane;
    op.value = event->target;
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error ? error : fake_enqueue(handle, &op, NULL));
}

/* What was on a stream that is gone is done. */
FAKE_EXPORT hipError_t hipEventQuery(hipEvent_t event)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error == hipSuccess) {
        error = fake_refuse_capture();
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = event->stream != NULL &&
                    fake_stream_find(event->stream, &stream) == hipSuccess
                ? fake_stream_done(stream, event->target)
                : fake_lost();
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

/* What was on a stream that is gone is done. */
void fake_follow(const struct fake_op *op)
{
    hipStream_t other;

    pthread_mutex_lock(&fake_streams_lock);
    while (fake_stream_find(op->other, &other) == hipSuccess &&
           other->completed < op->value) {
        pthread_cond_wait(&fake_progress, &fake_streams_lock);
    }
    pthread_mutex_unlock(&fake_streams_lock);
}

FAKE_EXPORT hipError_t hipStreamQuery(hipStream_t handle)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error == hipSuccess) {
        error = fake_refuse_capture();
    }
    if (error == hipSuccess) {
        error = fake_stream_lock_idle(handle, &stream);
    }
    if (error == hipSuccess) {
        error = fake_stream_done(stream, stream->submitted);
        pthread_mutex_unlock(&fake_streams_lock);
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipStreamSynchronize(hipStream_t handle)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error == hipSuccess) {
        error = fake_refuse_capture();
    }
    if (error == hipSuccess) {
        error = fake_stream_lock_idle(handle, &stream);
    }
    if (error == hipSuccess) {
        uint64_t target = stream->submitted;

        while (stream->completed < target) {
            pthread_cond_wait(&fake_progress, &fake_streams_lock);
        }
        pthread_mutex_unlock(&fake_streams_lock);
        error = fake_lost();
    }
    return fake_leave(error);
}

/* HIP has it since 5.6. */
FAKE_EXPORT hipError_t hipStreamGetDevice(hipStream_t handle,
                                          hipDevice_t *device_p);

FAKE_EXPORT hipError_t hipStreamGetDevice(hipStream_t handle,
                                          hipDevice_t *device_p)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error != hipSuccess) {
        return error;
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    if (error == hipSuccess) {
        *device_p = stream->device;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}
