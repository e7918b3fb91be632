/* SPDX-License-Identifier: MIT
 *
 * Streams of a GPU: created, wrapped, synchronised, destroyed.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <stdlib.h>

/* ---- Streams shared by all contexts of a GPU in this process ---- */

static pthread_mutex_t services_lock = PTHREAD_MUTEX_INITIALIZER;

/* A new stream after its first work. */
static hipError_t create_native(const struct hip_backend *hip,
                                hipStream_t *native_p)
{
    hipStream_t native = NULL;
    hipError_t error = hipStreamCreateWithFlags(&native, hipStreamNonBlocking);

    error = error ? error : iris_i_hip_give_first_work(hip, native);
    if (error == hipSuccess) {
        *native_p = native;
    } else if (native != NULL) {
        (void)hipStreamDestroy(native);
    }
    return error;
}

static void destroy_native(hipStream_t *native)
{
    if (*native != NULL) {
        (void)hipStreamDestroy(*native);
    }
    *native = NULL;
}

static hipError_t join_services(const struct hip_backend *hip)
{
    struct hip_gpu *gpu = hip->gpu;
    hipError_t error = hipSuccess;

    pthread_mutex_lock(&services_lock);
    if (gpu->fill == NULL) {
        error = create_native(hip, &gpu->fill);
    }
    if (error == hipSuccess && gpu->copy == NULL) {
        error = create_native(hip, &gpu->copy);
    }
    pthread_mutex_unlock(&services_lock);
    return error;
}

/* ---- Creating and destroying ---- */

static iris_status_t create(struct hip_backend *hip, hipStream_t native,
                            bool owned, struct iris_stream **stream_p)
{
    struct hip_stream *stream = calloc(1, sizeof *stream);

    if (stream == NULL) {
        return iris_i_hip_refuse(hip, IRIS_ERR_NO_MEMORY, "no memory");
    }
    stream->base.backend = &hip->base;
    stream->hip = hip;
    stream->native = native;
    stream->owned = owned;
    stream->shared = !owned;
    pthread_mutex_init(&stream->lock, NULL);
    pthread_mutex_lock(&hip->streams_lock);
    stream->next = hip->streams;
    hip->streams = stream;
    pthread_mutex_unlock(&hip->streams_lock);
    *stream_p = &stream->base;
    return IRIS_OK;
}

static void unlist(struct hip_stream *stream)
{
    struct hip_backend *hip = stream->hip;
    struct hip_stream **link = &hip->streams;

    pthread_mutex_lock(&hip->streams_lock);
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    for (size_t i = 0; i < HIP_STAGE_BLOCKS; i++) {
        if (hip->stage[i].user == stream) {
            hip->stage[i].user = NULL;
        }
    }
    pthread_mutex_unlock(&hip->streams_lock);
}

/* Frees an idle stream. */
static void destroy(struct hip_stream *stream)
{
    iris_i_hip_call_off_errands(stream);
    unlist(stream);
    for (size_t i = 0; i < HIP_EVENTS; i++) {
        if (stream->events[i].event != NULL) {
            (void)hipEventDestroy(stream->events[i].event);
        }
    }
    if (stream->followed != NULL) {
        (void)hipEventDestroy(stream->followed);
    }
    if (stream->owned) {
        destroy_native(&stream->native);
    }
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

iris_status_t iris_i_hip_streams_open(struct hip_backend *hip)
{
    iris_status_t status =
        iris_i_hip_fail(hip, join_services(hip), "no stream");

    if (status == IRIS_OK) {
        iris_i_hip_prepare(hip);
        status = create(hip, hip->gpu->fill, false, &hip->filler);
    }
    return status;
}

/* The last context that leaves the GPU destroys the shared streams. */
void iris_i_hip_streams_close(struct hip_backend *hip)
{
    if (hip->filler != NULL && !hip->stuck) {
        destroy((struct hip_stream *)hip->filler);
    }
    pthread_mutex_lock(&services_lock);
    if (iris_i_hip_memory_leave(hip) && !iris_i_hip_any_stuck()) {
        destroy_native(&hip->gpu->fill);
        destroy_native(&hip->gpu->copy);
        hip->gpu->tried = false; /* the next ones may share a queue */
    }
    pthread_mutex_unlock(&services_lock);
}

iris_status_t iris_i_hip_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    hipStream_t native = NULL;
    iris_status_t status =
        iris_i_hip_fail(hip, create_native(hip, &native), "no stream");

    status = status ? status : create(hip, native, true, stream_p);
    if (status != IRIS_OK) {
        destroy_native(&native);
    }
    return status;
}

