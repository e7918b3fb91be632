/* SPDX-License-Identifier: MIT
 *
 * The public calls on a context, its heap, its streams and its graphs. Each enters
 * the context and passes its arguments to the folder that does the work.
 */
#include "config.h"

#include "context/internal.h"

#include "base/base.h"
#include "context/context.h"
#include "control/control.h"
#include "heap/heap.h"
#include "queue/kernels.h"
#include "queue/queue.h"
#include <iris/device/layout.h>
#include <iris/graph.h>
#include <iris/heap.h>
#include <iris/launch.h>
#include <iris/log.h>
#include <iris/stream.h>

#include <stdarg.h>
#include <string.h>

/* ---- The context ---- */

int iris_rank(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_rank") == IRIS_OK ? iris->log.rank : -1;
}

int iris_num_ranks(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_ranks") == IRIS_OK ? iris->log.num_ranks
                                                           : -1;
}

int iris_node(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_node") == IRIS_OK
               ? iris_i_heap_node(&iris->heap.memory, iris->log.rank)
               : -1;
}

int iris_num_nodes(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_nodes") == IRIS_OK
               ? iris->heap.memory.num_nodes
               : -1;
}

int iris_device_id(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_device_id") == IRIS_OK
               ? iris->device.device_id
               : -1;
}

int iris_num_cus(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_num_cus") == IRIS_OK ? iris->device.num_cus
                                                         : -1;
}

const char *iris_backend_name(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_backend_name") == IRIS_OK
               ? iris->placement.name
               : NULL;
}

const int64_t *iris_heap_bases(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_heap_bases") == IRIS_OK
               ? iris_i_heap_bases(&iris->heap.memory)
               : NULL;
}

const int64_t *iris_device_context(const iris_t *iris)
{
    return iris_i_enter(iris, "iris_device_context") == IRIS_OK
               ? iris->device_context
               : NULL;
}

void iris_interrupt(iris_t *iris)
{
    if (iris != NULL) { /* the struct remains even after finalize */
        atomic_store_explicit(&iris->interrupted, 1, memory_order_relaxed);
    }
}

void iris_set_leave_reason(iris_t *iris, const char *reason)
{
    if (iris_i_enter(iris, "iris_set_leave_reason") == IRIS_OK) {
        iris_i_peers_write_reason(iris->control, reason ? reason : "");
    }
}

int iris_lost_rank(iris_t *iris)
{
    if (iris_i_enter(iris, "iris_lost_rank") != IRIS_OK) {
        return -1;
    }
    (void)iris_i_peers_check_all(iris->control);
    return iris_i_peers_lost(iris->control);
}

iris_status_t iris_clear_error(iris_t *iris)
{
    iris_status_t status = iris_i_enter(iris, "iris_clear_error");

    if (status == IRIS_OK) {
        status = iris_i_fail_on(&iris->log,
                                iris_i_device_clear_fault(iris->backend));
    }
    if (status == IRIS_OK) {
        iris_i_recorder_clear(iris);
    }
    return status;
}

/* ---- The log: lines of a context, or without one ---- */

#define LOG_FUNCTION(name, severity)                                        \
    void name(const iris_t *iris, const char *format, ...)                  \
    {                                                                       \
        va_list args;                                                       \
                                                                            \
        va_start(args, format);                                             \
        iris_i_log_args(iris == NULL ? NULL : &iris->log, severity, format, \
                        args);                                              \
        va_end(args);                                                       \
    }

/* void iris_debug(const iris_t *iris, const char *format, ...) and so on */
LOG_FUNCTION(iris_debug, IRIS_LOG_DEBUG)
LOG_FUNCTION(iris_info, IRIS_LOG_INFO)
LOG_FUNCTION(iris_warning, IRIS_LOG_WARNING)
LOG_FUNCTION(iris_error, IRIS_LOG_ERROR)
#undef LOG_FUNCTION

void iris_log_set_level(iris_t *iris, iris_log_level_t level)
{
    if (iris != NULL) {
        atomic_store_explicit(&iris->log.level, (int)level,
                              memory_order_relaxed);
    }
}

/* ---- The heap ---- */

static const struct iris_call_type malloc_call = {
    .name = "iris_malloc",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};
static const struct iris_call_type calloc_call = {
    .name = "iris_calloc",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};
static const struct iris_call_type as_symmetric_call = {
    .name = "iris_as_symmetric",
    .fields = {{.name = "bytes"}, {.name = "alignment"}, {.name = "offset"}},
};

static iris_status_t allocate_bytes(iris_t *iris, const char *call,
                                    size_t bytes, size_t alignment,
                                    void **ptr_p)
{
    const struct iris_heap_request request = {
        .type = &malloc_call, .bytes = bytes, .alignment = alignment};
    iris_status_t status = iris_i_enter(iris, call);

    return status == IRIS_OK
               ? iris_i_heap_allocate(&iris->heap, &request, ptr_p)
               : status;
}

iris_status_t iris_malloc_aligned(iris_t *iris, size_t bytes, size_t alignment,
                                  void **ptr_p)
{
    return allocate_bytes(iris, "iris_malloc_aligned", bytes, alignment, ptr_p);
}

