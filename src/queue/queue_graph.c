/* SPDX-License-Identifier: MIT
 *
 * Graphs: the rank's list of them, the backend's captures, and memory that
 * launches may use on only one stream at a time.
 */
#include "config.h"

#include "queue/queue.h"

#include <stdatomic.h>
#include <stdlib.h>

static void free_graph(struct iris_graph *graph)
{
    if (graph != NULL) {
        free(graph->uses);
        free(graph);
    }
}

/* Several threads may wait for a stream at once. */
void iris_i_capture_drop(struct iris_stream *stream)
{
    if (atomic_load_explicit(&stream->capturing, memory_order_relaxed) !=
        NULL) {
        free_graph(atomic_exchange(&stream->capturing, NULL));
    }
}

iris_status_t iris_i_capture_begin(struct iris_queue *queue,
                                   struct iris_stream *stream)
{
    struct iris_graph *graph = calloc(1, sizeof *graph);
    iris_status_t status;

    if (graph == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a graph");
    }
    status = iris_i_queue_capture_begin(stream);
    if (status != IRIS_OK) {
        free_graph(graph);
        return iris_i_fail_on(queue->log, status);
    }
    iris_i_capture_drop(stream);
    stream->capturing = graph;
    return IRIS_OK;
}

iris_status_t iris_i_capture_end(struct iris_queue *queue,
                                 struct iris_stream *stream,
                                 struct iris_graph **graph_p)
{
    struct iris_graph *graph = atomic_exchange(&stream->capturing, NULL);
    iris_status_t status;

    /* The program may have begun the capture by a call of its runtime. */
    graph = graph == NULL ? calloc(1, sizeof *graph) : graph;
    if (graph == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a graph");
    }
    status = iris_i_queue_capture_end(stream, &graph->native);
    if (status != IRIS_OK) {
        free_graph(graph);
        return iris_i_fail_on(queue->log, status);
    }
    pthread_mutex_lock(&queue->lock);
    graph->next = queue->graphs;
    queue->graphs = graph;
    pthread_mutex_unlock(&queue->lock);
    *graph_p = graph;
    return IRIS_OK;
}

/* ---- Memory that one stream at a time may use ---- */

static struct iris_stream_mark mark_of(struct iris_stream *stream)
{
    struct iris_stream_mark mark = {
        stream->number + 1,
        atomic_load_explicit(&stream->waits, memory_order_relaxed)};

    return mark;
}

/* Whether the stream's work up to the mark is done, as far as the host knows:
 * it has since waited for the stream, or destroyed it. */
static int is_done(struct iris_queue *queue,
                   const struct iris_stream_mark *mark)
{
    struct iris_stream *s;
    int done;

    pthread_mutex_lock(&queue->lock);
    for (s = queue->streams; s != NULL && mark->stream != s->number + 1;
         s = s->next) {
    }
    done = s == NULL || mark_of(s).waits != mark->waits;
    pthread_mutex_unlock(&queue->lock);
    return done;
}

static int may_take(struct iris_queue *queue,
                    const struct iris_stream_mark *mark,
                    const struct iris_stream *stream)
{
    return mark->stream == stream->number + 1 || is_done(queue, mark);
}

/* Notes that launches of the graph will use the memory; 0: no memory for the
 * note. */
static int note_use(struct iris_graph *graph, struct iris_stream_mark *mark)
{
    struct iris_stream_mark **uses;

    for (size_t i = 0; i < graph->num_uses; i++) {
        if (graph->uses[i] == mark) {
            return 1;
        }
    }
    uses = realloc(graph->uses, (graph->num_uses + 1) * sizeof(*uses));
    if (uses != NULL) {
        graph->uses = uses;
        uses[graph->num_uses++] = mark;
    }
    return uses != NULL;
}

int iris_i_stream_mark_take(struct iris_queue *queue,
                            struct iris_stream_mark *mark,
                            struct iris_stream *stream)
{
    if (stream->capturing != NULL && note_use(stream->capturing, mark)) {
        return 1;
    }
    if (!may_take(queue, mark, stream)) {
        return 0;
    }
    *mark = mark_of(stream);
    return 1;
}

