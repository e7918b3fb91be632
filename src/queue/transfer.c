/* SPDX-License-Identifier: MIT
 *
 * Remote memory access from the host: copies and signals on a stream.
 */
#include "config.h"

#include <iris/heap.h>

#include "context/context.h"
#include "heap/heap.h"
#include "queue/kernels.h"
#include "base/log.h"
#include "queue/stream.h"

/* A symmetric range, its counterpart on another rank, and the stream. */
struct transfer {
    const char *call;
    const char *name; /* of the symmetric argument */
    const void *ptr;
    size_t bytes;
    int rank;
};

static iris_status_t find_remote(iris_t *iris, const struct transfer *what,
                                 iris_stream_t **stream_p, void **remote_p)
{
    size_t room = iris_i_heap_room(iris, what->ptr);
    iris_status_t status = iris_i_stream_resolve(iris, *stream_p, stream_p);

    if (status != IRIS_OK) {
        return status;
    }
    if (room != 0 && what->bytes > room) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "%s: %zu bytes at %s %p go past the end: this rank's heap has only "
            "%zu bytes from there on; pass fewer bytes",
            what->call, what->bytes, what->name, what->ptr, room);
    }
    if (room == 0) {
        return iris_i_fail(
            &iris->log, IRIS_ERR_INVALID,
            "%s: %zu bytes at %s %p are not on this rank's "
            "heap (%p to %p); pass memory from iris_malloc",
            what->call, what->bytes, what->name, what->ptr, iris->heap.base,
            (void *)((char *)iris->heap.base + iris->heap.bytes));
    }
    return iris_as_remote(iris, what->ptr, what->rank, remote_p);
}

iris_status_t iris_put_on_stream(iris_t *iris, void *dst, const void *src,
                                 size_t bytes, int to_rank,
                                 iris_stream_t *stream)
{
    struct transfer what = {"iris_put_on_stream", "dst", dst, bytes, to_rank};
    iris_status_t status = iris_i_enter(iris, what.call);
    void *remote = NULL;

    if (status == IRIS_OK) {
        status = find_remote(iris, &what, &stream, &remote);
    }
    return status == IRIS_OK ? iris_memcpy(iris, remote, src, bytes, stream)
                             : status;
}

iris_status_t iris_get_on_stream(iris_t *iris, void *dst, const void *src,
                                 size_t bytes, int from_rank,
                                 iris_stream_t *stream)
{
    struct transfer what = {"iris_get_on_stream", "src", src, bytes, from_rank};
    iris_status_t status = iris_i_enter(iris, what.call);
    void *remote = NULL;

    if (status == IRIS_OK) {
        status = find_remote(iris, &what, &stream, &remote);
    }
    return status == IRIS_OK ? iris_memcpy(iris, dst, remote, bytes, stream)
                             : status;
}

/* Also checks that it is one whole word. */
static iris_status_t find_signal(iris_t *iris, const struct transfer *what,
                                 iris_stream_t **stream_p, void **remote_p)
{
    if ((uintptr_t)what->ptr % what->bytes != 0) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "%s: signal %p is not a multiple of %zu; pass an "
                           "aligned uint64_t",
                           what->call, what->ptr, what->bytes);
    }
    return find_remote(iris, what, stream_p, remote_p);
}

iris_status_t iris_signal_on_stream(iris_t *iris, uint64_t *signal,
                                    uint64_t value, int to_rank,
                                    iris_stream_t *stream)
{
    struct transfer what = {"iris_signal_on_stream", "signal", signal,
                            sizeof *signal, to_rank};
    iris_status_t status = iris_i_enter(iris, what.call);
    void *remote = NULL;

    if (status == IRIS_OK) {
        status = find_signal(iris, &what, &stream, &remote);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_queue_signal(stream, remote, value);
    return status == IRIS_ERR_UNSUPPORTED
               ? iris_i_kernel_signal(iris, signal, value, to_rank, stream)
               : iris_i_fail_on(&iris->log, status);
}

iris_status_t iris_wait_on_stream(iris_t *iris, uint64_t *signal,
                                  iris_cmp_t cmp, uint64_t value,
                                  iris_stream_t *stream)
{
    struct transfer what = {"iris_wait_on_stream", "signal", signal,
                            sizeof *signal, 0};
    iris_status_t status = iris_i_enter(iris, what.call);
    void *own = NULL;

    if (status == IRIS_OK) {
        what.rank = iris->rank;
        status = find_signal(iris, &what, &stream, &own);
    }
    if (status == IRIS_OK && (cmp < IRIS_CMP_EQ || cmp > IRIS_CMP_GE)) {
        status = iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                             "iris_wait_on_stream: cmp %d is no comparison; "
                             "pass IRIS_CMP_EQ to IRIS_CMP_GE",
                             (int)cmp);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_queue_wait(stream, own, cmp, value);
    return status == IRIS_ERR_UNSUPPORTED
               ? iris_i_kernel_wait(iris, signal, cmp, value, stream)
               : iris_i_fail_on(&iris->log, status);
}
