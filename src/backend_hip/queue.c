/* SPDX-License-Identifier: MIT
 *
 * A stream's progress: its numbers, its errands and its waits, as the runtime
 * reports them. Nothing here knows faults or waits for anything.
 *
 * `submitted` counts the calls that a stream was given, `completed` those that are
 * done; both only grow, and memory that call n uses is free once n calls are
 * completed. Events tell: one is recorded now and then, in a ring, with the number
 * of calls before it. Three things need more care than that.
 *
 * An errand is a copy of pageable host memory that a thread of the runtime does as
 * a part of a call. HIP says that such a call is complete before its function has
 * run, so a stream is not done before its errands are. A wait is a word that the
 * stream itself waits for; it is listed, so that a fault can write the value that
 * ends it. A captured call is counted by the graph's launch alone.
 *
 * The stream's lock is held from begin to end of an enqueue: it keeps the numbers
 * in the order of the runtime's queue. A full queue of the driver may block that
 * call, so a thread that waits only tries the lock. The lock of the list of
 * streams guards the lists of waits.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Errands: the host's part of a stream's work ---- */

struct pending {
    struct pending *next;
    struct hip_errand what;
    const struct hip_stream *stream; /* NULL: cancelled */
    uint64_t number;                 /* the number of this errand's call in
                                      * the stream */
    bool begun;
};

static pthread_mutex_t pending_lock = PTHREAD_MUTEX_INITIALIZER;
/* In the order of their enqueueing, for all ranks of this process. */
static struct pending *pending IRIS_GUARDED_BY(pending_lock);

/* Removes it, if it is still listed. */
static void unlist_errand(const struct pending *one) IRIS_REQUIRES(pending_lock)
{
    struct pending **link = &pending;

    while (*link != NULL && *link != one) {
        link = &(*link)->next;
    }
    if (*link != NULL) {
        *link = one->next;
    }
}

static void end_errand(struct pending *one)
{
    pthread_mutex_lock(&pending_lock);
    unlist_errand(one);
    pthread_mutex_unlock(&pending_lock);
    free(one);
}

/* Runs in a thread of the runtime. After a failure of the GPU it may be called
 * at any time, even when the backend is gone. */
static void run_errand(hipStream_t native, hipError_t error, void *argument)
{
    struct pending *one = argument;
    const struct hip_errand *what = &one->what;
    bool wanted;

    (void)native;
    pthread_mutex_lock(&pending_lock);
    wanted = one->stream != NULL && error == hipSuccess;
    one->begun = true;
    pthread_mutex_unlock(&pending_lock);
    if (wanted && what->src != NULL) {
        memcpy(what->dst, what->src, what->bytes);
    } else if (wanted) {
        memset(what->dst, what->value, what->bytes);
    }
    end_errand(one);
}

hipError_t iris_i_hip_send_errand(struct hip_stream *stream,
                                  const struct hip_errand *what)
{
    struct pending *one = malloc(sizeof *one), **link = &pending;
    hipError_t error;

    if (one == NULL) {
        return hipErrorOutOfMemory;
    }
    *one = (struct pending){
        .what = *what, .stream = stream, .number = stream->submitted + 1};
    pthread_mutex_lock(&pending_lock);
    while (*link != NULL) {
        link = &(*link)->next;
    }
    *link = one;
    pthread_mutex_unlock(&pending_lock);
    error = hipStreamAddCallback(stream->native, run_errand, one, 0);
    if (error != hipSuccess) {
        end_errand(one);
    }
    return error;
}

bool iris_i_hip_errand_writes(const void *ptr, size_t bytes)
{
    uintptr_t at = (uintptr_t)ptr;
    bool found = false;

    pthread_mutex_lock(&pending_lock);
    for (const struct pending *one = pending; one != NULL && !found;
         one = one->next) {
        uintptr_t dst = (uintptr_t)one->what.dst;

        /* Computes neither end: it could wrap around. */
        found = at < dst ? dst - at < bytes : at - dst < one->what.bytes;
    }
    pthread_mutex_unlock(&pending_lock);
    return found;
}

/* The number of the last call before the stream's first pending errand;
 * UINT64_MAX if all have run. The stream's lock is held. */
