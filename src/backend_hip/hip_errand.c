/* SPDX-License-Identifier: MIT
 *
 * Errands: work that the host does in a stream's order. They are listed until
 * they have run. So no stream counts as done before its errands, and host
 * memory that an errand will write is not read before that.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <stdlib.h>
#include <string.h>

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
static struct pending *pending;

/* Removes it, if it is still listed; the lock is held. */
static void unlist(const struct pending *one)
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
    unlist(one);
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

uint64_t iris_i_hip_errand_limit(const struct hip_stream *stream)
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
