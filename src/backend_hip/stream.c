/* SPDX-License-Identifier: MIT
 *
 * Streams of a GPU: the host's wait, the life of a stream, and every kind of work.
 *
 * All work is enqueued by enqueue_calls(): it returns the fault if there is one,
 * waits until the stream has space, and calls a function of the kind of work with
 * the stream's lock held (queue.c). A wait for a stream polls its numbers; it
 * asks for the fault, for the peers' fate and the deadline, and raises the
 * fault if it has to end early (fault.c).
 *
 * Host memory that is not pinned goes through the stage, blocks of pinned memory
 * whose last user is known, or by an errand. A kernel's code is looked up once for
 * a GPU, and again after images were removed. Streams of the program are wrapped:
 * their waits count as calls that stand for the program's own work.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include "backend/backend.h"
#include <iris/device/kernels/signal_args.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The host's wait for a stream, or for space in it ---- */

#define HIP_WORK "work on a stream was"

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
        (void)iris_i_hip_fail(hip, error, "work failed%s",
                              hip->params.far != NULL &&
                                      hip->params.far->ring != NULL
                                  ? " (kernels compiled without -DIRIS_FAR=1 "
                                    "cannot reach ranks of other nodes)"
                                  : "");
        iris_i_hip_raise(hip, IRIS_ERR_DEVICE);
    }
    return error != hipErrorNotReady;
}

static iris_status_t check_fate(void *arg)
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
    .pace = IRIS_PACE_QUEUE, .fate = check_fate, .late = fail_late};

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

/* Waits until all earlier work is done (*finished_p), or is given up. Returns
 * the fault, if there is one. `what` is the subject of a message, with its
 * verb. */
static iris_status_t wait_for_all(struct hip_stream *stream, const char *what,
                                  bool *finished_p)
{
    struct work work = {stream, stream->shared ? 0 : stream->submitted, what};

    return wait_for(&work, finished_p);
}

static iris_status_t synchronize_stream(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);
    bool finished;

    /* The program may free memory that earlier work used. */
    atomic_fetch_add_explicit(&stream->hip->waits, 1, memory_order_relaxed);
    return iris_i_hip_capturing(stream)
               ? iris_i_hip_fail_captured(stream->hip, "waiting for a stream")
               : wait_for_all(stream, HIP_WORK, &finished);
}

static int query_stream(struct iris_stream *base, uint64_t *target_p)
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

/* A kind of work: calls the runtime, with the stream's lock held. */
typedef iris_status_t (*hip_enqueue_t)(struct hip_stream *stream, void *what);

/* Calls `enqueue` once there is room for this number of runtime calls. Returns its
 * status, or the reason why it was not called. */
static iris_status_t enqueue_calls(struct iris_stream *base, size_t calls,
                                   hip_enqueue_t enqueue, void *what)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(stream->hip);
    iris_status_t status = iris_i_fault_of(base, iris_i_hip_check(stream->hip));
    bool finished;

    while (status == IRIS_OK) {
        uint64_t target = iris_i_hip_begin(stream, calls);
        struct work space = {stream, target, HIP_WORK};

        if (target == 0) {
            status = enqueue(stream, what);
            iris_i_hip_end(stream, calls);
            break;
        }
        status = wait_for(&space, &finished);
    }
    return status;
}

/* ---- The life of a stream ---- */

/* ---- Streams shared by all contexts of a GPU in this process ---- */

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
    IRIS_REQUIRES(hip->gpu->making_lock)
{
    struct hip_gpu *gpu = hip->gpu;
    hipError_t error = hipSuccess;

    if (gpu->fill == NULL) {
        error = create_native(hip, &gpu->fill);
    }
    if (error == hipSuccess && gpu->copy == NULL) {
        error = create_native(hip, &gpu->copy);
    }
    return error;
}

/* ---- Creating and destroying ---- */

static iris_status_t create_stream(struct hip_backend *hip, hipStream_t native,
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

static void unlist_stream(struct hip_stream *stream)
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
static void destroy_stream(struct hip_stream *stream) IRIS_UNCHECKED
{
    iris_i_hip_call_off_errands(stream);
    unlist_stream(stream);
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
        iris_i_hip_return_queue(stream->hip);
    }
    pthread_mutex_destroy(&stream->lock);
    free(stream);
}

