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
    *stream_p = &stream->base;
    return IRIS_OK;
}

/* Gives a new stream its first work. On CUDA streams that have had none share a
 * queue: if one stream's first kernels wait, another's first may never run. (No
 * document says so; seen with CUDA 13.0.) So the first work is one that does
 * not wait; an event does not count. It is no kernel: there may be no room for
 * one. */
static hipError_t give_first_work(const struct hip_backend *hip,
                                  hipStream_t native)
{
    char *word = (char *)(uintptr_t)hip->info.watch + sizeof *hip->watch;
    hipError_t error = hipStreamWriteValue64(native, word, 0, 0);

    if (error != hipErrorNotSupported) {
        return error;
    }
    (void)hipGetLastError();
    return hipSuccess;
}

iris_status_t iris_i_hip_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);
    hipStream_t native = NULL;
    iris_status_t status;
    hipError_t error = hipStreamCreateWithFlags(&native, hipStreamNonBlocking);

    if (error == hipSuccess) {
        error = give_first_work(hip, native);
    }
    if (error != hipSuccess) {
        status = iris_i_hip_fail(error, "rank %d gets no stream on GPU %d",
                                 hip->params.rank, hip->device);
    } else {
        status = make(hip, native, true, stream_p);
    }
    if (native != NULL && status != IRIS_OK) {
        (void)hipStreamDestroy(native);
    }
    iris_i_hip_leave(hip, before);
    return status;
}

#if !IRIS_HIP_NVIDIA
/* HIP has it since 5.6; the runtime may be newer than the headers. */
extern hipError_t hipStreamGetDevice(hipStream_t stream, hipDevice_t *device)
    __attribute__((weak));
#endif

iris_status_t iris_i_hip_stream_wrap(struct iris_backend *backend, void *native,
                                     struct iris_stream **stream_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    hipStreamCaptureStatus capture = hipStreamCaptureStatusNone;
    struct hip_before before = iris_i_hip_enter(hip);
    int device = hip->device;
    hipError_t error = hipStreamIsCapturing(native, &capture);

#if !IRIS_HIP_NVIDIA
    if (error == hipSuccess && native != NULL && hipStreamGetDevice != NULL) {
#else
    if (error == hipSuccess) {
#endif
        error = hipStreamGetDevice(native, &device);
    }
    /* It may be new. One that has work, or is captured, is not. */
    if (error == hipSuccess && device == hip->device && native != NULL &&
        capture == hipStreamCaptureStatusNone &&
        (hipStreamQuery(native) != hipSuccess ||
         give_first_work(hip, native) != hipSuccess)) {
        (void)hipGetLastError(); /* for who gives it work to find */
    }
    iris_i_hip_leave(hip, before);
    if (error == hipSuccess && device != hip->device) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "iris_stream_wrap: native %p is a stream of GPU %d, "
                           "but rank %d has GPU %d; pass a stream made on it",
                           native, device, hip->params.rank, hip->device);
    }
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

