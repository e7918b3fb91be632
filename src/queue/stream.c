/* SPDX-License-Identifier: MIT
 *
 * Streams: the context's list of them, and work that is not a kernel.
 */
#include "config.h"

#include "queue/stream.h"

#include "context/context.h"
#include "base/log.h"

#include <stdio.h>

static int is_listed(iris_t *iris, const iris_stream_t *stream)
{
    const struct iris_stream *s;

    pthread_mutex_lock(&iris->streams_lock);
    for (s = iris->stream; s != NULL && s != stream; s = s->next) {
    }
    pthread_mutex_unlock(&iris->streams_lock);
    return s != NULL;
}

iris_status_t iris_i_stream_resolve(iris_t *iris, iris_stream_t *stream,
                                    struct iris_stream **stream_p)
{
    if (stream == NULL) {
        *stream_p = iris->stream;
        return IRIS_OK;
    }
    if (!is_listed(iris, stream)) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "stream %p is not a live stream of this context; pass "
            "one that iris_stream_create gave, or NULL",
            (void *)stream);
    }
    *stream_p = stream;
    return IRIS_OK;
}

iris_status_t iris_i_stream_synchronize(iris_t *iris,
                                        struct iris_stream *stream)
{
    atomic_uint *waiting =
        &iris_i_control_rank(iris->control, iris->rank)->waiting;
    iris_status_t status;

    atomic_fetch_add_explicit(waiting, 1, memory_order_relaxed);
    status = iris_i_queue_synchronize(stream);
    atomic_fetch_sub_explicit(waiting, 1, memory_order_relaxed);
    return status;
}

iris_status_t iris_i_stream_synchronize_all(iris_t *iris)
{
    char message[IRIS_MESSAGE_BYTES] = "";
    iris_status_t first = IRIS_OK;

    for (struct iris_stream *s = iris->stream; s != NULL; s = s->next) {
        iris_status_t status = iris_i_stream_synchronize(iris, s);

        if (status != IRIS_OK && first == IRIS_OK) {
            first = status;
            snprintf(message, sizeof message, "%s", iris_last_error());
        }
    }
    return first == IRIS_OK ? IRIS_OK : iris_i_fail_again(first, message);
}

/* Behind the default stream, which stays first. */
static void list(iris_t *iris, struct iris_stream *stream)
{
    pthread_mutex_lock(&iris->streams_lock);
    stream->next = iris->stream->next;
    iris->stream->next = stream;
    pthread_mutex_unlock(&iris->streams_lock);
}

static iris_status_t check_output(const iris_t *iris, const char *call,
                                  iris_stream_t **stream_p)
{
    iris_status_t status = iris_i_enter(iris, call);

    if (status == IRIS_OK && stream_p == NULL) {
        status = iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                             "%s: stream_p is NULL; pass where to put the "
                             "stream",
                             call);
    }
    return status;
}

iris_status_t iris_stream_create(iris_t *iris, iris_stream_t **stream_p)
{
    iris_status_t status = check_output(iris, "iris_stream_create", stream_p);
    struct iris_stream *stream;

    if (status == IRIS_OK) {
        status = iris_i_fail_on(&iris->log,
                                iris_i_stream_make(iris->backend, &stream));
    }
    if (status == IRIS_OK) {
        list(iris, stream);
        *stream_p = stream;
    }
    return status;
}

iris_status_t iris_stream_wrap(iris_t *iris, void *native,
                               iris_stream_t **stream_p)
{
    iris_status_t status = check_output(iris, "iris_stream_wrap", stream_p);
    struct iris_stream *stream;

    if (status == IRIS_OK) {
        status = iris_i_fail_on(
            &iris->log, iris_i_stream_wrap(iris->backend, native, &stream));
    }
    if (status == IRIS_OK) {
        list(iris, stream);
        *stream_p = stream;
    }
    return status;
}

void *iris_stream_native(iris_t *iris, iris_stream_t *stream)
{
    if (iris_i_enter(iris, "iris_stream_native") != IRIS_OK ||
        iris_i_stream_resolve(iris, stream, &stream) != IRIS_OK) {
        return NULL;
    }
    return iris_i_queue_native(stream);
}