iris_status_t iris_i_hip_streams_open(struct hip_backend *hip)
{
    hipError_t prepared, error;
    iris_status_t status;

    pthread_mutex_lock(&hip->gpu->making_lock);
    error = join_services(hip);
    prepared = error ? hipSuccess : iris_i_hip_prepare(hip);
    pthread_mutex_unlock(&hip->gpu->making_lock);
    status = iris_i_hip_fail(hip, error, "no stream");
    if (status == IRIS_OK) {
        iris_i_hip_warn_of_streams(hip, prepared);
        status = create_stream(hip, hip->gpu->fill, false, &hip->filler);
    }
    return status;
}

/* The last context that leaves the GPU destroys the shared streams. */
void iris_i_hip_streams_close(struct hip_backend *hip)
{
    if (hip->filler != NULL && !hip->stuck) {
        destroy_stream((struct hip_stream *)hip->filler);
    }
    pthread_mutex_lock(&hip->gpu->making_lock);
    if (iris_i_hip_memory_leave(hip) && !iris_i_hip_any_stuck()) {
        destroy_native(&hip->gpu->fill);
        destroy_native(&hip->gpu->copy);
        hip->gpu->tried = false; /* the next ones may share a queue */
    }
    pthread_mutex_unlock(&hip->gpu->making_lock);
}

iris_status_t iris_i_hip_stream_create(struct iris_backend *backend,
                                       struct iris_stream **stream_p)
{
    struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    hipStream_t native = NULL;
    iris_status_t status = iris_i_hip_take_queue(hip);
    hipError_t error;

    if (status != IRIS_OK) {
        return status;
    }
    pthread_mutex_lock(&hip->gpu->making_lock);
    error = create_native(hip, &native);
    pthread_mutex_unlock(&hip->gpu->making_lock);
    status = iris_i_hip_fail(hip, error, "no stream");
    status = status ? status : create_stream(hip, native, true, stream_p);
    if (status != IRIS_OK) {
        destroy_native(&native);
        iris_i_hip_return_queue(hip);
    }
    return status;
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
    /* The stream may be new. It is not if it has work, or is capturing. The next
     * enqueue reports an error. */
    if (native != NULL && capture == hipStreamCaptureStatusNone &&
        hipStreamQuery(native) == hipSuccess) {
        (void)iris_i_hip_give_first_work(hip, native);
    }
    return create_stream(hip, native, false, stream_p);
}

static void *get_native(struct iris_stream *stream)
{
    atomic_store(&((struct hip_stream *)stream)->shared, true);
    return ((struct hip_stream *)stream)->native;
}

/* ---- Other libraries' calls ---- */

struct native_call {
    iris_native_call_t function;
    void *what;
    int apart;
};

/* Whether a stream of this backend captures, or one that the runtime's default
 * stream would wait for. */
static bool any_captures(struct hip_backend *hip)
{
    hipStreamCaptureStatus status;
    bool found =
        hipStreamIsCapturing(NULL, &status) == hipErrorStreamCaptureImplicit;

    pthread_mutex_lock(&hip->streams_lock);
    for (struct hip_stream *one = hip->streams; one != NULL && !found;
         one = one->next) {
        found = iris_i_hip_capturing(one);
    }
    pthread_mutex_unlock(&hip->streams_lock);
    return found;
}

static iris_status_t do_call(struct hip_stream *stream, void *what)
{
    const struct native_call *call = what;

    return call->apart && any_captures(stream->hip)
               ? iris_i_hip_fail_captured(
                     stream->hip,
                     "the first product, which opens the GPU's library,")
               : call->function(stream->native, call->what);
}

static iris_status_t enqueue_call(struct iris_stream *stream,
                                  iris_native_call_t function, void *what,
                                  int apart)
{
    struct native_call call = {function, what, apart};

    return enqueue_calls(stream, 1, do_call, &call);
}

/* ---- Order between streams ---- */

/* A point of another stream. */
struct mark {
    hipEvent_t event;
    bool capturing;
};

static iris_status_t do_mark(struct hip_stream *stream, void *what)
    IRIS_REQUIRES(stream->lock)
{
    struct mark *mark = what;
    hipError_t error = hipSuccess;

    if (stream->followed == NULL) {
        error =
            hipEventCreateWithFlags(&stream->followed, hipEventDisableTiming);
    }
    error = error ? error : hipEventRecord(stream->followed, stream->native);
    *mark = (struct mark){stream->followed, stream->capturing};
    return iris_i_hip_fail(stream->hip, error, "an event of a stream");
}

static iris_status_t do_follow(struct hip_stream *stream, void *what)
    IRIS_REQUIRES(stream->lock)
{
    const struct mark *mark = what;
    hipError_t error = hipStreamWaitEvent(stream->native, mark->event, 0);

    /* Functions that count the stream's work must not query it any more. */
    stream->capturing = stream->capturing || mark->capturing;
    return iris_i_hip_fail(stream->hip, error, "a wait for another stream");
}

