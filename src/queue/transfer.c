/* SPDX-License-Identifier: MIT
 *
 * Copies, fills and signals on a stream, in this rank's memory and its peers'.
 */
#include "config.h"

#include "queue/queue.h"

#include "heap/heap.h"
#include "queue/kernels.h"

static iris_status_t check_ranges(struct iris_queue *queue,
                                  const struct iris_host_event *event)
{
    const char *call =
        event->op == IRIS_HOST_COPY ? "iris_memcpy" : "iris_memset";
    /* Host memory is copied and filled by the host, if need be. */
    const struct iris_heap_range to = {call,         "dst", event->address,
                                       event->bytes, 1,     0};
    const struct iris_heap_range from = {call,         "src", event->source,
                                         event->bytes, 0,     0};
    iris_status_t status = iris_i_heap_check_range(queue->heap, &to);

    return status == IRIS_OK && event->op == IRIS_HOST_COPY
               ? iris_i_heap_check_range(queue->heap, &from)
               : status;
}

/* A copy or fill. The event describes it, except for the target. */
static iris_status_t enqueue(struct iris_queue *queue,
                             struct iris_host_event *event, void *dst,
                             iris_stream_t *stream)
{
    iris_status_t status;

    event->rank = queue->log->rank;
    event->stream = stream;
    event->address = dst;
    status = iris_i_stream_resolve(queue, stream, &stream);
    if (status != IRIS_OK || event->bytes == 0) {
        return status;
    }
    iris_i_hooks_before(queue->hooks, event);
    status = check_ranges(queue, event);
    if (status == IRIS_OK) {
        status =
            event->op == IRIS_HOST_COPY
                ? iris_i_queue_copy(stream, dst, event->source, event->bytes)
                : iris_i_queue_set(stream, dst, (int)event->value,
                                   event->bytes);
    }
    return iris_i_hooks_after(queue->hooks, event,
                              iris_i_fail_on(queue->log, status));
}

iris_status_t iris_i_copy(struct iris_queue *queue, void *dst, const void *src,
                          size_t bytes, iris_stream_t *stream)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_COPY, .source = src, .bytes = bytes, .target_rank = -1};

    return enqueue(queue, &event, dst, stream);
}

iris_status_t iris_i_fill(struct iris_queue *queue, void *dst, int value,
                          size_t bytes, iris_stream_t *stream)
{
    struct iris_host_event event = {.op = IRIS_HOST_SET,
                                    .value = (uint64_t)value,
                                    .bytes = bytes,
                                    .target_rank = -1};

    return enqueue(queue, &event, dst, stream);
}

iris_status_t iris_i_transfer_find_remote(struct iris_queue *queue,
                                          const struct iris_transfer *what,
                                          iris_stream_t **stream_p,
                                          void **remote_p)
{
    size_t left = iris_i_heap_bytes_from(queue->heap, what->symmetric);
    char *base = iris_i_heap_base(&queue->heap->memory);
    iris_status_t status = iris_i_stream_resolve(queue, *stream_p, stream_p);

    if (status != IRIS_OK) {
        return status;
    }
    if (left == 0) {
        return iris_i_fail(
            queue->log, IRIS_ERR_INVALID,
            "%s: %zu bytes at %s %p are not on this rank's "
            "heap (%p to %p); pass memory from iris_malloc",
            what->call, what->bytes, what->name, what->symmetric, (void *)base,
            (void *)(base + iris_i_heap_bytes(&queue->heap->memory)));
    }
    if (what->bytes > left) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: %zu bytes at %s %p go past the end: this "
                           "rank's heap has only %zu bytes from there on; pass "
                           "fewer bytes",
                           what->call, what->bytes, what->name, what->symmetric,
                           left);
    }
    if (iris_i_heap_is_by_proxy(queue->heap, what->rank)) {
        *remote_p = NULL;
        return IRIS_OK;
    }
    return iris_i_heap_translate(queue->heap, what->call, what->symmetric,
                                 what->rank, remote_p);
}