void iris_i_hip_stream_free(struct hip_stream *stream)
{
    if (stream->mark != NULL) {
        (void)hipEventDestroy(stream->mark);
    }
    if (stream->owned) {
        (void)hipStreamDestroy(stream->native);
    }
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

void *iris_i_hip_stream_native(struct iris_stream *stream)
{
    return ((struct hip_stream *)stream)->native;
}

/* ---- Work that comes ---- */

/* Records the mark, behind all that those up to `turn` wait for. If a capture
 * begins meanwhile the mark is part of that, and good for nothing else. */
static void set_mark(struct hip_stream *stream, uint64_t turn)
{
    bool marked = (stream->mark != NULL ||
                   hipEventCreateWithFlags(
                       &stream->mark, hipEventDisableTiming) == hipSuccess) &&
                  !iris_i_hip_capturing(stream) &&
                  hipEventRecord(stream->mark, stream->native) == hipSuccess &&
                  !iris_i_hip_capturing(stream);

    (void)hipGetLastError(); /* the next one may have more luck */
    pthread_mutex_lock(&stream->lock);
    stream->marking = false;
    stream->marked = marked ? turn : stream->marked;
    pthread_mutex_unlock(&stream->lock);
}

void iris_i_hip_enqueue_begin(struct hip_stream *stream)
{
    uint64_t turn = 0;

    pthread_mutex_lock(&stream->lock);
    stream->enqueuing++;
    /* Another mark only when nobody waits for the last one any more. */
    if (stream->num_waiting != 0 && stream->turns > stream->passed &&
        stream->marked <= stream->passed && !stream->marking) {
        stream->marking = true;
        turn = stream->turns;
    }
    pthread_mutex_unlock(&stream->lock);
    if (turn != 0) {
        set_mark(stream, turn);
    }
    iris_i_hip_fault_watch(stream);
}

void iris_i_hip_enqueue_end(struct hip_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    stream->enqueuing--;
    stream->num_enqueued++;
    pthread_mutex_unlock(&stream->lock);
}

/* ---- Waiting on the host ---- */

/* A wait of the host: what it is for, as of its begin. */
struct turn {
    uint64_t number;
    uint64_t num_enqueued;
    uint64_t num_waits;
    uint64_t stage_orphans;
    bool idle; /* at its end: nothing was enqueued meanwhile */
};

static void turn_begin(struct hip_stream *stream, struct turn *turn)
{
    pthread_mutex_lock(&stream->lock);
    stream->num_waiting++;
    *turn = (struct turn){
        .number = ++stream->turns,
        .num_enqueued = stream->num_enqueued,
        .num_waits = stream->num_waits,
        .stage_orphans = stream->stage_orphans,
    };
    stream->stage_orphans = 0;
    pthread_mutex_unlock(&stream->lock);
}

static void turn_end(struct hip_stream *stream, struct turn *turn,
                     bool finished)
{
    pthread_mutex_lock(&stream->lock);
    stream->num_waiting--;
    turn->idle =
        stream->enqueuing == 0 && stream->num_enqueued == turn->num_enqueued;
    if (finished) {
        iris_i_hip_forget_waits(stream, turn->num_waits);
        iris_i_hip_stage_give((struct hip_backend *)stream->base.backend,
                              turn->stage_orphans);
    } else {
        stream->stage_orphans |= turn->stage_orphans;
    }
    pthread_mutex_unlock(&stream->lock);
}

/* Whether the turn is through: hipErrorNotReady if it is not. Never blocks; to
 * ask a stream may while another thread's call waits for room in it, which then
 * may be what the caller has to end. A stream that is captured is not asked,
 * since that would void the capture. */
static hipError_t look(struct hip_stream *stream, const struct turn *turn)
{
    hipError_t error = hipErrorNotReady;

    pthread_mutex_lock(&stream->lock);
    if (stream->marked > stream->passed) {
        error = hipEventQuery(stream->mark);
        if (error == hipSuccess) {
            stream->passed = stream->marked;
        }
    } else if (stream->enqueuing == 0) {
        error = iris_i_hip_capturing(stream) ? hipErrorStreamCaptureUnsupported
                                             : hipStreamQuery(stream->native);
        if (error == hipSuccess) {
            stream->passed = stream->turns;
        }
    }
    if (error == hipSuccess || error == hipErrorNotReady) {
        error = stream->passed >= turn->number ? hipSuccess : hipErrorNotReady;
    }
    pthread_mutex_unlock(&stream->lock);
    return error;
}

/* Why to stop waiting, if there is a reason; the message is set. */
static iris_status_t ask(const struct hip_backend *hip, const char *what,
                         int64_t now, int64_t deadline)
{
    const struct iris_backend_params *params = &hip->params;

    if (now >= deadline) {
        return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                           "rank %d: %s not done in %lld ms "
                           "(IRIS_TIMEOUT_MS); kernels that wait were ended. "
                           "Look at what its kernels wait for "
                           "(IRIS_DEVICE_TIMEOUT_MS makes them tell)",
                           params->rank, what, (long long)params->timeout_ms);
    }
    return params->keep_waiting == NULL ? IRIS_OK
                                        : params->keep_waiting(params->core);
}

/* How a wait of the host went. */
struct outcome {
    bool finished;     /* what was enqueued before is done */
    bool idle;         /* and the stream has nothing left */
    iris_status_t why; /* what made the host stop waiting, if anything did; its
                        * message is this thread's */
};

/* look()s until the turn is through, which it returns, or an error. What makes
 * it stop waiting becomes the backend's fault; hipErrorNotReady: even so it
 * came to no end. */
static hipError_t poll(struct hip_stream *stream, const char *what,
                       const struct turn *turn, iris_status_t *why_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    int64_t begin = iris_i_now_ns(), next_ask = begin + ASK_NS;
    int64_t deadline = iris_i_deadline(hip->params.timeout_ms), grace = 0;
    iris_status_t why = IRIS_OK;
    hipError_t error;

    while ((error = look(stream, turn)) == hipErrorNotReady) {
        int64_t now = iris_i_now_ns();

        if (now - begin > SPIN_NS) {
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
        }
        if (now < next_ask) {
            continue;
        }
        next_ask = now + ASK_NS;
        if (why == IRIS_OK) {
            why = ask(hip, what, now, deadline);
            if (why == IRIS_OK) {
                continue;
            }
            iris_i_hip_stop_begin(hip, why);
            grace = now + GRACE_NS;
        }
        iris_i_hip_force_waits(stream);
        if (now >= grace) {
            iris_i_hip_abandon(hip);
            break;
        }
    }
    if (why != IRIS_OK) {
        iris_i_hip_stop_end(hip);
    }
    *why_p = why;
    return error;
}