/* If another thread marks the other stream again in between, the wait covers
 * more of its work. */
static iris_status_t enqueue_follow(struct iris_stream *stream,
                                    struct iris_stream *other)
{
    struct mark mark;
    iris_status_t status = enqueue_calls(other, 1, do_mark, &mark);

    return status ? status : enqueue_calls(stream, 1, do_follow, &mark);
}

/* ---- The end ---- */

/* A stream whose work does not end is not freed, nor is the memory that the
 * work may use. */
void iris_i_hip_stream_destroy(struct iris_stream *base)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    struct hip_backend *hip = (struct hip_backend *)base->backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t had = iris_i_hip_check(hip), status;
    hipGraph_t graph = NULL;
    bool finished;

    if (iris_i_hip_capturing(stream) &&
        hipStreamEndCapture(stream->native, &graph) == hipSuccess) {
        (void)hipGraphDestroy(graph);
    }
    status = wait_for_all(stream, HIP_WORK, &finished);
    /* A rank that leaves on purpose ends its kernels itself. */
    if (had == IRIS_OK && status != IRIS_OK && status != IRIS_ERR_STATE) {
        iris_i_error(NULL, "rank %d: work of a destroyed stream failed: %s",
                     hip->params.rank, iris_last_error());
    }
    if (finished) {
        destroy_stream(stream);
    } else {
        iris_i_hip_stick(hip);
    }
}

/* ---- Copies and fills ---- */

/* The most calls of a staged copy after the first. */
#define MORE_CALLS 2

/* ---- The stage ---- */

/* Finds this number of adjacent free blocks for the stream's next work. Returns
 * the first one's index, or the number of blocks if there is no room. */
static size_t take_blocks(const struct hip_stream *stream, size_t count)
{
    struct hip_backend *hip = stream->hip;
    size_t run = 0, end = 0;

    pthread_mutex_lock(&hip->streams_lock);
    for (; end < HIP_STAGE_BLOCKS && run < count; end++) {
        const struct hip_block *block = &hip->stage[end];
        bool is_free =
            block->user == NULL || block->user->completed >= block->number;

        run = is_free ? run + 1 : 0;
    }
    for (size_t i = end - run; i < end && run == count; i++) {
        hip->stage[i].user = stream;
        hip->stage[i].number = stream->submitted + MORE_CALLS + 1;
    }
    pthread_mutex_unlock(&hip->streams_lock);
    return run == count ? end - run : HIP_STAGE_BLOCKS;
}

/* Pinned memory for the stream's next work, or NULL. */
static char *take_stage(struct hip_stream *stream, size_t bytes)
{
    struct hip_backend *hip = stream->hip;
    size_t count =
        bytes / HIP_STAGE_BLOCK_BYTES + (bytes % HIP_STAGE_BLOCK_BYTES != 0);
    size_t first = take_blocks(stream, count);

    if (first == HIP_STAGE_BLOCKS && count <= HIP_STAGE_BLOCKS) {
        iris_i_hip_update_all(hip, stream);
        first = take_blocks(stream, count);
    }
    return first == HIP_STAGE_BLOCKS ? NULL : hip->pinned->blocks[first];
}

/* ---- Copies ---- */

/* Whether the address is in a heap that this backend has mapped. Then it is
 * device memory. */
static bool is_heap(const struct hip_backend *hip, const void *ptr)
{
    uintptr_t at = (uintptr_t)ptr;
    bool found = at - (uintptr_t)hip->heap.base < hip->heap.bytes;

    for (const struct hip_import *one = hip->imports; one != NULL && !found;
         one = one->next) {
        found = at - (uintptr_t)one->base < one->bytes;
    }
    return found;
}

/* Whether the GPU does not know the memory: neither device nor pinned. If that
 * is unknown, the runtime has to make the copy, because the CPU must not access
 * memory that may be on the device. */
static bool needs_stage(const struct hip_backend *hip, const void *ptr)
{
    hipPointerAttribute_t what;

    return !is_heap(hip, ptr) && iris_i_hip_is_pageable(ptr, &what);
}

/* The runtime's own copy, which makes the host wait if the memory is
 * pageable. */
static hipError_t copy_direct(struct hip_stream *stream, void *dst,
                              const void *src, size_t bytes)
{
    return hipMemcpyAsync(dst, src, bytes, hipMemcpyDefault, stream->native);
}