static uint64_t find_limit(const struct hip_stream *stream)
{
    const struct pending *one;
    uint64_t limit;

    pthread_mutex_lock(&pending_lock);
    for (one = pending; one != NULL && one->stream != stream; one = one->next) {
    }
    limit = one == NULL ? UINT64_MAX : one->number - 1;
    pthread_mutex_unlock(&pending_lock);
    return limit;
}

void iris_i_hip_call_off_errands(const struct hip_stream *stream)
{
    struct pending **link = &pending, *one;

    pthread_mutex_lock(&pending_lock);
    while ((one = *link) != NULL) {
        bool is_own = one->stream == stream;

        one->stream = is_own ? NULL : one->stream;
        if (is_own && !one->begun) {
            *link = one->next;
        } else {
            link = &one->next;
        }
    }
    pthread_mutex_unlock(&pending_lock);
}

/* ---- The numbers ---- */

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

/* ---- The ring of events ---- */

/* Records an event after all submitted calls, if one is free. Otherwise the
 * next event will do: it also covers these calls. */
static hipError_t record_event(struct hip_stream *stream)
    IRIS_REQUIRES(stream->lock)
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
static void complete_all(struct hip_stream *stream) IRIS_REQUIRES(stream->lock)
{
    raise_number(&stream->completed, stream->submitted);
    stream->num_passed = stream->num_recorded;
}

/* A stream is not done before its errands have run, even if the runtime says
 * so: HIP's marker of a callback completes before the callback runs. */
static hipError_t check_limit(uint64_t limit, uint64_t number, hipError_t error)
{
    return error == hipSuccess && number > limit ? hipErrorNotReady : error;
}

