/* SPDX-License-Identifier: MIT
 *
 * Graphs: the rank's list of them, and the backend's captures.
 */
#include "config.h"

#include "queue/queue.h"

#include <stdlib.h>

iris_status_t iris_i_capture_begin(struct iris_queue *queue,
                                   iris_stream_t *stream)
{
    iris_status_t status = iris_i_stream_resolve(queue, stream, &stream);

    return status == IRIS_OK
               ? iris_i_fail_on(queue->log, iris_i_queue_capture_begin(stream))
               : status;
}

iris_status_t iris_i_capture_end(struct iris_queue *queue,
                                 iris_stream_t *stream,
                                 struct iris_graph **graph_p)
{
    iris_status_t status = iris_i_stream_resolve(queue, stream, &stream);
    struct iris_graph *graph;

    if (status != IRIS_OK) {
        return status;
    }
    graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        return iris_i_fail(queue->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a graph");
    }
    status = iris_i_queue_capture_end(stream, &graph->native);
    if (status != IRIS_OK) {
        free(graph);
        return iris_i_fail_on(queue->log, status);
    }
    pthread_mutex_lock(&queue->lock);
    graph->next = queue->graphs;
    queue->graphs = graph;
    pthread_mutex_unlock(&queue->lock);
    *graph_p = graph;
    return IRIS_OK;
}

/* The link that holds the graph, or NULL; the lock is held. */
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
                                  iris_stream_t *stream)
{
    struct iris_host_event event = {
        .op = IRIS_HOST_GRAPH, .rank = queue->log->rank, .target_rank = -1};
    iris_status_t status = iris_i_stream_resolve(queue, stream, &stream);
    int known;

    if (status != IRIS_OK) {
        return status;
    }
    pthread_mutex_lock(&queue->lock);
    known = graph != NULL && find(queue, graph) != NULL;
    pthread_mutex_unlock(&queue->lock);
    if (!known) {
        return iris_i_fail(queue->log, IRIS_ERR_INVALID,
                           "iris_graph_launch: %p is not a live graph of this "
                           "context; pass one that iris_capture_end gave",
                           (void *)graph);
    }
    event.stream = stream;
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
    free(graph);
}