/* Copies from the host to the device. Fills the stage at once, unless an errand
 * of this process has not written the source yet. Then the stage is filled in
 * the stream's order, since the stream may wait for that errand's stream. */
static hipError_t put_staged(struct hip_stream *stream,
                             const struct hip_errand *copy, char *stage)
{
    const struct hip_errand fill = {
        .dst = stage, .src = copy->src, .bytes = copy->bytes};
    hipError_t error = hipSuccess;

    if (iris_i_hip_errand_writes(copy->src, copy->bytes)) {
        error = iris_i_hip_send_errand(stream, &fill);
    } else {
        memcpy(stage, copy->src, copy->bytes);
    }
    return error ? error : copy_direct(stream, copy->dst, stage, copy->bytes);
}

static hipError_t get_staged(struct hip_stream *stream,
                             const struct hip_errand *copy, char *stage)
{
    struct hip_errand empty = *copy;
    hipError_t error = copy_direct(stream, stage, copy->src, copy->bytes);

    empty.src = stage;
    return error ? error : iris_i_hip_send_errand(stream, &empty);
}

struct copy {
    struct hip_errand what;
    bool full; /* the stage has no space, and nothing was done */
};

static hipError_t copy_staged(struct hip_stream *stream, struct copy *copy,
                              bool to_host)
{
    char *stage = take_stage(stream, copy->what.bytes);

    copy->full = stage == NULL;
    if (copy->full) {
        return hipSuccess;
    }
    stream->submitted += MORE_CALLS;
    return to_host ? get_staged(stream, &copy->what, stage)
                   : put_staged(stream, &copy->what, stage);
}

static iris_status_t do_copy(struct hip_stream *stream, void *what)
    IRIS_REQUIRES(stream->lock)
{
    const struct hip_backend *hip = stream->hip;
    struct copy *call = what;
    const struct hip_errand *copy = &call->what;
    bool from_host = needs_stage(hip, copy->src);
    bool to_host = needs_stage(hip, copy->dst);
    hipError_t error;

    if (call->full || (!from_host && !to_host)) {
        error = copy_direct(stream, copy->dst, copy->src, copy->bytes);
    } else if (stream->capturing) {
        return iris_i_hip_fail_captured(
            hip, "a copy of host memory that is not pinned");
    } else {
        error = from_host && to_host ? iris_i_hip_send_errand(stream, copy)
                                     : copy_staged(stream, call, to_host);
    }
    return iris_i_hip_fail(hip, error, "a copy of %zu bytes from %p to %p",
                           copy->bytes, copy->src, copy->dst);
}

/* If the copy is too large for the stage, this waits for the stream here, where
 * it watches the peers and the deadline. The runtime's wait does not. */
static iris_status_t enqueue_copy(struct iris_stream *base, void *dst,
                                  const void *src, size_t bytes)
{
    struct copy copy = {.what = {.dst = dst, .src = src, .bytes = bytes}};
    iris_status_t status = enqueue_calls(base, 1, do_copy, &copy);

    if (copy.full) {
        status = synchronize_stream(base);
        status = status ? status : enqueue_calls(base, 1, do_copy, &copy);
    }
    return status;
}

static iris_status_t do_copy_rows(struct hip_stream *stream, void *what)
{
    const struct hip_backend *hip = stream->hip;
    const struct iris_copy_rows *rows = what;

    /* No runtime accepts larger pitches, and the stage has no rows. */
    if (rows->dst_pitch > INT32_MAX || rows->src_pitch > INT32_MAX ||
        needs_stage(hip, rows->src) || needs_stage(hip, rows->dst)) {
        return IRIS_ERR_UNSUPPORTED;
    }
    return iris_i_hip_fail(hip,
                           hipMemcpy2DAsync(rows->dst, rows->dst_pitch,
                                            rows->src, rows->src_pitch,
                                            rows->row_bytes, rows->rows,
                                            hipMemcpyDefault, stream->native),
                           "a copy of %zu rows of %zu bytes from %p to %p",
                           rows->rows, rows->row_bytes, rows->src, rows->dst);
}

static iris_status_t enqueue_rows(struct iris_stream *stream,
                                  const struct iris_copy_rows *rows)
{
    struct iris_copy_rows copy = *rows;

    return enqueue_calls(stream, 1, do_copy_rows, &copy);
}