void iris_stream_destroy(iris_t *iris, iris_stream_t *stream)
{
    struct iris_stream *before;

    if (stream == NULL ||
        iris_i_enter(iris, "iris_stream_destroy") != IRIS_OK) {
        return;
    }
    pthread_mutex_lock(&iris->streams_lock);
    for (before = iris->stream; before != NULL && before->next != stream;
         before = before->next) {
    }
    if (before != NULL) {
        before->next = stream->next;
    }
    pthread_mutex_unlock(&iris->streams_lock);
    if (before == NULL) {
        iris_i_error(&iris->log,
                     "iris_stream_destroy: %p is not a stream the program "
                     "made and still has",
                     (void *)stream);
        return;
    }
    iris_i_stream_end(stream);
}

iris_status_t iris_stream_synchronize(iris_t *iris, iris_stream_t *stream)
{
    iris_status_t status = iris_i_enter(iris, "iris_stream_synchronize");

    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(iris, stream, &stream);
    }
    return status == IRIS_OK
               ? iris_i_fail_on(&iris->log,
                                iris_i_stream_synchronize(iris, stream))
               : status;
}

/* Is [ptr, ptr + bytes) memory at all and, if it begins in or at the end of a
 * mapped heap, all within that heap? `name` is the argument's. */
static iris_status_t check_range(const iris_t *iris, const char *call,
                                 const char *name, const void *ptr,
                                 size_t bytes)
{
    uintptr_t start = (uintptr_t)ptr;

    if (ptr == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "%s: %s is NULL; pass memory of %zu bytes", call,
                           name, bytes);
    }
    if (bytes > PTRDIFF_MAX || start > UINTPTR_MAX - bytes) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "%s: %zu bytes from %s %p overflow the address "
                           "space; check the size",
                           call, bytes, name, ptr);
    }
    for (int rank = 0; rank < iris->num_ranks; rank++) {
        uintptr_t base = (uintptr_t)iris->heap_bases[rank];

        if (base != 0 && start >= base && start - base < iris->heap.bytes &&
            bytes > iris->heap.bytes - (start - base)) {
            return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                               "%s: %zu bytes from %s %p go past the end of "
                               "rank %d's heap, %zu bytes away; copy less",
                               call, bytes, name, ptr, rank,
                               iris->heap.bytes - (size_t)(start - base));
        }
    }
    return IRIS_OK;
}

iris_status_t iris_memcpy(iris_t *iris, void *dst, const void *src,
                          size_t bytes, iris_stream_t *stream)
{
    iris_status_t status = iris_i_enter(iris, "iris_memcpy");

    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(iris, stream, &stream);
    }
    if (status != IRIS_OK || bytes == 0) {
        return status;
    }
    status = check_range(iris, "iris_memcpy", "dst", dst, bytes);
    if (status == IRIS_OK) {
        status = check_range(iris, "iris_memcpy", "src", src, bytes);
    }
    return status == IRIS_OK
               ? iris_i_fail_on(&iris->log,
                                iris_i_queue_copy(stream, dst, src, bytes))
               : status;
}

iris_status_t iris_memset(iris_t *iris, void *dst, int value, size_t bytes,
                          iris_stream_t *stream)
{
    iris_status_t status = iris_i_enter(iris, "iris_memset");

    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(iris, stream, &stream);
    }
    if (status != IRIS_OK || bytes == 0) {
        return status;
    }
    status = check_range(iris, "iris_memset", "dst", dst, bytes);
    return status == IRIS_OK
               ? iris_i_fail_on(&iris->log,
                                iris_i_queue_set(stream, dst, value, bytes))
               : status;
}

/* The stream is waited for first, too: a copy of pageable memory would hold the
 * caller as long, and in a capture of the default stream, where waiting fails,
 * the copy would become a part of it. */
iris_status_t iris_memcpy_sync(iris_t *iris, void *dst, const void *src,
                               size_t bytes)
{
    iris_status_t status = iris_stream_synchronize(iris, NULL);

    if (status == IRIS_OK) {
        status = iris_memcpy(iris, dst, src, bytes, NULL);
    }
    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}
