/* SPDX-License-Identifier: MIT
 *
 * Streams of a GPU, and the wait for one: it watches the peers and the
 * deadline, and ends kernels that would wait for ever.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include "clock.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* How long a host thread looks at its stream without a pause: launches are
 * short. After that it naps between looks. */
#define SPIN_NS 200000
#define NAP_NS 20000
/* Time between questions to the core. */
#define ASK_NS 2000000
/* How long ended kernels may take to drain before they are given up on. */
#define GRACE_NS 2000000000

static iris_status_t make(struct hip_backend *hip, hipStream_t native,
                          bool owned, struct iris_stream **stream_p)
{
    struct hip_stream *stream = calloc(1, sizeof *stream);

    if (stream == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a stream");
    }
    stream->base.backend = &hip->base;
    stream->native = native;
    stream->owned = owned;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_mutex_lock(&hip->lock);
    atomic_init(&stream->faults_seen, hip->num_faults);
    pthread_mutex_unlock(&hip->lock);
    *stream_p = &stream->base;
    return IRIS_OK;
}

iris_status_t iris_i_hip_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    int before = iris_i_hip_enter(hip);
    hipStream_t native = NULL;
    iris_status_t status;
    hipError_t error = hipStreamCreateWithFlags(&native, hipStreamNonBlocking);

    if (error != hipSuccess) {
        status = iris_i_hip_fail(error, "rank %d gets no stream on GPU %d",
                                 hip->params.rank, hip->device);
    } else {
        status = make(hip, native, true, stream_p);
    }
    if (error == hipSuccess && status != IRIS_OK) {
        (void)hipStreamDestroy(native);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

iris_status_t iris_i_hip_stream_wrap(struct iris_backend *backend, void *native,
                                     struct iris_stream **stream_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    hipStreamCaptureStatus capture;
    int before = iris_i_hip_enter(hip);
    hipError_t error = hipStreamIsCapturing(native, &capture);

    iris_i_hip_leave(hip, before);
    if (error != hipSuccess) {
        (void)hipGetLastError();
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "iris_stream_wrap: native %p is no stream of GPU "
                           "%d: %s; pass a %s made on it",
                           native, hip->device, hipGetErrorString(error),
                           IRIS_HIP_NVIDIA ? "cudaStream_t" : "hipStream_t");
    }
    return make(hip, native, false, stream_p);
}

void *iris_i_hip_stream_native(struct iris_stream *stream)
{
    return ((struct hip_stream *)stream)->native;
}

bool iris_i_hip_capturing(struct hip_stream *stream)
{
    hipStreamCaptureStatus status = hipStreamCaptureStatusNone;

    if (hipStreamIsCapturing(stream->native, &status) != hipSuccess) {
        (void)hipGetLastError();
    }
    return status != hipStreamCaptureStatusNone;
}

iris_status_t iris_i_hip_not_capturing(struct hip_stream *stream,
                                       const char *what)
{
    const struct hip_backend *hip =
        (const struct hip_backend *)stream->base.backend;

    return !iris_i_hip_capturing(stream)
               ? IRIS_OK
               : iris_i_fail(NULL, IRIS_ERR_STATE,
                             "rank %d: %s cannot be captured in a graph; do "
                             "it before or after the capture",
                             hip->params.rank, what);
}

void iris_i_hip_stream_enqueued(struct hip_stream *stream)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;

    if (atomic_exchange(&stream->busy, true)) {
        return;
    }
    /* What went wrong while the stream had no work is not its error. */
    pthread_mutex_lock(&hip->lock);
    if (!iris_i_hip_stopped(hip)) {
        atomic_store(&stream->faults_seen, hip->num_faults);
    }
    pthread_mutex_unlock(&hip->lock);
}

/* Lets every wait that the stream does without a kernel come true, in the order
 * they come, and puts back what was there once the stream is through. `saved`
 * has one word for each. */
static void satisfy_waits(struct hip_stream *stream, uint64_t *saved,
                          bool *begun)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;

    pthread_mutex_lock(&stream->lock);
    for (unsigned i = 0; i < stream->num_waits; i++) {
        struct hip_wait *wait = &stream->waits[i];

        if (!*begun) {
            (void)hipMemcpyAsync(&saved[i], wait->place, sizeof saved[i],
                                 hipMemcpyDefault, hip->service);
            (void)hipStreamSynchronize(hip->service);
        }
        (void)hipMemcpyAsync(wait->place, &wait->value, sizeof wait->value,
                             hipMemcpyDefault, hip->service);
        (void)hipStreamSynchronize(hip->service);
    }
    *begun = true;
    pthread_mutex_unlock(&stream->lock);
}

