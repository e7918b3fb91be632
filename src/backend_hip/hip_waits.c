/* SPDX-License-Identifier: MIT
 *
 * A list of the waits that streams do without a kernel. Each is listed until it
 * is completed, so that a fault can write the awaited value.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <stdio.h>

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

/* GE is cyclic, as in hardware. */
static bool holds(const struct hip_wait *wait, uint64_t seen)
{
    return wait->cmp == IRIS_CMP_EQ ? seen == wait->value
                                    : (int64_t)(seen - wait->value) >= 0;
}

/* The first wait that may not be over and whose word does not satisfy it; NULL:
 * no such wait. */
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

    iris_i_hip_update_all(hip, NULL);
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

/* Lists a wait, unless there are too many. */
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

bool iris_i_hip_list_wait(struct hip_stream *stream, struct hip_wait *wait)
{
    if (list(stream, wait)) {
        return true;
    }
    (void)iris_i_hip_update(stream);
    return list(stream, wait);
}

void iris_i_hip_unlist_wait(struct hip_stream *stream)
{
    pthread_mutex_lock(&stream->hip->streams_lock);
    stream->end_wait--;
    pthread_mutex_unlock(&stream->hip->streams_lock);
}
