/* SPDX-License-Identifier: MIT
 *
 * The public calls about streams, launches and graphs.
 */
#include "config.h"

#include "context/context.h"

#include <iris/device/layout.h>
#include <iris/graph.h>
#include <iris/launch.h>
#include <iris/stream.h>

#include "queue/kernels.h"
#include "queue/queue.h"

static iris_status_t enter_stream(iris_t *iris, const char *call,
                                  iris_stream_t **stream_p)
{
    iris_status_t status = iris_i_enter(iris, call);

    return status == IRIS_OK
               ? iris_i_stream_resolve(&iris->queue, *stream_p, stream_p)
               : status;
}

/* ---- Streams ---- */

iris_status_t iris_stream_create(iris_t *iris, iris_stream_t **stream_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, "iris_stream_create", stream_p, "stream_p");

    return status == IRIS_OK ? iris_i_stream_create(&iris->queue, stream_p)
                             : status;
}

iris_status_t iris_stream_wrap(iris_t *iris, void *native,
                               iris_stream_t **stream_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, "iris_stream_wrap", stream_p, "stream_p");

    return status == IRIS_OK
               ? iris_i_stream_create_around(&iris->queue, native, stream_p)
               : status;
}

void *iris_stream_native(iris_t *iris, iris_stream_t *stream)
{
    return enter_stream(iris, "iris_stream_native", &stream) == IRIS_OK
               ? iris_i_queue_native(stream)
               : NULL;
}

void iris_stream_destroy(iris_t *iris, iris_stream_t *stream)
{
    if (stream != NULL &&
        iris_i_enter(iris, "iris_stream_destroy") == IRIS_OK) {
        iris_i_stream_destroy(&iris->queue, stream);
    }
}

iris_status_t iris_stream_synchronize(iris_t *iris, iris_stream_t *stream)
{
    iris_status_t status =
        enter_stream(iris, "iris_stream_synchronize", &stream);

    return status == IRIS_OK ? iris_i_stream_synchronize(&iris->queue, stream)
                             : status;
}

/* ---- Work ---- */

iris_status_t iris_launch(iris_t *iris, const struct iris_kernel *kernel,
                          unsigned grid, unsigned block, const void *args,
                          size_t args_bytes, iris_stream_t *stream)
{
    const struct iris_launch_request request = {kernel, grid,       block,
                                                args,   args_bytes, false};
    iris_status_t status = iris_i_enter(iris, "iris_launch");

    return status == IRIS_OK ? iris_i_launch(&iris->queue, &request, stream)
                             : status;
}

iris_status_t iris_memcpy(iris_t *iris, void *dst, const void *src,
                          size_t bytes, iris_stream_t *stream)
{
    iris_status_t status = iris_i_enter(iris, "iris_memcpy");

    return status == IRIS_OK
               ? iris_i_copy(&iris->queue, dst, src, bytes, stream)
               : status;
}

/* Waits for the stream first. A copy of pageable memory would block the caller
 * for as long. And in a capture of the default stream, where waiting fails, the
 * copy would otherwise become a part of it. */
iris_status_t iris_memcpy_sync(iris_t *iris, void *dst, const void *src,
                               size_t bytes)
{
    iris_status_t status = iris_stream_synchronize(iris, NULL);

    if (status == IRIS_OK) {
        status = iris_memcpy(iris, dst, src, bytes, NULL);
    }
    return status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
}

iris_status_t iris_memset(iris_t *iris, void *dst, int value, size_t bytes,
                          iris_stream_t *stream)
{
    iris_status_t status = iris_i_enter(iris, "iris_memset");

    return status == IRIS_OK
               ? iris_i_fill(&iris->queue, dst, value, bytes, stream)
               : status;
}

iris_status_t iris_put_on_stream(iris_t *iris, void *dst, const void *src,
                                 size_t bytes, int to_rank,
                                 iris_stream_t *stream)
{
    const struct iris_transfer what = {.call = "iris_put_on_stream",
                                       .name = "dst",
                                       .symmetric = dst,
                                       .other = (void *)(uintptr_t)src,
                                       .bytes = bytes,
                                       .rank = to_rank};
    iris_status_t status = iris_i_enter(iris, what.call);

    return status == IRIS_OK
               ? iris_i_enqueue_transfer(&iris->queue, &what, stream)
               : status;
}

iris_status_t iris_get_on_stream(iris_t *iris, void *dst, const void *src,
                                 size_t bytes, int from_rank,
                                 iris_stream_t *stream)
{
    const struct iris_transfer what = {.call = "iris_get_on_stream",
                                       .name = "src",
                                       .symmetric = (void *)(uintptr_t)src,
                                       .other = dst,
                                       .bytes = bytes,
                                       .rank = from_rank,
                                       .gets = 1};
    iris_status_t status = iris_i_enter(iris, what.call);

    return status == IRIS_OK
               ? iris_i_enqueue_transfer(&iris->queue, &what, stream)
               : status;
}