static iris_status_t do_set(struct hip_stream *stream, void *what)
    IRIS_REQUIRES(stream->lock)
{
    const struct hip_backend *hip = stream->hip;
    const struct hip_errand *fill = what;
    hipError_t error;

    if (!needs_stage(hip, fill->dst)) {
        error =
            hipMemsetAsync(fill->dst, fill->value, fill->bytes, stream->native);
    } else if (stream->capturing) {
        return iris_i_hip_fail_captured(
            hip, "a fill of host memory that is not pinned");
    } else {
        error = iris_i_hip_send_errand(stream, fill);
    }
    return iris_i_hip_fail(hip, error, "a fill of %zu bytes at %p", fill->bytes,
                           fill->dst);
}

static iris_status_t enqueue_set(struct iris_stream *stream, void *dst,
                                 int value, size_t bytes)
{
    struct hip_errand fill = {.dst = dst, .value = value, .bytes = bytes};

    return enqueue_calls(stream, 1, do_set, &fill);
}

/* ---- New memory of the heap ---- */

static iris_status_t do_zero(struct hip_stream *stream, void *what)
{
    const struct hip_backend *hip = stream->hip;
    const struct hip_memory *memory = what;

    return iris_i_hip_fail(
        hip, hipMemsetAsync(memory->ptr, 0, memory->bytes, stream->native),
        "%zu bytes of new heap are not filled with zeros", memory->bytes);
}

iris_status_t iris_i_hip_zero(struct hip_backend *hip, void *base, size_t bytes)
{
    struct hip_memory memory = {.ptr = base, .bytes = bytes};
    iris_status_t status = enqueue_calls(hip->filler, 1, do_zero, &memory);
    bool finished = true;

    if (status == IRIS_OK) {
        status = wait_for_all((struct hip_stream *)hip->filler,
                              "filling new memory of the heap "
                              "(iris_init, iris_malloc) was",
                              &finished);
    }
    if (!finished) {
        iris_i_hip_stick(hip);
    }
    return status;
}

/* ---- Signals and waits without a kernel ---- */

/* Lists the wait before the stream gets it, so that a fault finds it. */
static iris_status_t do_wait(struct hip_stream *stream, void *what)
    IRIS_REQUIRES(stream->lock)
{
    struct hip_backend *hip = stream->hip;
    struct hip_wait *wait = what;
    hipError_t error;

    if (stream->capturing || !iris_i_hip_list_wait(stream, wait)) {
        return IRIS_ERR_UNSUPPORTED;
    }
    error = hipStreamWaitValue64(
        stream->native, wait->place, wait->value,
        wait->cmp == IRIS_CMP_EQ ? hipStreamWaitValueEq : hipStreamWaitValueGte,
        UINT64_MAX);
    if (error != hipSuccess) {
        iris_i_hip_unlist_wait(stream);
    }
    return error == hipErrorNotSupported
               ? IRIS_ERR_UNSUPPORTED
               : iris_i_hip_fail(hip, error, "a wait at %p",
                                 (void *)wait->place);
}

struct signal {
    uint64_t *place;
    uint64_t value;
};

static iris_status_t do_signal(struct hip_stream *stream, void *what)
    IRIS_REQUIRES(stream->lock)
{
    const struct signal *signal = what;
    hipError_t error = hipSuccess;

    if (stream->capturing) {
        return IRIS_ERR_UNSUPPORTED;
    }
    error =
        hipStreamWriteValue64(stream->native, signal->place, signal->value, 0);
    return iris_i_hip_fail(stream->hip, error, "a signal at %p",
                           (void *)signal->place);
}

static iris_status_t enqueue_signal(struct iris_stream *stream, uint64_t *place,
                                    uint64_t value)
{
    struct signal signal = {place, value};

    return HIP_QUEUE_WAITS ? enqueue_calls(stream, 1, do_signal, &signal)
                           : IRIS_ERR_UNSUPPORTED;
}

/* GE compares the signed difference with 0. That equals an unsigned comparison
 * with the awaited value as long as the value is below 2^63. */
static iris_status_t enqueue_wait(struct iris_stream *stream, uint64_t *place,
                                  iris_cmp_t cmp, uint64_t value)
{
    struct hip_wait wait = {.place = place, .cmp = cmp, .value = value};

    return HIP_QUEUE_WAITS && (cmp == IRIS_CMP_EQ ||
                               (cmp == IRIS_CMP_GE && value <= INT64_MAX))
               ? enqueue_calls(stream, 1, do_wait, &wait)
               : IRIS_ERR_UNSUPPORTED;
}

/* ---- Captures and graphs ---- */

struct hip_graph {
    hipGraphExec_t exec;
    size_t num_nodes;
};

/* Relaxed mode: a kernel's image is loaded at its first launch, which may be in
 * a capture, and the other modes forbid that. */
