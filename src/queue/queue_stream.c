/* SPDX-License-Identifier: MIT
 *
 * Streams: the rank's list of them, and the host's waits for their work.
 */
#include "config.h"

#include "queue/queue.h"

#include <stdio.h>

static iris_status_t list(struct iris_queue *queue, iris_status_t status,
                          struct iris_stream *stream,
                          struct iris_stream **stream_p)
{
    if (status != IRIS_OK) {
        return iris_i_fail_on(queue->log, status);
    }
    /* Inserted after the default stream, which stays first. */
    pthread_mutex_lock(&queue->lock);
    stream->number = ++queue->num_streams;
    stream->next = queue->streams->next;
    queue->streams->next = stream;
    pthread_mutex_unlock(&queue->lock);
    *stream_p = stream;
    return IRIS_OK;
}

/* The heap's fence: a point in every stream. A stream created after the fence
 * has a later point. */
static int query_fence(void *arg, int anew)
{
    struct iris_queue *queue = arg;
    int done = 1;

    pthread_mutex_lock(&queue->lock);
    for (struct iris_stream *s = queue->streams; s != NULL; s = s->next) {
        s->fence = anew ? 0 : s->fence;
        done &= iris_i_queue_query(s, &s->fence);
    }
    pthread_mutex_unlock(&queue->lock);
    return done;
}

iris_status_t iris_i_queue_open(struct iris_queue *queue)
{
    pthread_mutex_init(&queue->lock, NULL);
    queue->heap->fence = (struct iris_heap_fence){query_fence, queue};
    return iris_i_device_stream_create(queue->backend, &queue->streams);
}

void iris_i_queue_close(struct iris_queue *queue)
{
    while (queue->streams != NULL) {
        struct iris_stream *stream = queue->streams;

        queue->streams = stream->next;
        iris_i_capture_drop(stream);
        iris_i_device_stream_destroy(stream);
    }
    while (queue->graphs != NULL) { /* no launch of any graph is running now */
        iris_i_graph_destroy(queue, queue->graphs);
    }
}

static int is_listed(struct iris_queue *queue, const iris_stream_t *stream)
{
    const struct iris_stream *s;

    pthread_mutex_lock(&queue->lock);
    for (s = queue->streams; s != NULL && s != stream; s = s->next) {
    }
    pthread_mutex_unlock(&queue->lock);
    return s != NULL;
}

iris_status_t iris_i_stream_resolve(struct iris_queue *queue,
                                    iris_stream_t *stream,
                                    struct iris_stream **stream_p)
{
    if (stream == NULL) {
        *stream_p = queue->streams;
        return IRIS_OK;
    }
    if (!is_listed(queue, stream)) {
        return iris_i_fail(
            queue->log, IRIS_ERR_INVALID,
            "stream %p is not a live stream of this context; pass "
            "one that iris_stream_create gave, or NULL",
            (void *)stream);
    }
    *stream_p = stream;
    return IRIS_OK;
}

iris_status_t iris_i_stream_create(struct iris_queue *queue,
                                   struct iris_stream **stream_p)
{
    struct iris_stream *stream = NULL;
    iris_status_t status = iris_i_device_stream_create(queue->backend, &stream);

    return list(queue, status, stream, stream_p);
}

iris_status_t iris_i_stream_create_around(struct iris_queue *queue,
                                          void *native,
                                          struct iris_stream **stream_p)
{
    struct iris_stream *stream = NULL;
    iris_status_t status =
        iris_i_device_stream_wrap(queue->backend, native, &stream);

    /* A device without a runtime has one default stream, this rank's own. */
    if (status == IRIS_ERR_UNSUPPORTED && native == NULL) {
        *stream_p = queue->streams;
        return IRIS_OK;
    }
    return list(queue, status, stream, stream_p);
}

/* Waits for the stream's work first: observers are told that a destroy does
 * so. */
static void complete_and_free(struct iris_queue *queue, iris_stream_t *stream)
{
    struct iris_host_event event = {.op = IRIS_HOST_SYNCHRONIZE,
                                    .rank = queue->log->rank,
                                    .target_rank = -1,
                                    .stream = stream};

    iris_i_hooks_before(queue->hooks, &event);
    iris_i_device_stream_destroy(stream);
    (void)iris_i_hooks_after(queue->hooks, &event, IRIS_OK);
}

void iris_i_stream_destroy(struct iris_queue *queue, iris_stream_t *stream)
{
    struct iris_stream *before;

    if (stream == queue->streams) { /* the wrapped default stream: it stays */
        (void)iris_i_stream_synchronize(queue, stream);
        return;
    }
    pthread_mutex_lock(&queue->lock);
    for (before = queue->streams; before != NULL && before->next != stream;
         before = before->next) {
    }
    if (before != NULL) {
        before->next = stream->next;
    }
    pthread_mutex_unlock(&queue->lock);
    if (before == NULL) {
        iris_i_error(queue->log,
                     "iris_stream_destroy: %p is not a stream the program "
                     "made and still has",
                     (void *)stream);
        return;
    }
    iris_i_capture_drop(stream);
    complete_and_free(queue, stream);
}

iris_status_t iris_i_stream_synchronize(struct iris_queue *queue,
                                        struct iris_stream *stream)
{
    struct iris_control *control = iris_i_heap_control(&queue->heap->memory);
    struct iris_host_event event = {.op = IRIS_HOST_SYNCHRONIZE,
                                    .rank = queue->log->rank,
                                    .target_rank = -1,
                                    .stream = stream};
    iris_status_t status;

    iris_i_hooks_before(queue->hooks, &event);
    iris_i_control_wait_stream(control, 1);
    status = iris_i_queue_synchronize(stream);
    iris_i_control_wait_stream(control, -1);
    if (status == IRIS_OK) {
        iris_i_capture_drop(stream); /* a capture that the runtime has ended */
        atomic_fetch_add_explicit(&stream->waits, 1, memory_order_relaxed);
    }
    return iris_i_hooks_after(queue->hooks, &event,
                              iris_i_fail_on(queue->log, status));
}

iris_status_t iris_i_stream_synchronize_all(struct iris_queue *queue)
{
    char message[IRIS_MESSAGE_BYTES] = "";
    iris_status_t first = IRIS_OK;

    for (struct iris_stream *s = queue->streams; s != NULL; s = s->next) {
        iris_status_t status = iris_i_stream_synchronize(queue, s);

        if (status != IRIS_OK && first == IRIS_OK) {
            first = status;
            snprintf(message, sizeof message, "%s", iris_last_error());
        }
    }
    return first == IRIS_OK ? IRIS_OK : iris_i_fail_again(first, message);
}
