/* SPDX-License-Identifier: MIT
 *
 * Captures and graphs.
 */
#include "config.h"

#include "backend_hip/internal.h"

#include <stdlib.h>

struct hip_graph {
    hipGraphExec_t exec;
    size_t num_nodes;
};

/* Relaxed mode: a kernel's image is loaded at its first launch, which may be in
 * a capture, and the other modes forbid that. */
static iris_status_t do_begin(struct hip_stream *stream, void *what)
{
    const struct hip_backend *hip = stream->hip;
    hipError_t error;

    (void)what;
    if (stream->capturing) {
        return iris_i_hip_fail_captured(hip, "the beginning of a capture");
    }
    error = hipStreamBeginCapture(stream->native, hipStreamCaptureModeRelaxed);
    stream->capturing = error == hipSuccess;
    return iris_i_hip_fail(hip, error, "a capture cannot begin");
}

iris_status_t iris_i_hip_capture_begin(struct iris_stream *stream)
{
    return iris_i_hip_enqueue(stream, 1, do_begin, NULL);
}

/* Instantiates the captured graph. */
static hipError_t make_ready(struct hip_stream *stream, struct hip_graph *graph)
{
    hipGraph_t captured = NULL;
    hipError_t error = hipStreamEndCapture(stream->native, &captured);

    error = error ? error : hipGraphGetNodes(captured, NULL, &graph->num_nodes);
    error = error ? error
                  : hipGraphInstantiate(&graph->exec, captured, NULL, NULL, 0);
    if (captured != NULL) {
        (void)hipGraphDestroy(captured);
    }
    graph->num_nodes += graph->num_nodes == 0; /* a launch counts as at least
                                                * one */
    return error;
}

iris_status_t iris_i_hip_capture_end(struct iris_stream *base, void **graph_p)
{
    struct hip_stream *stream = (struct hip_stream *)base;
    const struct hip_backend *hip = (struct hip_backend *)base->backend;
    struct hip_graph *graph = calloc(1, sizeof *graph);
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    iris_status_t status =
        graph == NULL ? iris_i_hip_refuse(hip, IRIS_ERR_NO_MEMORY, "no memory")
        : iris_i_hip_capturing(stream)
            ? iris_i_hip_fail(hip, make_ready(stream, graph),
                              "the capture gives no graph")
            : iris_i_hip_refuse(hip, IRIS_ERR_STATE,
                                "iris_capture_end without iris_capture_begin "
                                "on this stream");

    if (status != IRIS_OK) {
        free(graph);
        return status;
    }
    *graph_p = graph;
    return IRIS_OK;
}

static iris_status_t do_launch(struct hip_stream *stream, void *exec)
{
    const struct hip_backend *hip = stream->hip;

    return stream->capturing
               ? iris_i_hip_fail_captured(hip, "the launch of a graph")
               : iris_i_hip_fail(hip, hipGraphLaunch(exec, stream->native),
                                 "launch of a graph");
}

iris_status_t iris_i_hip_graph_launch(struct iris_stream *stream, void *handle)
{
    const struct hip_graph *graph = handle;

    return iris_i_hip_enqueue(stream, graph->num_nodes, do_launch, graph->exec);
}

void iris_i_hip_graph_destroy(struct iris_backend *backend, void *handle)
{
    const struct hip_backend *hip = (struct hip_backend *)backend;
    HIP_SCOPED struct hip_before before = iris_i_hip_enter(hip);
    struct hip_graph *graph = handle;

    if (!hip->stuck) {
        (void)hipGraphExecDestroy(graph->exec);
    }
    free(graph);
}