static void forget_use(struct iris_graph *graph,
                       const struct iris_stream_mark *mark)
{
    for (size_t i = 0; i < graph->num_uses; i++) {
        if (graph->uses[i] == mark) {
            graph->uses[i] = graph->uses[--graph->num_uses];
            graph->is_stale = 1;
            return;
        }
    }
}

void iris_i_stream_mark_forget(struct iris_queue *queue,
                               const struct iris_stream_mark *mark)
{
    pthread_mutex_lock(&queue->lock);
    for (struct iris_graph *g = queue->graphs; g != NULL; g = g->next) {
        forget_use(g, mark);
    }
    for (struct iris_stream *s = queue->streams; s != NULL; s = s->next) {
        if (s->capturing != NULL) {
            forget_use(s->capturing, mark);
        }
    }
    pthread_mutex_unlock(&queue->lock);
}

/* Takes all memory that the graph uses for a launch, or none of it. */
static iris_status_t take_uses(struct iris_queue *queue,
                               const struct iris_graph *graph,
                               struct iris_stream *stream)
{
    if (graph->is_stale) {
        return iris_i_fail(
            queue->log, IRIS_ERR_STATE,
            "iris_graph_launch: a workspace that a captured call "
            "uses is gone; capture the calls again");
    }
    for (size_t i = 0; i < graph->num_uses; i++) {
        if (!may_take(queue, graph->uses[i], stream)) {
            return iris_i_fail(
                queue->log, IRIS_ERR_STATE,
                "iris_graph_launch: a workspace that a captured call uses was "
                "last used on another stream, whose work may not be done; call "
                "iris_stream_synchronize for that one, or capture the call "
                "with its own workspace (iris_ccl_workspace_create, the "
                "preamble of a fused operation)");
        }
    }
    for (size_t i = 0; i < graph->num_uses; i++) {
        *graph->uses[i] = mark_of(stream);
    }
    return IRIS_OK;
}

/* ---- Launches ---- */

/* The link to the graph, or NULL; the lock is held. */
static struct iris_graph **find(struct iris_queue *queue,
                                const struct iris_graph *graph)
{
    struct iris_graph **link = &queue->graphs;

    while (*link != NULL && *link != graph) {
        link = &(*link)->next;
    }
    return *link == NULL ? NULL : link;
}

iris_status_t iris_i_graph_launch(struct iris_queue *queue, iris_graph_t *graph,
                                  struct iris_stream *stream)
{
    struct iris_host_event event = {.op = IRIS_HOST_GRAPH,
                                    .rank = queue->log->rank,
                                    .target_rank = -1,
                                    .stream = stream};
    iris_status_t status;
    int known;

    pthread_mutex_lock(&queue->lock);
    known = graph != NULL && find(queue, graph) != NULL;
    pthread_mutex_unlock(&queue->lock);
    if (!known) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_graph_launch: %p is not a live graph of this "
                           "context; pass one that iris_capture_end gave",
                           (void *)graph);
    }
    status = take_uses(queue, graph, stream);
    if (status != IRIS_OK) {
        return status;
    }
    iris_i_hooks_before(queue->hooks, &event);
    status = iris_i_queue_graph_launch(stream, graph->native);
    return iris_i_hooks_after(queue->hooks, &event,
                              iris_i_fail_on(queue->log, status));
}

void iris_i_graph_destroy(struct iris_queue *queue, iris_graph_t *graph)
{
    struct iris_graph **link;

    pthread_mutex_lock(&queue->lock);
    link = find(queue, graph);
    if (link != NULL) {
        *link = graph->next;
    }
    pthread_mutex_unlock(&queue->lock);
    if (link == NULL) {
        iris_i_error(queue->log,
                     "iris_graph_destroy: %p is not a live graph of this "
                     "context",
                     (void *)graph);
        return;
    }
    iris_i_device_graph_destroy(queue->backend, graph->native);
    free_graph(graph);
}
