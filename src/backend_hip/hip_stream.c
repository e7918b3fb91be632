/* SPDX-License-Identifier: MIT
 *
 * Streams of a GPU: made, wrapped, synchronised, destroyed.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <stdlib.h>
#include <string.h>

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
    pthread_mutex_lock(&hip->streams_lock);
    stream->next = hip->streams;
    hip->streams = stream;
    pthread_mutex_unlock(&hip->streams_lock);
    *stream_p = &stream->base;
    return IRIS_OK;
}

static iris_status_t fail_create(const struct hip_backend *hip,
                                 hipError_t error)
{
    return iris_i_hip_fail(error, "rank %d gets no stream on GPU %d",
                           hip->params.rank, hip->device);
}

iris_status_t iris_i_hip_services_open(struct hip_backend *hip)
{
    struct iris_stream *filler = NULL;
    hipError_t error = iris_i_hip_services_share(hip);
    iris_status_t status;

    if (error != hipSuccess) {
        return fail_create(hip, error);
    }
    status = make(hip, hip->services.fill, false, &filler);
    if (status != IRIS_OK) {
        iris_i_hip_services_leave(hip);
    }
    hip->filler = (struct hip_stream *)filler;
    return status;
}

void iris_i_hip_services_close(struct hip_backend *hip)
{
    if (hip->filler == NULL) {
        return;
    }
    if (!hip->abandoned) {
        iris_i_hip_stream_free(hip->filler);
    }
    iris_i_hip_services_leave(hip);
}

iris_status_t iris_i_hip_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    struct hip_before before = iris_i_hip_enter(hip);
    hipStream_t native = NULL;
    iris_status_t status;
    hipError_t error = iris_i_hip_native_create(hip, &native);

    if (error != hipSuccess) {
        status = fail_create(hip, error);
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
    iris_status_t status;

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
         iris_i_hip_give_first_work(hip, native) != hipSuccess)) {
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
    status = make(hip, native, false, stream_p);
    if (status == IRIS_OK) {
        iris_i_hip_fault_share((struct hip_stream *)*stream_p);
    }
    return status;
}

static void unlist(struct hip_stream *stream)
{
    struct hip_backend *hip = (struct hip_backend *)stream->base.backend;
    struct hip_stream **link = &hip->streams;

    pthread_mutex_lock(&hip->streams_lock);
    while (*link != stream) {
        link = &(*link)->next;
    }
    *link = stream->next;
    pthread_mutex_unlock(&hip->streams_lock);
}

void iris_i_hip_stream_free(struct hip_stream *stream)
{
    unlist(stream);
    if (stream->mark != NULL) {
        (void)hipEventDestroy(stream->mark);
    }
    if (stream->half != NULL) {
        (void)hipEventDestroy(stream->half);
    }
    if (stream->owned) {
        (void)hipStreamDestroy(stream->native);
    }
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

void *iris_i_hip_stream_native(struct iris_stream *stream)
{
    iris_i_hip_fault_share((struct hip_stream *)stream);
    return ((struct hip_stream *)stream)->native;
}

iris_status_t iris_i_hip_stream_settle(struct hip_stream *stream)
{
    struct hip_outcome end;
    iris_status_t status = iris_i_hip_drain(stream, HIP_WORK, &end);

    return status == IRIS_OK && !end.finished
               ? iris_i_fail(NULL, IRIS_ERR_STATE,
                             "a kernel that cannot be ended holds the stream")
               : status;
}

iris_status_t iris_i_hip_zero(struct hip_backend *hip, void *base, size_t bytes)
{
    struct hip_stream *stream = hip->filler;
    struct hip_outcome end;
    iris_status_t status = iris_i_hip_enqueue_begin(stream);
    hipError_t error;

    if (status != IRIS_OK) {
        return status;
    }
    error = hipMemsetAsync(base, 0, bytes, stream->native);
    iris_i_hip_enqueue_end(stream);
    if (error != hipSuccess) {
        return iris_i_hip_fail(error,
                               "rank %d: %zu bytes of new heap on GPU %d are "
                               "not filled with zeros",
                               hip->params.rank, bytes, hip->device);
    }
    status = iris_i_hip_drain(
        stream,
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
    struct hip_outcome end;
    iris_status_t status = iris_i_hip_drain(stream, HIP_WORK, &end);

    *finished_p = end.finished;
    if (end.finished || end.why != IRIS_OK) {
        iris_i_hip_collect(hip);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_hip_fault_take(stream, &end, message);
    /* Another thread may have taken it before. */
    return status == IRIS_OK ? end.why
                             : iris_i_fail(NULL, status, "%s", message);
}

iris_status_t iris_i_hip_synchronize(struct iris_stream *base)
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
        iris_i_error(NULL, "rank %d: work of a destroyed stream failed: %s",
                     hip->params.rank, iris_last_error());
    }
    if (finished) {
        iris_i_hip_stream_free(stream);
    }
    iris_i_hip_leave(hip, before);
    if (!finished) { /* it uses the heaps; callbacks may still come */
        iris_i_hip_abandon(hip);
        pthread_mutex_lock(&hip->lock);
        base->next = hip->left;
        hip->left = base;
        pthread_mutex_unlock(&hip->lock);
    }
}