iris_status_t iris_tiles_on_stream(iris_t *iris, iris_direction_t direction,
                                   const iris_tile_t *dst,
                                   const iris_tile_t *src, size_t count,
                                   int rank, iris_stream_t *stream)
{
    const struct iris_tile_transfer what = {
        "iris_tiles_on_stream", dst, src, count, rank, direction == IRIS_GET};
    iris_status_t status = iris_i_enter(iris, what.call);

    if (status == IRIS_OK && direction != IRIS_PUT && direction != IRIS_GET) {
        status = iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                             "%s: direction %d; pass IRIS_PUT or IRIS_GET",
                             what.call, (int)direction);
    }
    return status == IRIS_OK ? iris_i_enqueue_tiles(&iris->queue, &what, stream)
                             : status;
}

iris_status_t iris_signal_on_stream(iris_t *iris, uint64_t *signal,
                                    uint64_t value, int to_rank,
                                    iris_stream_t *stream)
{
    const struct iris_transfer what = {.call = "iris_signal_on_stream",
                                       .name = "signal",
                                       .symmetric = signal,
                                       .bytes = sizeof *signal,
                                       .rank = to_rank,
                                       .value = value};
    iris_status_t status = iris_i_enter(iris, what.call);

    return status == IRIS_OK
               ? iris_i_enqueue_word(&iris->queue, IRIS_HOST_SIGNAL, &what,
                                     stream)
               : status;
}

iris_status_t iris_put_signal_on_stream(iris_t *iris, void *dst,
                                        const void *src, size_t bytes,
                                        uint64_t *signal, uint64_t value,
                                        iris_signal_op_t signal_op, int to_rank,
                                        iris_stream_t *stream)
{
    const struct iris_transfer put = {.call = "iris_put_signal_on_stream",
                                      .name = "dst",
                                      .symmetric = dst,
                                      .other = (void *)(uintptr_t)src,
                                      .bytes = bytes,
                                      .rank = to_rank};
    const struct iris_transfer word = {.call = put.call,
                                       .name = "signal",
                                       .symmetric = signal,
                                       .bytes = sizeof *signal,
                                       .rank = to_rank,
                                       .adds = signal_op == IRIS_SIGNAL_ADD,
                                       .value = value};
    iris_status_t status = iris_i_enter(iris, put.call);

    if (status == IRIS_OK && signal_op != IRIS_SIGNAL_SET &&
        signal_op != IRIS_SIGNAL_ADD) {
        status =
            iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                        "%s: signal_op %d is not valid; pass IRIS_SIGNAL_SET "
                        "or IRIS_SIGNAL_ADD",
                        put.call, (int)signal_op);
    }
    /* Check the signal first: no put may be enqueued if its signal would be
     * refused. */
    if (status == IRIS_OK) {
        status = iris_i_enqueue_check_signal(&iris->queue, &word, stream);
    }
    if (status == IRIS_OK && bytes != 0) {
        status = iris_i_enqueue_transfer(&iris->queue, &put, stream);
    }
    return status == IRIS_OK
               ? iris_i_enqueue_word(&iris->queue, IRIS_HOST_SIGNAL, &word,
                                     stream)
               : status;
}

iris_status_t iris_wait_on_stream(iris_t *iris, uint64_t *signal,
                                  iris_cmp_t cmp, uint64_t value,
                                  iris_stream_t *stream)
{
    struct iris_transfer what = {.call = "iris_wait_on_stream",
                                 .name = "signal",
                                 .symmetric = signal,
                                 .bytes = sizeof *signal,
                                 .value = value,
                                 .cmp = cmp};
    iris_status_t status = iris_i_enter(iris, what.call);

    if (status == IRIS_OK) {
        what.rank = iris->log.rank;
        status =
            iris_i_enqueue_word(&iris->queue, IRIS_HOST_WAIT, &what, stream);
    }
    return status;
}

/* ---- Graphs ---- */

iris_status_t iris_capture_begin(iris_t *iris, iris_stream_t *stream)
{
    iris_status_t status = enter_stream(iris, "iris_capture_begin", &stream);

    return status == IRIS_OK ? iris_i_capture_begin(&iris->queue, stream)
                             : status;
}

iris_status_t iris_capture_end(iris_t *iris, iris_stream_t *stream,
                               iris_graph_t **graph_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, "iris_capture_end", graph_p, "graph_p");

    if (status == IRIS_OK) {
        status = iris_i_stream_resolve(&iris->queue, stream, &stream);
    }
    return status == IRIS_OK ? iris_i_capture_end(&iris->queue, stream, graph_p)
                             : status;
}

iris_status_t iris_graph_launch(iris_t *iris, iris_graph_t *graph,
                                iris_stream_t *stream)
{
    iris_status_t status = enter_stream(iris, "iris_graph_launch", &stream);

    return status == IRIS_OK ? iris_i_graph_launch(&iris->queue, graph, stream)
                             : status;
}

void iris_graph_destroy(iris_t *iris, iris_graph_t *graph)
{
    if (graph != NULL && iris_i_enter(iris, "iris_graph_destroy") == IRIS_OK) {
        iris_i_graph_destroy(&iris->queue, graph);
    }
}