static iris_status_t do_begin(struct hip_stream *stream, void *what)
    IRIS_REQUIRES(stream->lock)
{
    const struct hip_backend *hip = stream->hip;
    hipError_t error;

    (void)what;
    if (stream->capturing) {
        return iris_i_hip_fail_captured(hip, "the beginning of a capture");
    }
    error = hipStreamBeginCapture(stream->native, hipStreamCaptureModeRelaxed);
    stream->capturing = error == hipSuccess;
    return iris_i_hip_fail(hip, error, "a capture cannot begin");
}

static iris_status_t begin_capture(struct iris_stream *stream)
{
    return enqueue_calls(stream, 1, do_begin, NULL);
}

/* Instantiates the captured graph. */
static hipError_t prepare_graph(struct hip_stream *stream,
                                struct hip_graph *graph)
{
    hipGraph_t captured = NULL;
    hipError_t error = hipStreamEndCapture(stream->native, &captured);

    error = error ? error : hipGraphGetNodes(captured, NULL, &graph->num_nodes);
    error = error ? error
                  : hipGraphInstantiate(&graph->exec, captured, NULL, NULL, 0);
    if (captured != NULL) {
        (void)hipGraphDestroy(captured);
    }
    graph->num_nodes += graph->num_nodes == 0; /* a launch counts as at least
                                                * one */
    return error;
}

static iris_status_t finish_capture(struct iris_stream *base, void **graph_p)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    const struct hip_backend *hip = (struct hip_backend *)base->backend;
    struct hip_graph *graph = calloc(1, sizeof *graph);
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t status =
        graph == NULL ? iris_i_hip_refuse(hip, IRIS_ERR_NO_MEMORY, "no memory")
        : iris_i_hip_capturing(stream)
            ? iris_i_hip_fail(hip, prepare_graph(stream, graph),
                              "the capture gives no graph")
            : iris_i_hip_refuse(hip, IRIS_ERR_STATE,
                                "iris_capture_end without iris_capture_begin "
                                "on this stream");

    if (status != IRIS_OK) {
        free(graph);
        return status;
    }
    *graph_p = graph;
    return IRIS_OK;
}

static iris_status_t do_graph(struct hip_stream *stream, void *exec)
    IRIS_REQUIRES(stream->lock)
{
    const struct hip_backend *hip = stream->hip;

    return stream->capturing
               ? iris_i_hip_fail_captured(hip, "the launch of a graph")
               : iris_i_hip_fail(hip, hipGraphLaunch(exec, stream->native),
                                 "launch of a graph");
}

static iris_status_t launch_graph(struct iris_stream *stream, void *handle)
{
    const struct hip_graph *graph = handle;

    return enqueue_calls(stream, graph->num_nodes, do_graph, graph->exec);
}

void iris_i_hip_graph_destroy(struct iris_backend *backend, void *handle)
{
    const struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct hip_graph *graph = handle;

    if (!hip->stuck) {
        (void)hipGraphExecDestroy(graph->exec);
    }
    free(graph);
}

/* ---- Launches ---- */

/* Time that a copy may take beside a kernel that waits. */
#define COPY_MS 1000

/* An image of GPU code that is loaded on a device, for all contexts of the
 * process. It stays: after the program unloads an object with its image, graphs
 * and streams may still have its kernels. */
struct hip_image {
    struct hip_image *next;
    const void *image;
    uint64_t serial;
    int device;
    hipModule_t module;
};

/* Held around all loading of code: with ROCm 7.2.3, threads that load at once
 * may wait for each other forever (legacy-rocm-build #6577). */
static pthread_mutex_t images_lock = PTHREAD_MUTEX_INITIALIZER;
static struct hip_image *images IRIS_GUARDED_BY(images_lock);

static hipError_t load_image(const struct hip_backend *hip, const void *image,
                             uint64_t serial, hipModule_t *module_p)
    IRIS_REQUIRES(images_lock)
{
    struct hip_image *one = images;
    hipError_t error;

    while (one != NULL && (one->image != image || one->serial != serial ||
                           one->device != hip->device)) {
        one = one->next;
    }
    if (one != NULL) {
        *module_p = one->module;
        return hipSuccess;
    }
    one = malloc(sizeof *one);
    error =
        one == NULL ? hipErrorOutOfMemory : hipModuleLoadData(module_p, image);
    if (error != hipSuccess) {
        free(one);
        return error;
    }
    iris_i_hip_load_functions(*module_p);
    *one = (struct hip_image){images, image, serial, hip->device, *module_p};
    images = one;
    return hipSuccess;
}

