/* SPDX-License-Identifier: MIT
 *
 * Copies, fills and signals on a stream, of this rank's memory and its peers'.
 */
#include "config.h"

#include "queue/kernels.h"
#include "queue/queue.h"

iris_status_t iris_i_copy(struct iris_queue *queue, void *dst, const void *src,
                          size_t bytes, iris_stream_t *stream)
{
    const struct iris_heap_range to = {"iris_memcpy", "dst", dst, bytes, 1};
    const struct iris_heap_range from = {"iris_memcpy", "src", src, bytes, 0};
    iris_status_t status = iris_i_stream_resolve(queue, stream, &stream);

    if (status != IRIS_OK || bytes == 0) {
        return status;
    }
    status = iris_i_heap_check_range(queue->heap, &to);
    if (status == IRIS_OK) {
        status = iris_i_heap_check_range(queue->heap, &from);
    }
    return status == IRIS_OK
               ? iris_i_fail_on(queue->log,
                                iris_i_queue_copy(stream, dst, src, bytes))
               : status;
}

iris_status_t iris_i_fill(struct iris_queue *queue, void *dst, int value,
                          size_t bytes, iris_stream_t *stream)
{
    const struct iris_heap_range to = {"iris_memset", "dst", dst, bytes, 1};
    iris_status_t status = iris_i_stream_resolve(queue, stream, &stream);

    if (status != IRIS_OK || bytes == 0) {
        return status;
    }
    status = iris_i_heap_check_range(queue->heap, &to);
    return status == IRIS_OK
               ? iris_i_fail_on(queue->log,
                                iris_i_queue_set(stream, dst, value, bytes))
               : status;
}

/* Finds the far side: all of it is in this rank's heap as the program has it.
 * The stream, too, is looked up, first. */
static iris_status_t find_remote(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t **stream_p, void **remote_p)
{
    size_t left = iris_i_heap_bytes_from(queue->heap, what->symmetric);
    iris_status_t status = iris_i_stream_resolve(queue, *stream_p, stream_p);

    if (status != IRIS_OK) {
        return status;
    }
    if (left == 0) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: %zu bytes at %s %p are not on this rank's "
                           "heap (%p to %p); pass memory from iris_malloc",
                           what->call, what->bytes, what->name, what->symmetric,
                           queue->heap->region.base,
                           (void *)((char *)queue->heap->region.base +
                                    queue->heap->region.bytes));
    }
    if (what->bytes > left) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: %zu bytes at %s %p go past the end: this "
                           "rank's heap has only %zu bytes from there on; pass "
                           "fewer bytes",
                           what->call, what->bytes, what->name, what->symmetric,
                           left);
    }
    return iris_i_heap_translate(queue->heap, what->call, what->symmetric,
                                 what->rank, remote_p);
}

iris_status_t iris_i_enqueue_put(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t *stream)
{
    void *remote = NULL;
    iris_status_t status = find_remote(queue, what, &stream, &remote);

    return status == IRIS_OK
               ? iris_i_copy(queue, remote, what->other, what->bytes, stream)
               : status;
}

iris_status_t iris_i_enqueue_get(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t *stream)
{
    void *remote = NULL;
    iris_status_t status = find_remote(queue, what, &stream, &remote);

    return status == IRIS_OK
               ? iris_i_copy(queue, what->other, remote, what->bytes, stream)
               : status;
}

/* Also checks that it is one whole word of the program's. */
static iris_status_t find_signal(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t **stream_p, void **remote_p)
{
    const struct iris_heap_range range = {what->call, "signal", what->symmetric,
                                          sizeof(uint64_t), 1};
    iris_status_t status;

    if ((uintptr_t)what->symmetric % sizeof(uint64_t) != 0) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: signal %p is not a multiple of %zu; pass an "
                           "aligned uint64_t",
                           what->call, what->symmetric, sizeof(uint64_t));
    }
    status = find_remote(queue, what, stream_p, remote_p);
    return status == IRIS_OK ? iris_i_heap_check_range(queue->heap, &range)
                             : status;
}

iris_status_t iris_i_enqueue_check_signal(struct iris_queue *queue,
                                          const struct iris_transfer *what,
                                          iris_stream_t *stream)
{
    void *remote;

    return find_signal(queue, what, &stream, &remote);
}

iris_status_t iris_i_enqueue_signal(struct iris_queue *queue,
                                    const struct iris_transfer *what,
                                    iris_stream_t *stream)
{
    void *remote = NULL;
    iris_status_t status = find_signal(queue, what, &stream, &remote);

    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_queue_signal(stream, remote, what->value);
    return status == IRIS_ERR_UNSUPPORTED
               ? iris_i_kernel_signal(queue, what->symmetric, what->value,
                                      what->rank, stream)
               : iris_i_fail_on(queue->log, status);
}

/* No queue adds by itself: always a kernel. */
iris_status_t iris_i_enqueue_signal_add(struct iris_queue *queue,
                                        const struct iris_transfer *what,
                                        iris_stream_t *stream)
{
    void *remote = NULL;
    iris_status_t status = find_signal(queue, what, &stream, &remote);

    return status == IRIS_OK
               ? iris_i_kernel_signal_add(queue, what->symmetric, what->value,
                                          what->rank, stream)
               : status;
}

iris_status_t iris_i_enqueue_wait(struct iris_queue *queue,
                                  const struct iris_transfer *what,
                                  iris_stream_t *stream)
{
    void *own = NULL;
    iris_status_t status = find_signal(queue, what, &stream, &own);

    if (status == IRIS_OK &&
        (what->cmp < IRIS_CMP_EQ || what->cmp > IRIS_CMP_GE)) {
        status = iris_i_fail(queue->log, IRIS_ERR_INVALID,
                             "%s: cmp %d is no comparison; pass IRIS_CMP_EQ to "
                             "IRIS_CMP_GE",
                             what->call, (int)what->cmp);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_queue_wait(stream, own, what->cmp, what->value);
    return status == IRIS_ERR_UNSUPPORTED
               ? iris_i_kernel_wait(queue, what->symmetric, what->cmp,
                                    what->value, stream)
               : iris_i_fail_on(queue->log, status);
}