static hipError_t update_completed(struct hip_stream *stream)
    IRIS_REQUIRES(stream->lock)
{
    uint64_t limit = find_limit(stream);
    hipError_t error = hipSuccess;

    while (error == hipSuccess && stream->num_passed != stream->num_recorded) {
        struct hip_event *one =
            &stream->events[stream->num_passed % HIP_EVENTS];

        error = check_limit(limit, one->number, hipEventQuery(one->event));
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
        error = check_limit(limit, stream->submitted, error);
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
            error = record_event(stream);
        }
        error = error ? error : update_completed(stream);
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

void iris_i_hip_update_all(struct hip_backend *hip,
                           struct hip_stream *held) IRIS_UNCHECKED
{
    pthread_mutex_lock(&hip->streams_lock);
    for (struct hip_stream *stream = hip->streams; stream != NULL;
         stream = stream->next) {
        if (stream == held) {
            (void)update_completed(stream);
        } else if (pthread_mutex_trylock(&stream->lock) == 0) {
            (void)update_completed(stream);
            pthread_mutex_unlock(&stream->lock);
        }
    }
    pthread_mutex_unlock(&hip->streams_lock);
}

/* ---- Enqueueing ---- */

/* Number of completed calls at which this number of calls finds space: never
 * 0. */
static uint64_t find_room(const struct hip_stream *stream, size_t calls)
{
    uint64_t kept = calls < FULL_WITH_LARGE ? FULL_WITH_LARGE - calls : 0;

    kept = kept < FULL / 2 ? kept : FULL / 2;
    return stream->submitted - kept;
}

/* Captured calls need no space. */
uint64_t iris_i_hip_begin(struct hip_stream *stream,
                          size_t calls) IRIS_UNCHECKED
{
    uint64_t left;

    pthread_mutex_lock(&stream->lock);
    stream->capturing = iris_i_hip_capturing(stream);
    if (stream->capturing) {
        return 0;
    }
    left = stream->submitted - stream->completed;
    if (left >= FULL || (left > 0 && left + calls > FULL_WITH_LARGE)) {
        uint64_t target = find_room(stream, calls);

        pthread_mutex_unlock(&stream->lock);
        return target;
    }
    /* Otherwise a thread that waits for a stream with constantly new work would
     * wait for that work, too. */
    if (stream->wanted > stream->completed) {
        if (stream->wanted > stream->recorded) {
            (void)record_event(stream);
        }
        (void)update_completed(stream);
    }
    return 0;
}

void iris_i_hip_end(struct hip_stream *stream, size_t calls)
{
    stream->submitted += stream->capturing ? 0 : calls;
    if (!stream->capturing &&
        stream->submitted - stream->recorded >= EVENT_EVERY) {
        (void)record_event(stream);
    }
    pthread_mutex_unlock(&stream->lock);
}

/* ---- Waits that a stream does without a kernel ---- */

bool iris_i_hip_copy_word(struct hip_backend *hip, void *to, const void *from)
{
    return hipMemcpyAsync(to, from, sizeof(uint64_t), hipMemcpyDefault,
                          hip->gpu->copy) == hipSuccess &&
           hipStreamSynchronize(hip->gpu->copy) == hipSuccess;
}

/* ---- The lists of waits; the lock of the list of streams is held ---- */

static struct hip_wait *get_wait(struct hip_stream *stream, uint64_t i)
{
    return &stream->waits[i % HIP_STREAM_WAITS];
}

static void drop_completed(struct hip_stream *stream)
{
    uint64_t completed = stream->completed;

    while (stream->first_wait != stream->end_wait &&
           get_wait(stream, stream->first_wait)->number <= completed) {
        stream->first_wait++;
    }
}

/* GE is cyclic, as in hardware. */
static bool is_satisfied(const struct hip_wait *wait, uint64_t seen)
{
    return wait->cmp == IRIS_CMP_EQ ? seen == wait->value
                                    : (int64_t)(seen - wait->value) >= 0;
}

/* The first wait that may not be over and whose word does not satisfy it; NULL:
 * no such wait. */
static const struct hip_wait *find_open(struct hip_stream *stream, uint64_t *i,
                                        uint64_t *seen_p)
{
    for (; *i != stream->end_wait; ++*i) {
        const struct hip_wait *wait = get_wait(stream, *i);

        if (iris_i_hip_copy_word(stream->hip, seen_p, wait->place) &&
            !is_satisfied(wait, *seen_p)) {
            return wait;
        }
    }
    return NULL;
}

void iris_i_hip_describe_wait(struct hip_stream *stream, char *text,
                              size_t bytes)
{
    struct hip_backend *hip = stream->hip;
    const struct hip_wait *wait;
    uint64_t seen, i;

    text[0] = '\0';
    pthread_mutex_lock(&hip->streams_lock);
    drop_completed(stream);
    i = stream->first_wait;
    wait = find_open(stream, &i, &seen);
    if (wait != NULL) {
        snprintf(text, bytes,
                 "; the stream itself waits for the word at heap offset %zu to "
                 "be %s %llu and last saw %llu",
                 (size_t)((char *)wait->place - (char *)hip->heap.base),
                 iris_i_cmp_name(wait->cmp), (unsigned long long)wait->value,
                 (unsigned long long)seen);
    }
    pthread_mutex_unlock(&hip->streams_lock);
}

void iris_i_hip_end_waits(struct hip_backend *hip)
{
    const struct hip_wait *wait;
    uint64_t seen, i;

    iris_i_hip_update_all(hip, NULL);
    pthread_mutex_lock(&hip->streams_lock);
    for (struct hip_stream *stream = hip->streams; stream != NULL;
         stream = stream->next) {
        drop_completed(stream);
        for (i = stream->first_wait;
             (wait = find_open(stream, &i, &seen)) != NULL; i++) {
            (void)iris_i_hip_copy_word(hip, wait->place, &wait->value);
        }
    }
    pthread_mutex_unlock(&hip->streams_lock);
}

/* Lists a wait, unless there are too many. */
static bool list_wait(struct hip_stream *stream, struct hip_wait *wait)
{
    struct hip_backend *hip = stream->hip;
    bool listed;

    pthread_mutex_lock(&hip->streams_lock);
    drop_completed(stream);
    listed = stream->end_wait - stream->first_wait < HIP_STREAM_WAITS;
    if (listed) {
        wait->number = stream->submitted + 1;
        *get_wait(stream, stream->end_wait++) = *wait;
    }
    pthread_mutex_unlock(&hip->streams_lock);
    return listed;
}

bool iris_i_hip_list_wait(struct hip_stream *stream, struct hip_wait *wait)
{
    if (list_wait(stream, wait)) {
        return true;
    }
    (void)update_completed(stream);
    return list_wait(stream, wait);
}

void iris_i_hip_unlist_wait(struct hip_stream *stream)
{
    pthread_mutex_lock(&stream->hip->streams_lock);
    stream->end_wait--;
    pthread_mutex_unlock(&stream->hip->streams_lock);
}