/* An image that is not for this GPU is an error only when one of its kernels is
 * launched. */
static void load_ahead(void *argument, const void *image, uint64_t serial)
{
    hipModule_t module;

    pthread_mutex_lock(&images_lock);
    (void)load_image(argument, image, serial, &module);
    pthread_mutex_unlock(&images_lock);
}

void iris_i_hip_load_images(struct hip_backend *hip)
{
    iris_i_each_image(load_ahead, hip);
}

static iris_status_t fail_function(const struct hip_backend *hip,
                                   const struct iris_kernel *kernel,
                                   hipError_t error)
{
    if (error == hipErrorNoBinaryForGpu || error == hipErrorInvalidImage ||
        error == hipErrorNotFound) {
        return iris_i_hip_refuse(hip, IRIS_ERR_UNSUPPORTED,
                                 "kernel %s has no code for %s: %s. Build it "
                                 "with iriscc --offload-arch=<this GPU's>",
                                 kernel->name, hip->info.name,
                                 hipGetErrorString(error));
    }
    return iris_i_hip_fail(hip, error, "kernel %s cannot be loaded",
                           kernel->name);
}

/* Looks a kernel up in its image. */
static iris_status_t load_function(const struct hip_backend *hip,
                                   const struct iris_kernel *kernel,
                                   hipFunction_t *function_p)
{
    uint64_t serial = iris_i_image_serial(kernel->gpu_image);
    char name[256];
    hipModule_t module;
    hipError_t error;

    snprintf(name, sizeof name, "%s_gpu", kernel->name);
    pthread_mutex_lock(&images_lock);
    error = load_image(hip, kernel->gpu_image, serial, &module);
    error = error ? error : hipModuleGetFunction(function_p, module, name);
    pthread_mutex_unlock(&images_lock);
    return fail_function(hip, kernel, error);
}

/* The kernel's code on this device, from the table or newly loaded. After an
 * image was removed, any kernel address may belong to another kernel. */
static iris_status_t find_function(struct hip_backend *hip,
                                   const struct iris_kernel *kernel,
                                   hipFunction_t *function_p)
{
    struct hip_function *slot =
        &hip->functions[((uintptr_t)kernel >> 4) % HIP_FUNCTION_SLOTS];
    uint64_t removed = iris_i_images_removed();
    iris_status_t status = IRIS_OK;

    pthread_mutex_lock(&hip->functions_lock);
    if (slot->kernel != kernel || slot->removed != removed) {
        status = load_function(hip, kernel, &slot->function);
        slot->kernel = status == IRIS_OK ? kernel : NULL;
        slot->removed = removed;
    }
    *function_p = slot->function;
    pthread_mutex_unlock(&hip->functions_lock);
    return status;
}

static hipError_t launch_code(hipFunction_t function, hipStream_t native,
                              const struct iris_launch *launch, size_t bytes)
{
    void *extra[] = {HIP_LAUNCH_PARAM_BUFFER_POINTER, (void *)launch->args,
                     HIP_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
                     HIP_LAUNCH_PARAM_END};

    return hipModuleLaunchKernel(function, launch->grid, 1, 1, launch->block, 1,
                                 1, 0, native, NULL, extra);
}

static bool launch_lane(struct hip_backend *hip, hipStream_t native,
                        const struct iris_kernel *kernel, const void *args)
{
    const struct iris_launch launch = {.grid = 1, .block = 1, .args = args};
    hipFunction_t function;

    return kernel != NULL && kernel->gpu_image != NULL &&
           find_function(hip, kernel, &function) == IRIS_OK &&
           launch_code(function, native, &launch, kernel->args_bytes) ==
               hipSuccess;
}

/* ---- Whether copies pass kernels that wait ---- */

static pthread_mutex_t try_lock = PTHREAD_MUTEX_INITIALIZER;

/* Launches a kernel that waits for the host. */
static bool start_wait(struct hip_stream *stream)
{
    struct hip_backend *hip = stream->hip;
    char *pinned = (char *)(uintptr_t)hip->info.watch;
    struct iris_wait_args args = {
        .context = (void *)((char *)hip->heap.base + IRIS_CONTEXT_OFFSET),
        .signal = (void *)(pinned + offsetof(struct hip_pinned, released)),
        .cmp = IRIS_CMP_NE};

    hip->pinned->released = 0;
    return launch_lane(hip, stream->native, hip->params.wait, &args);
}

/* Uses half of the limit of a wait inside a kernel, so that it ends before the
 * limit. */
