/* SPDX-License-Identifier: MIT
 *
 * Work that the host enqueues operation by operation: on a GPU as launches of a
 * graph of many, so that the device is timed and not the host's calls.
 */
#include "config.h"

#include "bench.h"

/* Operations of one graph. */
#define GRAPH_OPS 50

void bench_graph_drop(struct bench *b)
{
    iris_graph_destroy(b->iris, b->graph);
    b->graph = NULL;
}

static iris_status_t enqueue(struct bench *b, bench_enqueue_fn one,
                             const void *arg, uint32_t count)
{
    iris_status_t status = IRIS_OK;

    while (count-- != 0 && status == IRIS_OK) {
        status = one(b, arg);
    }
    return status;
}

/* Captures GRAPH_OPS operations, once for a point. What cannot be captured is
 * enqueued one by one from then on. */
static iris_status_t capture(struct bench *b, bench_enqueue_fn one,
                             const void *arg)
{
    iris_status_t status = iris_capture_begin(b->iris, NULL), ended;

    if (status != IRIS_OK) {
        b->options.graph = false;
        return IRIS_OK;
    }
    status = enqueue(b, one, arg, GRAPH_OPS);
    ended = iris_capture_end(b->iris, NULL, &b->graph);
    if (status == IRIS_ERR_STATE) { /* pageable memory, say */
        if (ended == IRIS_OK) {
            bench_graph_drop(b);
        }
        b->no_graph = true;
        return IRIS_OK;
    }
    return status == IRIS_OK ? ended : status;
}

iris_status_t bench_enqueue(struct bench *b, bench_enqueue_fn one,
                            const void *arg, uint32_t reps)
{
    iris_status_t status = IRIS_OK;

    if (b->options.graph && !b->no_graph && b->graph == NULL &&
        reps >= GRAPH_OPS) {
        status = capture(b, one, arg);
    }
    for (; b->graph != NULL && reps >= GRAPH_OPS && status == IRIS_OK;
         reps -= GRAPH_OPS) {
        status = iris_graph_launch(b->iris, b->graph, NULL);
    }
    if (status == IRIS_OK) {
        status = enqueue(b, one, arg, reps);
    }
    return status == IRIS_OK ? iris_stream_synchronize(b->iris, NULL) : status;
}