/* A transfer with a rank that only kernels reach. Observers see the kernel. */
static iris_status_t enqueue_by_proxy(struct iris_queue *queue,
                                      const struct iris_transfer *what,
                                      iris_stream_t *stream)
{
    const struct iris_heap_range near = {
        what->call,  what->gets ? "dst" : "src",
        what->other, what->bytes,
        what->gets,  1};
    const struct iris_transfer_rows one = {.count = 1};
    iris_status_t status = iris_i_heap_check_range(queue->heap, &near);

    return status == IRIS_OK ? iris_i_kernel_transfer(queue, what, &one, stream)
                             : status;
}

iris_status_t iris_i_enqueue_transfer(struct iris_queue *queue,
                                      const struct iris_transfer *what,
                                      iris_stream_t *stream)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_COPY, .bytes = what->bytes, .target_rank = what->rank};
    void *remote = NULL;
    iris_status_t status;

    if (what->bytes == 0) { /* touches no memory */
        status = iris_i_heap_check_rank(queue->heap, what->rank);
        return status == IRIS_OK ? iris_i_stream_resolve(queue, stream, &stream)
                                 : status;
    }
    status = iris_i_transfer_find_remote(queue, what, &stream, &remote);
    if (status == IRIS_OK && remote == NULL) {
        return iris_i_fail_on(queue->log,
                              enqueue_by_proxy(queue, what, stream));
    }
    event.source = what->gets ? remote : what->other;
    return status == IRIS_OK
               ? enqueue(queue, &event, what->gets ? what->other : remote,
                         stream)
               : status;
}

/* Also checks that it is one whole word of the program's memory. */
static iris_status_t find_signal(struct iris_queue *queue,
                                 const struct iris_transfer *what,
                                 iris_stream_t **stream_p, void **remote_p)
{
    const struct iris_heap_range range = {
        what->call, "signal", what->symmetric, sizeof(uint64_t), 1, 0};
    iris_status_t status;

    if ((uintptr_t)what->symmetric % sizeof(uint64_t) != 0) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "%s: signal %p is not a multiple of %zu; pass an "
                           "aligned uint64_t",
                           what->call, what->symmetric, sizeof(uint64_t));
    }
    status = iris_i_transfer_find_remote(queue, what, stream_p, remote_p);
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

static iris_status_t enqueue_signal(struct iris_queue *queue,
                                    const struct iris_transfer *what,
                                    void *remote, iris_stream_t *stream)
{
    /* No queue can add by itself, or reach another node. */
    iris_status_t status =
        what->adds || remote == NULL
            ? IRIS_ERR_UNSUPPORTED
            : iris_i_queue_signal(stream, remote, what->value);

    return status == IRIS_ERR_UNSUPPORTED
               ? iris_i_kernel_signal(queue, what, stream)
               : status;
}

static iris_status_t enqueue_wait(struct iris_queue *queue,
                                  const struct iris_transfer *what, void *own,
                                  iris_stream_t *stream)
{
    iris_status_t status =
        iris_i_queue_wait(stream, own, what->cmp, what->value);

    return status == IRIS_ERR_UNSUPPORTED
               ? iris_i_kernel_wait(queue, what, stream)
               : status;
}

iris_status_t iris_i_enqueue_word(struct iris_queue *queue,
                                  enum iris_host_op op,
                                  const struct iris_transfer *what,
                                  iris_stream_t *stream)
{
    struct iris_host_event event = {.op = op,
                                    .rank = queue->log->rank,
                                    .target_rank = what->rank,
                                    .stream = stream,
                                    .address = what->symmetric,
                                    .bytes = what->bytes,
                                    .value = what->value,
                                    .cmp = what->cmp};
    void *word = NULL;
    iris_status_t status = find_signal(queue, what, &stream, &word);

    if (status == IRIS_OK && op == IRIS_HOST_WAIT &&
        (what->cmp < IRIS_CMP_EQ || what->cmp > IRIS_CMP_GE)) {
        status = iris_i_fail(queue->log, IRIS_ERR_INVALID,
                             "%s: cmp %d is no comparison; pass IRIS_CMP_EQ to "
                             "IRIS_CMP_GE",
                             what->call, (int)what->cmp);
    }
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_hooks_before(queue->hooks, &event);
    status = op == IRIS_HOST_WAIT ? enqueue_wait(queue, what, word, stream)
                                  : enqueue_signal(queue, what, word, stream);
    return iris_i_hooks_after(queue->hooks, &event,
                              iris_i_fail_on(queue->log, status));
}