static bool copy_in_time(const struct hip_backend *hip)
{
    int64_t most = hip->params.device_timeout_ms;
    int64_t ms = most > 0 && most / 2 < COPY_MS ? most / 2 : COPY_MS;
    hipStream_t native = hip->gpu->copy;
    hipError_t error =
        hipMemcpyAsync(&hip->pinned->copied, hip->heap.base, sizeof(uint64_t),
                       hipMemcpyDefault, native);
    struct iris_wait wait;

    iris_i_wait_moment(&wait, ms);
    error = error ? error : hipStreamQuery(native);
    while (error == hipErrorNotReady && iris_i_wait_tick(&wait) == IRIS_OK) {
        error = hipStreamQuery(native);
    }
    return error != hipErrorNotReady;
}

/* Streams may share a hardware queue. There a copy waits behind another rank's
 * kernel, and the kernel waits for the copy. Other ranks' launches wait for the
 * result of this test, so none of their kernels is in the way. */
static void try_copy(struct hip_stream *stream) IRIS_REQUIRES(stream->lock)
{
    struct hip_backend *hip = stream->hip;
    bool is_behind;

    if (hip->gpu->num_users < 2 || hip->gpu->tried || stream->capturing) {
        return;
    }
    pthread_mutex_lock(&try_lock);
    is_behind = !hip->gpu->tried && start_wait(stream) && !copy_in_time(hip);
    hip->pinned->released = 1;
    hip->gpu->tried = true;
    pthread_mutex_unlock(&try_lock);
    if (is_behind) {
        iris_i_warning(NULL,
                       "rank %d, GPU %d: a copy does not pass a kernel that "
                       "waits on another stream: ranks that share the GPU may "
                       "hang; %s, or use processes (IRIS_SPAWN=processes)",
                       hip->params.rank, hip->device,
                       IRIS_HIP_NVIDIA
                           ? "raise CUDA_DEVICE_MAX_CONNECTIONS"
                           : "raise GPU_MAX_HW_QUEUES, set "
                             "DEBUG_HIP_DYNAMIC_QUEUES=0 or HSA_ENABLE_SDMA=0");
    }
}

/* ---- Launching ---- */

/* A kernel that the program compiled with hipcc or nvcc has its own entry. */
static iris_status_t do_launch(struct hip_stream *stream, void *what)
    IRIS_REQUIRES(stream->lock)
{
    struct hip_backend *hip = stream->hip;
    const struct iris_launch *launch = what;
    const struct iris_kernel *kernel = launch->kernel;
    void *args[] = {(void *)launch->args};
    dim3 grid = {launch->grid, 1, 1}, block = {launch->block, 1, 1};
    hipFunction_t function = NULL;
    iris_status_t status;
    hipError_t error;

    try_copy(stream);
    if (kernel->gpu_entry != NULL) {
        error = hipLaunchKernel(kernel->gpu_entry, grid, block, args, 0,
                                stream->native);
    } else {
        status = find_function(hip, kernel, &function);
        if (status != IRIS_OK) {
            return status;
        }
        error =
            launch_code(function, stream->native, launch, kernel->args_bytes);
    }
    return iris_i_hip_fail(hip, error, "launch of kernel %s, grid %u, block %u",
                           kernel->name, launch->grid, launch->block);
}

static iris_status_t launch_kernel(struct iris_stream *stream,
                                   const struct iris_launch *launch)
{
    const struct hip_backend *hip = (struct hip_backend *)stream->backend;

    if (launch->kernel->gpu_image == NULL &&
        launch->kernel->gpu_entry == NULL) {
        return iris_i_hip_refuse(hip, IRIS_ERR_UNSUPPORTED,
                                 "no GPU version of kernel %s: build it with "
                                 "iriscc, or use IRIS_BACKEND=sim "
                                 "IRIS_SIM_DEVICE=cpu",
                                 launch->kernel->name);
    }
    return enqueue_calls(stream, 1, do_launch, (void *)(uintptr_t)launch);
}

const struct iris_queue_ops iris_i_hip_queue_ops = {
    .synchronize = synchronize_stream,
    .query = query_stream,
    .copy = enqueue_copy,
    .copy_rows = enqueue_rows,
    .set = enqueue_set,
    .launch = launch_kernel,
    .signal = enqueue_signal,
    .wait = enqueue_wait,
    .follow = enqueue_follow,
    .native = get_native,
    .call = enqueue_call,
    .capture_begin = begin_capture,
    .capture_end = finish_capture,
    .graph_launch = launch_graph,
};
