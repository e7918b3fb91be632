/* SPDX-License-Identifier: MIT
 *
 * Graphs: a stream's work, captured once and launched many times at the cost of
 * one launch.
 */
#ifndef IRIS_GRAPH_H
#define IRIS_GRAPH_H

#include <iris/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Captured work. Opaque. */
typedef struct iris_graph iris_graph_t;

/* Launches, device barriers, copies between device memories, fills and the
 * host-initiated operations of <iris/stream.h> can be captured; they take their
 * arguments as they are then, so that a replayed signal sets the same value
 * again: docs/kernels.md, "Graphs", says how to wait for it each time. What
 * cannot returns IRIS_ERR_STATE and leaves the capture as it is: whatever waits
 * for the stream on the host (iris_stream_synchronize(), iris_barrier(),
 * iris_calloc() on the default stream), copies of pageable host memory, and
 * launches of graphs. A capture that the program began with its runtime's own
 * calls on a wrapped stream is treated the same way. */

/** From here on, work enqueued on the stream is captured and not run. Local.
 *
 *  IRIS_ERR_UNSUPPORTED  no GPU
 *  IRIS_ERR_STATE        the stream is already being captured
 *  IRIS_ERR_DEVICE, IRIS_ERR_INVALID
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t) */
IRIS_API iris_status_t iris_capture_begin(iris_t *iris, iris_stream_t *stream);

/** Ends the capture; *graph_p is the caller's until iris_graph_destroy().
 *  Local. May wait for kernels as iris_stream_create() does.
 *
 *  IRIS_ERR_STATE        the stream is not being captured
 *  IRIS_ERR_DEVICE       a call in between could not be captured; the capture
 *                        is over
 *  IRIS_ERR_NO_MEMORY
 *  IRIS_ERR_INVALID      graph_p is NULL, or no stream of this context */
IRIS_API iris_status_t iris_capture_end(iris_t *iris, iris_stream_t *stream,
                                        iris_graph_t **graph_p);

/** Enqueues all of the graph on the stream. Asynchronous, local. Launches of
 *  one graph run one after another; the program sees to it that no two threads
 *  make them at once. One of more nodes than fit beside what the stream has, a
 *  thousand together, waits until the stream is empty, and should not itself
 *  wait for a peer and then have a thousand writes, waits or fills: such a
 *  launch cannot be ended.
 *
 *  A launch uses the workspaces of the collectives and fused operations that
 *  were captured by iris_capture_begin(), as if they were called on `stream`
 *  now: IRIS_ERR_STATE if one was last used on another stream whose work may
 *  not be done, or has been destroyed.
 *
 *  IRIS_ERR_INVALID, IRIS_ERR_DEVICE, IRIS_ERR_STATE
 *  IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT  from a full stream (iris_stream_t); a
 *                        launch counts as one call for each node of the graph
 */
IRIS_API iris_status_t iris_graph_launch(iris_t *iris, iris_graph_t *graph,
                                         iris_stream_t *stream);

/** Frees a graph of which no launch is running. iris_finalize() frees what is
 *  left. Local. NULL is fine. */
IRIS_API void iris_graph_destroy(iris_t *iris, iris_graph_t *graph);

#ifdef __cplusplus
}
#endif

#endif /* IRIS_GRAPH_H */