iris_status_t iris_malloc(iris_t *iris, size_t bytes, void **ptr_p)
{
    return allocate_bytes(iris, "iris_malloc", bytes, IRIS_ALIGNMENT, ptr_p);
}

iris_status_t iris_calloc(iris_t *iris, size_t count, size_t size, void **ptr_p)
{
    struct iris_heap_request request = {.type = &calloc_call,
                                        .bytes = count * size,
                                        .alignment = IRIS_ALIGNMENT,
                                        .zero = 1};
    iris_status_t status = iris_i_enter(iris, "iris_calloc");

    if (status != IRIS_OK) {
        return status;
    }
    if (size != 0 && count > SIZE_MAX / size) {
        request.checked =
            iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                        "iris_calloc: count %zu times size %zu overflows; "
                        "ask for less",
                        count, size);
    }
    return iris_i_heap_allocate(&iris->heap, &request, ptr_p);
}

iris_status_t iris_free(iris_t *iris, void *ptr)
{
    iris_status_t status = iris_i_enter(iris, "iris_free");

    return status == IRIS_OK ? iris_i_heap_release(&iris->heap, ptr, IRIS_OK)
                             : status;
}

iris_status_t iris_free_later(iris_t *iris, void *ptr)
{
    iris_status_t status = iris_i_enter(iris, "iris_free_later");

    return status == IRIS_OK && ptr != NULL
               ? iris_i_deferred_add(&iris->heap, ptr)
               : status;
}

iris_status_t iris_free_deferred(iris_t *iris)
{
    iris_status_t status = iris_i_enter(iris, "iris_free_deferred");
    size_t freed;

    return status == IRIS_OK ? iris_i_deferred_free(&iris->heap, &freed)
                             : status;
}

iris_status_t iris_heap_trim(iris_t *iris, size_t *freed_p)
{
    iris_status_t status = iris_i_enter(iris, "iris_heap_trim");
    size_t freed = 0;

    if (status == IRIS_OK) {
        status = iris_i_heap_trim_all(&iris->heap, &freed);
    }
    if (status == IRIS_OK && freed_p != NULL) {
        *freed_p = freed;
    }
    return status;
}

iris_status_t iris_as_symmetric(iris_t *iris, const void *ptr, size_t bytes,
                                void **symmetric_p, int *shared_p)
{
    const struct iris_heap_request request = {.type = &as_symmetric_call,
                                              .bytes = bytes,
                                              .alignment = IRIS_ALIGNMENT};
    iris_status_t status = iris_i_enter(iris, "iris_as_symmetric");

    return status == IRIS_OK ? iris_i_external_share(&iris->heap, &request, ptr,
                                                     symmetric_p, shared_p)
                             : status;
}

iris_status_t iris_heap_stats_sized(const iris_t *iris,
                                    struct iris_heap_stats *stats_p,
                                    size_t size)
{
    iris_status_t status = iris_i_enter(iris, "iris_heap_stats");
    struct iris_heap_stats stats = {.size = 0};

    if (status != IRIS_OK) {
        return status;
    }
    if (stats_p == NULL || !iris_i_sized_fits(size)) {
        return iris_i_fail(&iris->log, IRIS_ERR_INVALID,
                           "iris_heap_stats: stats_p is NULL or of %zu bytes; "
                           "pass where to put the figures",
                           size);
    }
    iris_i_heap_stats(&iris->heap, &stats);
    stats.size = size < sizeof stats ? size : sizeof stats;
    memset(stats_p, 0, size);
    memcpy(stats_p, &stats, stats.size);
    return IRIS_OK;
}

iris_status_t iris_name(iris_t *iris, const void *ptr, const char *name)
{
    iris_status_t status = iris_i_enter(iris, "iris_name");

    return status == IRIS_OK
               ? iris_i_heap_set_name(&iris->heap.names, ptr, name)
               : status;
}

int iris_is_symmetric(const iris_t *iris, const void *ptr)
{
    return iris_i_enter(iris, "iris_is_symmetric") == IRIS_OK &&
           iris_i_heap_bytes_from(&iris->heap, ptr) > 0;
}

int iris_is_reachable(const iris_t *iris, int rank)
{
    return iris_i_enter(iris, "iris_is_reachable") == IRIS_OK && rank >= 0 &&
           rank < iris->log.num_ranks &&
           iris_i_heap_bases(&iris->heap.memory)[rank] != 0;
}

iris_status_t iris_as_remote(const iris_t *iris, const void *ptr, int rank,
                             void **remote_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, "iris_as_remote", remote_p, "remote_p");

    return status == IRIS_OK
               ? iris_i_heap_translate(&iris->heap, "iris_as_remote", ptr, rank,
                                       remote_p)
               : status;
}

iris_status_t iris_translate(const iris_t *iris, const void *ptr, int from_rank,
                             int to_rank, void **there_p)
{
    iris_status_t status =
        iris_i_enter_output(iris, "iris_translate", there_p, "there_p");
    void *own = NULL;

    if (status == IRIS_OK) {
        status = iris_i_heap_untranslate(&iris->heap, "iris_translate", ptr,
                                         from_rank, &own);
    }
    return status == IRIS_OK
               ? iris_i_heap_translate(&iris->heap, "iris_translate", own,
                                       to_rank, there_p)
               : status;
}

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
