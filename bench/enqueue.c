/* SPDX-License-Identifier: MIT
 *
 * Work that the host enqueues operation by operation. On a GPU it launches
 * graphs of many operations, so the measured time is the device's and not that
 * of the host's calls.
 */
#include "config.h"

#include "bench.h"

/* Operations of one graph, unless the point has its own number. */
#define GRAPH_OPS 50

void bench_graphs_drop(struct bench *b)
{
    for (int i = 0; i < 1 + BENCH_MAX_REFERENCES; i++) {
        iris_graph_destroy(b->iris, b->graphs[i].graph);
        b->graphs[i].graph = NULL;
    }
}

static iris_status_t enqueue_ops(struct bench *b, bench_enqueue_fn one,
                                 const void *arg, uint32_t count)
{
    iris_status_t status = IRIS_OK;

    while (count-- != 0 && status == IRIS_OK) {
        status = one(b, arg);
    }
    return status;
}

static uint32_t ops_of_graph(const struct bench *b)
{
    return b->graph_ops != 0 ? b->graph_ops : GRAPH_OPS;
}

/* Captures the operations of a graph, once for each point and function. If they
 * cannot be captured, the point enqueues them one by one from then on. */
static iris_status_t capture_ops(struct bench *b, struct bench_graph *to,
                                 const void *arg)
{
    iris_status_t status = iris_capture_begin(b->iris, NULL), ended;

    if (status != IRIS_OK) {
        b->options.graph = false;
        return IRIS_OK;
    }
    status = enqueue_ops(b, to->one, arg, ops_of_graph(b));
    ended = iris_capture_end(b->iris, NULL, &to->graph);
    if (status == IRIS_ERR_STATE) { /* for example pageable memory */
        bench_graphs_drop(b);
        b->no_graph = true;
        return IRIS_OK;
    }
    return status == IRIS_OK ? ended : status;
}

/* Returns the slot with the function's graph, or the slot for a new graph. */
static struct bench_graph *slot_of(struct bench *b, bench_enqueue_fn one)
{
    struct bench_graph *slot = &b->graphs[0];

    while (slot->graph != NULL && slot->one != one) {
        slot++;
    }
    slot->one = one;
    return slot;
}

iris_status_t bench_enqueue(struct bench *b, bench_enqueue_fn one,
                            const void *arg, uint32_t reps)
{
    struct bench_graph *slot = slot_of(b, one);
    uint32_t ops = ops_of_graph(b);
    iris_status_t status = IRIS_OK;

    if (b->options.graph && !b->no_graph && slot->graph == NULL &&
        reps >= ops) {
        status = capture_ops(b, slot, arg);
    }
    for (; slot->graph != NULL && reps >= ops && status == IRIS_OK;
         reps -= ops) {
        status = iris_graph_launch(b->iris, slot->graph, NULL);
    }
    if (status == IRIS_OK) {
        status = enqueue_ops(b, one, arg, reps);
    }
    return status == IRIS_OK ? iris_stream_synchronize(b->iris, NULL) : status;
}
