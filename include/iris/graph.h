/* SPDX-License-Identifier: MIT
 *
 * Graphs: a stream's work, captured once and launched many times. Each launch
 * costs about as much as launching one kernel. Needs a GPU.
 *
 *     iris_graph_t *graph;
 *     status = iris_capture_begin(iris, stream);
 *     status = iris_launch(iris, kernel, 4, 64, &args, sizeof args, stream);
 *     status = iris_device_barrier(iris, stream, NULL);
 *     status = iris_capture_end(iris, stream, &graph);
 *     for (i = 0; i < 1000; i++) {
 *         status = iris_graph_launch(iris, graph, stream);
 *     }
 *
 * @use local; GPU
 */
#ifndef IRIS_GRAPH_H
#define IRIS_GRAPH_H

#include <iris/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Captured work. Opaque. */
typedef struct iris_graph iris_graph_t;

/* A capture takes
 *   - launches and device barriers,
 *   - copies between device memories, and fills,
 *   - the host-initiated operations of <iris/stream.h>.
 * It records their arguments, so a replayed signal sets the same value again;
 * docs/kernels.md, "Graphs", says how to wait for it each time.
 *
 * The following calls return IRIS_ERR_STATE and leave the capture unchanged:
 *   - calls that wait for the stream on the host (iris_stream_synchronize(),
 *     iris_barrier(), iris_calloc() on the default stream),
 *   - copies of pageable host memory,
 *   - launches of graphs.
 * The same rules hold for a capture that the program began with its runtime's
 * own calls on a wrapped stream. */

/** Begins a capture: work enqueued on the stream is recorded and does not run.
 *  Local.
 *
 *  IRIS_ERR_UNSUPPORTED  no GPU
 *  IRIS_ERR_STATE        the stream is already being captured
 *  IRIS_ERR_DEVICE, IRIS_ERR_INVALID
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t)
 *  @use blocks if full; refused */
IRIS_API iris_status_t iris_capture_begin(iris_t *iris, iris_stream_t *stream);

/** Ends the capture. The caller owns *graph_p until iris_graph_destroy(). Local.
 *  May wait for kernels as iris_stream_create() does.
 *
 *  IRIS_ERR_STATE        the stream is not being captured
 *  IRIS_ERR_DEVICE       a call in between could not be captured; the capture
 *                        is over
 *  IRIS_ERR_NO_MEMORY
 *  IRIS_ERR_INVALID      graph_p is NULL, or not a stream of this context
 *  @use blocks at times; apart
 *  @param graph_p  receives the graph */
IRIS_API iris_status_t iris_capture_end(iris_t *iris, iris_stream_t *stream,
                                        iris_graph_t **graph_p);

/** Enqueues all of the graph's work on the stream. Asynchronous, local. Launches
 *  of one graph run one after another. Two threads must not launch the same
 *  graph at the same time.
 *
 *  A stream holds about a thousand nodes. A launch that would exceed this waits
 *  until the stream is empty. A graph must not wait for a peer and then have a
 *  thousand writes, waits or fills: Iris could not end such a launch.
 *
 *  A launch uses the workspaces of the collectives and fused operations that
 *  iris_capture_begin() captured, as if they were called on `stream` now. It
 *  returns IRIS_ERR_STATE if such a workspace has been destroyed, or was last
 *  used on another stream whose work may not have completed.
 *
 *  IRIS_ERR_INVALID, IRIS_ERR_DEVICE, IRIS_ERR_STATE
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t); a
 *                        launch counts as one call for each node of the graph
 *  @use blocks if full; refused */
IRIS_API iris_status_t iris_graph_launch(iris_t *iris, iris_graph_t *graph,
                                         iris_stream_t *stream);

/** Frees a graph; none of its launches may be running. iris_finalize() frees the
 *  graphs that remain. Local. NULL does nothing.
 *  @use never blocks; apart */
IRIS_API void iris_graph_destroy(iris_t *iris, iris_graph_t *graph);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_GRAPH_H */
