/* SPDX-License-Identifier: MIT
 *
 * The fake HIP runtime's graphs, lists of operations, and events, places in
 * streams.
 */
#include "config.h"

#include "fake_stream.h"

#include <stdlib.h>

struct ihipGraph {
    struct fake_op *head;
    struct fake_op *last;
};

struct hipGraphExec {
    struct ihipGraph graph;
    unsigned nodes; /* kernels and copies */
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
    op->takes_no_room = op->kind == FAKE_COPY || op->kind == FAKE_COPY_ROWS ||
                        op->kind == FAKE_LAUNCH;
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
    if (error == hipSuccess && stream->capture == NULL) {
        error = hipErrorIllegalState;
    }
    if (error == hipSuccess) {
        *graph_p = stream->capture;
        stream->capture = NULL;
        if (stream->broken) {
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

FAKE_EXPORT hipError_t hipGraphLaunch(hipGraphExec_t exec, hipStream_t handle)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error == hipSuccess) {
        error = fake_stream_lock_idle(handle, &stream);
    }
    if (error == hipSuccess) {
        pthread_mutex_unlock(&fake_streams_lock);
    }
    for (const struct fake_op *op = exec->graph.head;
         op != NULL && error == hipSuccess; op = op->next) {
        error = fake_enqueue(handle, op, op->args);
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
    fake_nodes_live -= exec->nodes;
    free(exec);
    fake_graphs_live--;
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

/* ---- Events ---- */

struct ihipEvent_t {
    hipStream_t stream; /* NULL: not recorded */
    uint64_t target;
};

FAKE_EXPORT hipError_t hipEventCreateWithFlags(hipEvent_t *event_p,
                                               unsigned flags)
{
    hipError_t error = fake_enter(__func__);

    (void)flags;
    if (error == hipSuccess) {
        *event_p = calloc(1, sizeof **event_p);
        error = *event_p == NULL ? hipErrorOutOfMemory : hipSuccess;
    }
    return fake_leave(error);
}

FAKE_EXPORT hipError_t hipEventDestroy(hipEvent_t event)
{
    free(event);
    return fake_enter(__func__);
}

FAKE_EXPORT hipError_t hipEventRecord(hipEvent_t event, hipStream_t handle)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error != hipSuccess) {
        return error;
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    if (error == hipSuccess) {
        event->stream = stream;
        event->target = stream->submitted;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

/* What was on a stream that is gone is done. */
FAKE_EXPORT hipError_t hipEventQuery(hipEvent_t event)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error == hipSuccess) {
        error = fake_refuse_capture();
    }
    if (error != hipSuccess) {
        return fake_leave(error);
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = event->stream != NULL &&
                    fake_stream_find(event->stream, &stream) == hipSuccess
                ? fake_stream_done(stream, event->target)
                : fake_lost();
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}

/* HIP has it since 5.6. */
FAKE_EXPORT hipError_t hipStreamGetDevice(hipStream_t handle,
                                          hipDevice_t *device_p);

FAKE_EXPORT hipError_t hipStreamGetDevice(hipStream_t handle,
                                          hipDevice_t *device_p)
{
    hipError_t error = fake_enter(__func__);
    hipStream_t stream;

    if (error != hipSuccess) {
        return error;
    }
    pthread_mutex_lock(&fake_streams_lock);
    error = fake_stream_find(handle, &stream);
    if (error == hipSuccess) {
        *device_p = stream->device;
    }
    pthread_mutex_unlock(&fake_streams_lock);
    return fake_leave(error);
}
