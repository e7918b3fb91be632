/* SPDX-License-Identifier: MIT
 *
 * Graphs: the context's list of them, and the backend's captures.
 */
#include "config.h"

#include <iris/graph.h>

#include "queue/graph.h"
#include "base/log.h"
#include "queue/stream.h"

#include <stdlib.h>

static iris_status_t enter(iris_t *iris, const char *call,
                           iris_stream_t **stream_p)
{
    iris_status_t status = iris_i_enter(iris, call);

    return status == IRIS_OK ? iris_i_stream_resolve(iris, *stream_p, stream_p)
                             : status;
}

iris_status_t iris_capture_begin(iris_t *iris, iris_stream_t *stream)
{
    iris_status_t status = enter(iris, "iris_capture_begin", &stream);

    return status == IRIS_OK
               ? iris_i_fail_on(&iris->log, iris_i_queue_capture_begin(stream))
               : status;
}

iris_status_t iris_capture_end(iris_t *iris, iris_stream_t *stream,
                               iris_graph_t **graph_p)
{
    iris_status_t status = enter(iris, "iris_capture_end", &stream);
    struct iris_graph *graph;

    if (status != IRIS_OK) {
        return status;
    }
    if (graph_p == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_capture_end: graph_p is NULL; pass where to "
                           "put the graph");
    }
    graph = calloc(1, sizeof *graph);
    if (graph == NULL) {
        return iris_i_fail(&iris->log, IRIS_ERR_NO_MEMORY,
                           "no memory for a graph");
    }
    status = iris_i_queue_capture_end(stream, &graph->native);
    if (status != IRIS_OK) {
        free(graph);
        return iris_i_fail_on(&iris->log, status);
    }
    pthread_mutex_lock(&iris->streams_lock);
    graph->next = iris->graphs;
    iris->graphs = graph;
    pthread_mutex_unlock(&iris->streams_lock);
    *graph_p = graph;
    return IRIS_OK;
}

/* The link that holds the graph, or NULL; the lock is held. */
static struct iris_graph **find(iris_t *iris, const struct iris_graph *graph)
{
    struct iris_graph **link = &iris->graphs;

    while (*link != NULL && *link != graph) {
        link = &(*link)->next;
    }
    return *link == NULL ? NULL : link;
}

iris_status_t iris_graph_launch(iris_t *iris, iris_graph_t *graph,
                                iris_stream_t *stream)
{
    iris_status_t status = enter(iris, "iris_graph_launch", &stream);
    int known;

    if (status != IRIS_OK) {
        return status;
    }
    pthread_mutex_lock(&iris->streams_lock);
    known = graph != NULL && find(iris, graph) != NULL;
    pthread_mutex_unlock(&iris->streams_lock);
    if (!known) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_graph_launch: %p is not a live graph of this "
                           "context; pass one that iris_capture_end gave",
                           (void *)graph);
    }
    return iris_i_fail_on(&iris->log,
                          iris_i_queue_graph_launch(stream, graph->native));
}

void iris_graph_destroy(iris_t *iris, iris_graph_t *graph)
{
    struct iris_graph **link;

    if (graph == NULL || iris_i_enter(iris, "iris_graph_destroy") != IRIS_OK) {
        return;
    }
    pthread_mutex_lock(&iris->streams_lock);
    link = find(iris, graph);
    if (link != NULL) {
        *link = graph->next;
    }
    pthread_mutex_unlock(&iris->streams_lock);
    if (link == NULL) {
        iris_i_error(&iris->log,
                     "iris_graph_destroy: %p is not a live graph of this "
                     "context",
                     (void *)graph);
        return;
    }
    iris_i_graph_end(iris->backend, graph->native);
    free(graph);
}

void iris_i_graph_close_all(iris_t *iris)
{
    while (iris->graphs != NULL) {
        struct iris_graph *graph = iris->graphs;

        iris->graphs = graph->next;
        iris_i_graph_end(iris->backend, graph->native);
        free(graph);
    }
}
