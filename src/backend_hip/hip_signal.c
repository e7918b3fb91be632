/* SPDX-License-Identifier: MIT
 *
 * Signals and waits that streams do without a kernel, where the runtime's
 * queues can (HIP_QUEUE_WAITS). A wait is listed until it is completed: a fault
 * writes what it waits for.
 */
#include "config.h"

#include "backend_hip/hip.h"

#include <stdio.h>

/* Beside all streams that wait. */
bool iris_i_hip_copy_word(struct hip_backend *hip, void *to, const void *from)
{
    return hipMemcpyAsync(to, from, sizeof(uint64_t), hipMemcpyDefault,
                          hip->gpu->copy) == hipSuccess &&
           hipStreamSynchronize(hip->gpu->copy) == hipSuccess;
}

/* ---- The lists of waits; the lock of the list of streams is held ---- */

static struct hip_wait *wait_at(struct hip_stream *stream, uint64_t i)
{
    return &stream->waits[i % HIP_STREAM_WAITS];
}

static void drop_completed(struct hip_stream *stream)
{
    uint64_t completed = stream->completed;

    while (stream->first_wait != stream->end_wait &&
           wait_at(stream, stream->first_wait)->number <= completed) {
        stream->first_wait++;
    }
}

/* GE is cyclic, as the hardware compares. */
static bool holds(const struct hip_wait *wait, uint64_t seen)
{
    return wait->cmp == IRIS_CMP_EQ ? seen == wait->value
                                    : (int64_t)(seen - wait->value) >= 0;
}

/* The first wait of which it is not known to be over whose word is not what it
 * waits for; NULL: none. */
static const struct hip_wait *next_open(struct hip_stream *stream, uint64_t *i,
                                        uint64_t *seen_p)
{
    for (; *i != stream->end_wait; ++*i) {
        const struct hip_wait *wait = wait_at(stream, *i);

        if (iris_i_hip_copy_word(stream->hip, seen_p, wait->place) &&
            !holds(wait, *seen_p)) {
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
    wait = next_open(stream, &i, &seen);
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

    pthread_mutex_lock(&hip->streams_lock);
    for (struct hip_stream *stream = hip->streams; stream != NULL;
         stream = stream->next) {
        drop_completed(stream);
        for (i = stream->first_wait;
             (wait = next_open(stream, &i, &seen)) != NULL; i++) {
            (void)iris_i_hip_copy_word(hip, wait->place, &wait->value);
        }
    }
    pthread_mutex_unlock(&hip->streams_lock);
}

/* Lists a wait that comes next, and numbers it, unless there are too many. */
static bool list(struct hip_stream *stream, struct hip_wait *wait)
{
    struct hip_backend *hip = stream->hip;
    bool listed;

    pthread_mutex_lock(&hip->streams_lock);
    drop_completed(stream);
    listed = stream->end_wait - stream->first_wait < HIP_STREAM_WAITS;
    if (listed) {
        wait->number = stream->submitted + 1;
        *wait_at(stream, stream->end_wait++) = *wait;
    }
    pthread_mutex_unlock(&hip->streams_lock);
    return listed;
}

/* It is listed before the stream has it, so that a fault finds it. */
static iris_status_t do_wait(struct hip_stream *stream, void *what)
{
    struct hip_backend *hip = stream->hip;
    struct hip_wait *wait = what;
    hipError_t error;

    if (!stream->capturing && !list(stream, wait)) {
        (void)iris_i_hip_update(stream);
    }
    if (stream->capturing || (wait->number == 0 && !list(stream, wait))) {
        return IRIS_ERR_UNSUPPORTED;
    }
    error = hipStreamWaitValue64(
        stream->native, wait->place, wait->value,
        wait->cmp == IRIS_CMP_EQ ? hipStreamWaitValueEq : hipStreamWaitValueGte,
        UINT64_MAX);
    if (error != hipSuccess) {
        pthread_mutex_lock(&hip->streams_lock);
        stream->end_wait--;
        pthread_mutex_unlock(&hip->streams_lock);
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

iris_status_t iris_i_hip_signal(struct iris_stream *stream, uint64_t *place,
                                uint64_t value)
{
    struct signal signal = {place, value};

    return HIP_QUEUE_WAITS ? iris_i_hip_enqueue(stream, 1, do_signal, &signal)
                           : IRIS_ERR_UNSUPPORTED;
}

/* GE is a signed comparison of the difference with 0, which is that of what is
 * waited for as long as that is below 2^63. */
iris_status_t iris_i_hip_wait(struct iris_stream *stream, uint64_t *place,
                              iris_cmp_t cmp, uint64_t value)
{
    struct hip_wait wait = {.place = place, .cmp = cmp, .value = value};

    return HIP_QUEUE_WAITS && (cmp == IRIS_CMP_EQ ||
                               (cmp == IRIS_CMP_GE && value <= INT64_MAX))
               ? iris_i_hip_enqueue(stream, 1, do_wait, &wait)
               : IRIS_ERR_UNSUPPORTED;
}