static void forget_waits(struct hip_stream *stream, const uint64_t *saved,
                         bool restore)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;

    pthread_mutex_lock(&stream->lock);
    for (unsigned i = stream->num_waits; restore && i-- > 0;) {
        (void)hipMemcpyAsync(stream->waits[i].place, &saved[i], sizeof saved[i],
                             hipMemcpyDefault, hip->service);
        (void)hipStreamSynchronize(hip->service);
    }
    stream->num_waits = 0;
    pthread_mutex_unlock(&stream->lock);
}

/* Why to stop waiting, if there is a reason; the message is set. */
static iris_status_t ask(const struct hip_backend *hip, int64_t now,
                         int64_t deadline)
{
    const struct iris_backend_params *params = &hip->params;

    if (now >= deadline) {
        return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                           "rank %d: work on a stream was not done in %lld ms "
                           "(IRIS_TIMEOUT_MS); kernels that wait were ended. "
                           "Look at what its kernels wait for "
                           "(IRIS_DEVICE_TIMEOUT_MS makes them tell)",
                           params->rank, (long long)params->timeout_ms);
    }
    return params->keep_waiting == NULL ? IRIS_OK
                                        : params->keep_waiting(params->core);
}

/* Waits until the stream has nothing left; *finished_p is false if that cannot
 * be had. IRIS_ERR_DEVICE, else what made it stop becomes the backend's
 * fault. */
static iris_status_t drain(struct hip_stream *stream, bool *finished_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    int64_t begin = iris_i_now_ns(), next_ask = begin + ASK_NS;
    int64_t deadline = iris_i_deadline(hip->params.timeout_ms), grace = 0;
    uint64_t saved[HIP_STREAM_WAITS];
    bool satisfied = false;
    hipError_t error;

    while ((error = hipStreamQuery(stream->native)) == hipErrorNotReady) {
        int64_t now = iris_i_now_ns();

        if (now - begin > SPIN_NS) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
        if (now < next_ask) {
            continue;
        }
        next_ask = now + ASK_NS;
        if (grace == 0) {
            iris_status_t status = ask(hip, now, deadline);

            if (status == IRIS_OK) {
                continue;
            }
            iris_i_hip_stop(hip, status);
            grace = now + GRACE_NS;
        }
        iris_i_hip_stop_again(hip);
        satisfy_waits(stream, saved, &satisfied);
        if (now >= grace) {
            (void)hipGetLastError();
            *finished_p = false;
            return IRIS_OK;
        }
    }
    (void)hipGetLastError();
    *finished_p = true;
    if (error != hipSuccess) {
        return iris_i_hip_fail(error, "rank %d: work on GPU %d failed",
                               hip->params.rank, hip->device);
    }
    forget_waits(stream, saved, satisfied);
    return IRIS_OK;
}

iris_status_t iris_i_hip_stream_settle(struct hip_stream *stream)
{
    bool finished;
    iris_status_t status = drain(stream, &finished);

    return status == IRIS_OK && !finished
               ? iris_i_fail(NULL, IRIS_ERR_STATE,
                             "a kernel that cannot be ended holds the stream")
               : status;
}

static iris_status_t synchronize(struct hip_stream *stream, bool *finished_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    bool busy = atomic_exchange(&stream->busy, false);
    char message[IRIS_MESSAGE_BYTES] = "";
    iris_status_t status = drain(stream, finished_p);

    if (status != IRIS_OK) {
        return status;
    }
    if (*finished_p) {
        iris_i_hip_collect(hip);
    }
    pthread_mutex_lock(&hip->lock);
    if (atomic_exchange(&stream->faults_seen, hip->num_faults) !=
            hip->num_faults &&
        (busy || !*finished_p)) {
        status = hip->fault;
        memcpy(message, hip->fault_message, sizeof message);
    }
    hip->abandoned |= !*finished_p;
    pthread_mutex_unlock(&hip->lock);
    return status == IRIS_OK ? IRIS_OK
                             : iris_i_fail(NULL, status, "%s", message);
}

iris_status_t iris_i_hip_stream_synchronize(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    int before = iris_i_hip_enter(hip);
    bool finished;
    iris_status_t status =
        iris_i_hip_not_capturing(stream, "waiting for a stream on the host");

    if (status == IRIS_OK) {
        status = synchronize(stream, &finished);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

void iris_i_hip_stream_destroy(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    int before = iris_i_hip_enter(hip);
    bool finished = true;
    iris_status_t status =
        iris_i_hip_capturing(stream) ? IRIS_OK : synchronize(stream, &finished);

    /* A rank that leaves on purpose ends its kernels itself. */
    if (status != IRIS_OK && status != IRIS_ERR_STATE) {
        iris_error(NULL, "rank %d: work of a destroyed stream failed: %s",
                   hip->params.rank, iris_last_error());
    }
    if (stream->owned && finished) {
        (void)hipStreamDestroy(stream->native);
    }
    iris_i_hip_leave(hip, before);
    if (finished) {
        pthread_mutex_destroy(&stream->lock);
        free(stream); /* else callbacks of its copies may still come */
    }
}