/* The stream may be new. It is not if it has work, or is capturing. The next
 * enqueue reports an error. */
static void begin_work(const struct hip_backend *hip, hipStream_t native,
                       hipStreamCaptureStatus capture)
{
    if (native != NULL && capture == hipStreamCaptureStatusNone &&
        hipStreamQuery(native) == hipSuccess) {
        (void)iris_i_hip_give_first_work(hip, native);
    }
}

iris_status_t iris_i_hip_stream_wrap(struct iris_backend *backend, void *native,
                                     struct iris_stream **stream_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    hipStreamCaptureStatus capture = hipStreamCaptureStatusNone;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    int device = hip->device;
    hipError_t error = hipStreamIsCapturing(native, &capture);

    error = error ? error : iris_i_hip_stream_device(native, &device);
    if (error != hipSuccess) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "iris_stream_wrap: native %p is no stream of GPU "
                           "%d: %s; pass a stream made on it",
                           native, hip->device, hipGetErrorString(error));
    }
    if (device != hip->device) {
        return iris_i_fail(NULL, IRIS_ERR_INVALID,
                           "iris_stream_wrap: native %p is a stream of GPU "
                           "%d, but rank %d has GPU %d; pass a stream made "
                           "on it",
                           native, device, hip->params.rank, hip->device);
    }
    begin_work(hip, native, capture);
    return create(hip, native, false, stream_p);
}

void *iris_i_hip_native(struct iris_stream *stream)
{
    atomic_store(&((struct hip_stream *)stream)->shared, true);
    return ((struct hip_stream *)stream)->native;
}

/* ---- Other libraries' calls ---- */

struct native_call {
    iris_native_call_t function;
    void *what;
};

static iris_status_t do_call(struct hip_stream *stream, void *what)
{
    const struct native_call *call = what;

    return call->function(stream->native, call->what);
}

iris_status_t iris_i_hip_call(struct iris_stream *stream,
                              iris_native_call_t function, void *what)
{
    struct native_call call = {function, what};

    return iris_i_hip_enqueue(stream, 1, do_call, &call);
}

/* ---- Order between streams ---- */

static iris_status_t do_mark(struct hip_stream *stream, void *what)
{
    hipError_t error = hipSuccess;

    (void)what;
    if (stream->followed == NULL) {
        error =
            hipEventCreateWithFlags(&stream->followed, hipEventDisableTiming);
    }
    error = error ? error : hipEventRecord(stream->followed, stream->native);
    return iris_i_hip_fail(stream->hip, error, "an event of a stream");
}

static iris_status_t do_follow(struct hip_stream *stream, void *what)
{
    const struct hip_stream *other = what;
    hipError_t error = hipStreamWaitEvent(stream->native, other->followed, 0);

    /* Functions that count the stream's work must not query it any more. */
    stream->capturing = stream->capturing || other->capturing;
    return iris_i_hip_fail(stream->hip, error, "a wait for another stream");
}

/* If another thread marks the other stream again in between, the wait covers
 * more of its work. */
iris_status_t iris_i_hip_follow(struct iris_stream *stream,
                                struct iris_stream *other)
{
    iris_status_t status = iris_i_hip_enqueue(other, 1, do_mark, NULL);

    return status ? status : iris_i_hip_enqueue(stream, 1, do_follow, other);
}

/* ---- The end ---- */

static void end_capture(struct hip_stream *stream)
{
    hipGraph_t graph = NULL;

    if (iris_i_hip_capturing(stream) &&
        hipStreamEndCapture(stream->native, &graph) == hipSuccess) {
        (void)hipGraphDestroy(graph);
    }
}

/* A stream whose work does not end is not freed, nor is the memory that the
 * work may use. */
void iris_i_hip_stream_destroy(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t had = iris_i_hip_check(hip), status;
    bool finished;

    end_capture(stream);
    status = iris_i_hip_wait_all(stream, HIP_WORK, &finished);
    /* A rank that leaves on purpose ends its kernels itself. */
    if (had == IRIS_OK && status != IRIS_OK && status != IRIS_ERR_STATE) {
        iris_i_error(NULL, "rank %d: work of a destroyed stream failed: %s",
                     hip->params.rank, iris_last_error());
    }
    if (finished) {
        destroy(stream);
    } else {
        iris_i_hip_stick(hip);
    }
}
