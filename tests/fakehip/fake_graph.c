/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's graphs, lists of operations of one stream or several.
 */
#include "config.h"

#include "fake_stream.h"

#include <stdlib.h>

struct hipGraphExec {
    struct ihipGraph graph;
    unsigned nodes; /* kernels and copies */
    hipStream_t
        streams[FAKE_LANES]; /* the first is the one that it is launched on */
};

int fake_graphs_live;
unsigned fake_nodes_live;

void fake_graph_append(hipGraph_t graph, struct fake_op *op)
{
    if (graph->head == NULL) {
        graph->head = op;
    } else {
        graph->last->next = op;
    }
    graph->last = op;
    graph->lengths[op->lane]++;
    op->takes_no_room = op->kind == FAKE_COPY || op->kind == FAKE_COPY_ROWS ||
                        op->kind == FAKE_LAUNCH || op->kind == FAKE_FOLLOW;
}

static void clear(struct ihipGraph *graph)
{
    while (graph->head != NULL) {
        struct fake_op *op = graph->head;

        graph->head = op->next;
        free(op);
    }
}

void fake_graph_free(hipGraph_t graph)
{
    clear(graph);
    free(graph);
    fake_graphs_live--;
}

static _Thread_local hipStreamCaptureMode thread_mode =
    hipStreamCaptureModeGlobal;

FAKE_EXPORT hipError_t
hipThreadExchangeStreamCaptureMode(hipStreamCaptureMode *mode_p)
{
    hipError_t error = fake_enter(__func__);

    if (error == hipSuccess) {
        hipStreamCaptureMode before = thread_mode;

        thread_mode = *mode_p;
        *mode_p = before;
    }
    return fake_leave(error);
}

bool fake_is_forbidden(const struct ihipStream_t *stream)
{
    bool own = pthread_equal(stream->capturer, pthread_self());

    return stream->capture != NULL &&
           thread_mode != hipStreamCaptureModeRelaxed &&
           ((own && stream->mode != hipStreamCaptureModeRelaxed) ||
            (thread_mode == hipStreamCaptureModeGlobal &&
             stream->mode == hipStreamCaptureModeGlobal));
}

FAKE_EXPORT hipError_t hipStreamBeginCapture(hipStream_t handle,
                                             hipStreamCaptureMode mode)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    /* The legacy default stream cannot be captured. */
    if (error == hipSuccess && handle == NULL) {
        error = hipErrorStreamCaptureUnsupported;
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    if (error == hipSuccess && stream->capture != NULL) {
        error = hipErrorIllegalState;
    }
    if (error == hipSuccess) {
        stream->capture = calloc(1, sizeof *stream->capture);
        stream->capture->lanes = 1;
        stream->lane = 0;
        stream->broken = false;
        stream->mode = mode;
        stream->capturer = pthread_self();
        fake_graphs_live++;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipStreamIsCapturing(hipStream_t handle,
                                            hipStreamCaptureStatus *status_p)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error != hipSuccess) {
        return error;
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    if (error == hipSuccess) {
        *status_p = stream->capture == NULL ? hipStreamCaptureStatusNone
                    : stream->broken        ? hipStreamCaptureStatusInvalidated
                                            : hipStreamCaptureStatusActive;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

/* Whether the first lane waits, maybe by way of others, for all that the others
 * do. */
static bool is_joined(const struct ihipGraph *graph)
{
    unsigned lane = 1;

    while (lane < graph->lanes &&
           graph->awaited[lane] == graph->lengths[lane]) {
        lane++;
    }
    return lane == graph->lanes;
}

FAKE_EXPORT hipError_t hipStreamEndCapture(hipStream_t handle,
                                           hipGraph_t *graph_p)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error != hipSuccess) {
        return error;
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    if (error == hipSuccess && (stream->capture == NULL || stream->lane != 0)) {
        error = hipErrorIllegalState;
    }
    if (error == hipSuccess) {
        *graph_p = stream->capture;
        fake_streams_leave(stream->capture);
        if (stream->broken || !is_joined(*graph_p)) {
            fake_graph_free(*graph_p);
            *graph_p = NULL;
            error = hipErrorStreamCaptureInvalidated;
        }
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipGraphGetNodes(hipGraph_t graph, hipGraphNode_t *nodes,
                                        size_t *count_p)
{
    hipError_t error = fake_enter(__func__);

    if (nodes != NULL) {
        return fake_leave(hipErrorNotSupported);
    }
    *count_p = 0;
    pthread_mutex_lock(&fake_streams_lock);
    for (const struct fake_op *op = graph->head; op != NULL; op = op->next) {
        ++*count_p;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipGraphInstantiate(hipGraphExec_t *exec_p,
                                           hipGraph_t graph,
                                           hipGraphNode_t *node_p, char *log,
                                           size_t log_bytes)
{
    hipError_t error = fake_enter(__func__);
    hipGraphExec_t exec;

    (void)node_p, (void)log, (void)log_bytes;
    if (error != hipSuccess) {
        return error;
    }
    exec = calloc(1, sizeof *exec);
    pthread_mutex_lock(&fake_streams_lock);
    exec->graph.lanes = graph->lanes;
    for (unsigned lane = 1; lane < graph->lanes; lane++) {
        exec->streams[lane] = fake_stream_hide(fake_device());
    }
    for (const struct fake_op *op = graph->head; op != NULL; op = op->next) {
        fake_graph_append(&exec->graph, fake_op_copy(op, op->args));
        exec->nodes += op->takes_no_room;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    fake_make_room(exec->nodes);
    pthread_mutex_lock(&fake_streams_lock);
    fake_graphs_live++;
    fake_nodes_live += exec->nodes;
    pthread_mutex_unlock(&fake_streams_lock);
    *exec_p = exec;
    return hipSuccess;
}

/* Each lane on its stream, and what waits for another lane where it is in this
 * launch. */
static hipError_t launch(const struct hipGraphExec *exec,
                         const uint64_t *before)
{
    hipError_t error = hipSuccess;

    for (const struct fake_op *op = exec->graph.head;
         op != NULL && error == hipSuccess; op = op->next) {
        struct fake_op one = *op;

        one.other = exec->streams[op->other_lane];
        one.value += op->kind == FAKE_FOLLOW ? before[op->other_lane] : 0;
        error = fake_enqueue(exec->streams[op->lane], &one, op->args);
    }
    return error;
}

FAKE_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t handle)
{
    hipError_t error = fake_enter(__func__);
    uint64_t before[FAKE_LANES];

    if (error == hipSuccess) {
        error = fake_stream_lock_idle(handle, &exec->streams[0]);
    }
    if (error == hipSuccess) {
        for (unsigned lane = 0; lane < exec->graph.lanes; lane++) {
            before[lane] = exec->streams[lane]->submitted;
        }
        pthread_mutex_unlock(&fake_streams_lock);
        error = launch(exec, before);
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipGraphDestroy(hipGraph_t graph)
{
    hipError_t error = fake_enter(__func__);

    pthread_mutex_lock(&fake_streams_lock);
    fake_graph_free(graph);
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipGraphExecDestroy(hipGraphExec_t exec)
{
    hipError_t error = fake_enter(__func__);

    pthread_mutex_lock(&fake_streams_lock);
    clear(&exec->graph);
    for (unsigned lane = 1; lane < exec->graph.lanes; lane++) {
        (void)fake_stream_destroy(exec->streams[lane]);
    }
    fake_nodes_live -= exec->nodes;
    free(exec);
    fake_graphs_live--;
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}