static bool is_capture(hipError_t error)
{
    return error == hipErrorStreamCaptureUnsupported ||
           error == hipErrorStreamCaptureInvalidated ||
           error == hipErrorStreamCaptureImplicit;
}

/* Waits until all that was enqueued before is done, or that cannot be had;
 * `what` of ask(). IRIS_OK, IRIS_ERR_STATE of a stream that is captured, or
 * IRIS_ERR_DEVICE. */
static iris_status_t drain(struct hip_stream *stream, const char *what,
                           struct outcome *end)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    struct turn turn;
    hipError_t error;

    turn_begin(stream, &turn);
    error = poll(stream, what, &turn, &end->why);
    (void)hipGetLastError();
    end->finished = error != hipErrorNotReady && !is_capture(error);
    turn_end(stream, &turn, end->finished);
    end->idle = end->finished && turn.idle;
    if (is_capture(error)) {
        return iris_i_hip_fail_captured(stream,
                                        "waiting for a stream on the host");
    }
    return error == hipSuccess || !end->finished
               ? IRIS_OK
               : iris_i_hip_fail(error, "rank %d: work on GPU %d failed",
                                 hip->params.rank, hip->device);
}

#define WORK "work on a stream was"

iris_status_t iris_i_hip_stream_settle(struct hip_stream *stream)
{
    struct outcome end;
    iris_status_t status = drain(stream, WORK, &end);

    return status == IRIS_OK && !end.finished
               ? iris_i_fail(NULL, IRIS_ERR_STATE,
                             "a kernel that cannot be ended holds the stream")
               : status;
}

iris_status_t iris_i_hip_zero(struct hip_backend *hip, void *base, size_t bytes)
{
    struct hip_stream *stream = hip->service;
    struct outcome end;
    iris_status_t status;
    hipError_t error;

    iris_i_hip_enqueue_begin(stream);
    error = hipMemsetAsync(base, 0, bytes, stream->native);
    iris_i_hip_enqueue_end(stream);
    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d: %zu bytes of new heap on GPU %d are "
                               "not filled with zeros",
                               hip->params.rank, bytes, hip->device);
    }
    status = drain(stream,
                   "filling new memory of the heap with zeros (iris_init, "
                   "iris_malloc) was",
                   &end);
    if (end.finished && end.why != IRIS_OK) {
        iris_i_hip_collect(hip);
    }
    return status == IRIS_OK ? end.why : status;
}

static iris_status_t synchronize(struct hip_stream *stream, bool *finished_p)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    char message[IRIS_MESSAGE_BYTES];
    uint64_t work = iris_i_hip_fault_work(stream);
    struct outcome end;
    iris_status_t status = drain(stream, WORK, &end);

    *finished_p = end.finished;
    if (end.finished || end.why != IRIS_OK) {
        iris_i_hip_collect(hip);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_hip_fault_take(stream, end.idle, work, message);
    /* Another thread may have taken it before. */
    return status == IRIS_OK ? end.why
                             : iris_i_fail(NULL, status, "%s", message);
}

iris_status_t iris_i_hip_stream_synchronize(struct iris_stream *base)
{
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    struct hip_before before = iris_i_hip_enter(hip);
    bool finished;
    iris_status_t status = synchronize((struct hip_stream *)base, &finished);

    iris_i_hip_leave(hip, before);
    return status;
}

void iris_i_hip_stream_destroy(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    struct hip_before before = iris_i_hip_enter(hip);
    hipStreamCaptureStatus capture = hipStreamCaptureStatusNone;
    hipGraph_t graph = NULL;
    bool finished;
    iris_status_t status;

    /* An error is no capture: the default stream while another is captured. */
    if (hipStreamIsCapturing(stream->native, &capture) == hipSuccess &&
        capture != hipStreamCaptureStatusNone &&
        hipStreamEndCapture(stream->native, &graph) == hipSuccess) {
        (void)hipGraphDestroy(graph);
    }
    (void)hipGetLastError();
    status = synchronize(stream, &finished);

    /* A rank that leaves on purpose ends its kernels itself. */
    if (status != IRIS_OK && status != IRIS_ERR_STATE) {
        iris_error(NULL, "rank %d: work of a destroyed stream failed: %s",
                   hip->params.rank, iris_last_error());
    }
    if (finished) {
        iris_i_hip_stream_free(stream);
    }
    iris_i_hip_leave(hip, before);
    if (!finished) { /* callbacks of its copies may still come */
        pthread_mutex_lock(&hip->lock);
        base->next = hip->left;
        hip->left = base;
        pthread_mutex_unlock(&hip->lock);
    }
}
