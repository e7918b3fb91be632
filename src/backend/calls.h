/* SPDX-License-Identifier: MIT
 *
 * Calls into a backend: one thin function for each slot of backend.h, with the
 * slot's contract. No other code uses the tables.
 *
 * Functions that enqueue work, or wait for it, first return the instance's
 * fault if there is one.
 */
#ifndef IRIS_SRC_BACKEND_CALLS_H
#define IRIS_SRC_BACKEND_CALLS_H

#include "backend/backend.h"

static inline iris_status_t
iris_i_device_open(const struct iris_backend_type *type,
                   const struct iris_backend_params *params,
                   struct iris_backend **backend_p)
{
    return type->open(params, backend_p);
}

static inline void iris_i_device_info(const struct iris_backend *backend,
                                      struct iris_device_info *info_p)
{
    backend->device->info(backend, info_p);
}

static inline iris_status_t
iris_i_device_stream_create(struct iris_backend *backend,
                            struct iris_stream **stream_p)
{
    return backend->device->stream_create(backend, stream_p);
}

static inline iris_status_t
iris_i_device_stream_wrap(struct iris_backend *backend, void *native,
                          struct iris_stream **stream_p)
{
    return backend->device->stream_wrap(backend, native, stream_p);
}

static inline void iris_i_device_stream_destroy(struct iris_stream *stream)
{
    stream->backend->device->stream_destroy(stream);
}

static inline void iris_i_device_graph_destroy(struct iris_backend *backend,
                                               void *graph)
{
    backend->device->graph_destroy(backend, graph);
}

static inline iris_status_t
iris_i_device_clear_fault(struct iris_backend *backend)
{
    return backend->device->clear_fault(backend);
}

static inline void iris_i_device_renumber(struct iris_backend *backend,
                                          int rank, int num_ranks)
{
    backend->device->renumber(backend, rank, num_ranks);
}

/* `backend` may be NULL. */
static inline void iris_i_device_close(struct iris_backend *backend)
{
    if (backend != NULL) {
        backend->device->close(backend);
    }
}

static inline iris_status_t
iris_i_memory_alloc(struct iris_backend *backend, size_t bytes,
                    struct iris_heap_region *region_p)
{
    return backend->memory->alloc(backend, bytes, region_p);
}

static inline void iris_i_memory_free(struct iris_backend *backend,
                                      struct iris_heap_region *region)
{
    backend->memory->free(backend, region);
}

static inline iris_status_t
iris_i_memory_check_access(struct iris_backend *backend, const char *name,
                           const void *ptr, size_t bytes)
{
    return backend->memory->check_access(backend, name, ptr, bytes);
}

static inline iris_status_t
iris_i_memory_export(struct iris_backend *backend,
                     const struct iris_heap_region *region,
                     struct iris_heap_handle *handle_p)
{
    return backend->memory->export_heap(backend, region, handle_p);
}

static inline iris_status_t
iris_i_memory_import(struct iris_backend *backend,
                     const struct iris_heap_handle *handle, size_t bytes,
                     void **base_p)
{
    return backend->memory->import_heap(backend, handle, bytes, base_p);
}

static inline void iris_i_memory_unimport(struct iris_backend *backend,
                                          void *base, size_t bytes)
{
    backend->memory->unimport_heap(backend, base, bytes);
}

static inline iris_status_t iris_i_memory_commit(struct iris_backend *backend,
                                                 void *at, size_t bytes)
{
    return backend->memory->commit(backend, at, bytes);
}

static inline void iris_i_memory_decommit(struct iris_backend *backend,
                                          void *at, size_t bytes)
{
    backend->memory->decommit(backend, at, bytes);
}

static inline iris_status_t
iris_i_memory_export_range(struct iris_backend *backend, void *at,
                           struct iris_heap_handle *handle_p)
{
    return backend->memory->export_range(backend, at, handle_p);
}

static inline iris_status_t
iris_i_memory_import_range(struct iris_backend *backend, void *at, size_t most,
                           const struct iris_heap_handle *handle)
{
    return backend->memory->import_range(backend, at, most, handle);
}

static inline iris_status_t
iris_i_memory_hold_external(struct iris_backend *backend, const void *ptr,
                            size_t bytes, struct iris_external *external_p)
{
    return backend->memory->hold_external(backend, ptr, bytes, external_p);
}

static inline void
iris_i_memory_release_external(struct iris_backend *backend,
                               struct iris_external *external)
{
    backend->memory->release_external(backend, external);
}

static inline iris_status_t
iris_i_memory_map_external(struct iris_backend *backend, void *at,
                           struct iris_external *external)
{
    return backend->memory->map_external(backend, at, external);
}

static inline iris_status_t iris_i_memory_pin(struct iris_backend *backend,
                                              size_t bytes,
                                              struct iris_pinned *pinned_p)
{
    return backend->memory->pin(backend, bytes, pinned_p);
}

static inline void iris_i_memory_unpin(struct iris_backend *backend,
                                       struct iris_pinned *pinned)
{
    backend->memory->unpin(backend, pinned);
}

static inline iris_status_t iris_i_queue_synchronize(struct iris_stream *stream)
{
    return stream->backend->queue->synchronize(stream);
}

static inline int iris_i_queue_query(struct iris_stream *stream,
                                     uint64_t *target_p)
{
    return stream->backend->queue->query(stream, target_p);
}

/* The fault that keeps the stream from its work. */
static inline iris_status_t iris_i_queue_fault(const struct iris_stream *stream)
{
    return iris_i_fault_of(stream, iris_i_fault_check(stream->backend));
}

static inline iris_status_t iris_i_queue_copy(struct iris_stream *stream,
                                              void *dst, const void *src,
                                              size_t bytes)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status
                  : stream->backend->queue->copy(stream, dst, src, bytes);
}

static inline iris_status_t
iris_i_queue_copy_rows(struct iris_stream *stream,
                       const struct iris_copy_rows *rows)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status : stream->backend->queue->copy_rows(stream, rows);
}

static inline iris_status_t iris_i_queue_set(struct iris_stream *stream,
                                             void *dst, int value, size_t bytes)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status
                  : stream->backend->queue->set(stream, dst, value, bytes);
}

static inline iris_status_t
iris_i_queue_launch(struct iris_stream *stream,
                    const struct iris_launch *launch)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status : stream->backend->queue->launch(stream, launch);
}

static inline iris_status_t iris_i_queue_signal(struct iris_stream *stream,
                                                uint64_t *place, uint64_t value)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status
                  : stream->backend->queue->signal(stream, place, value);
}

static inline iris_status_t iris_i_queue_wait(struct iris_stream *stream,
                                              uint64_t *place, iris_cmp_t cmp,
                                              uint64_t value)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status
                  : stream->backend->queue->wait(stream, place, cmp, value);
}

static inline iris_status_t iris_i_queue_follow(struct iris_stream *stream,
                                                struct iris_stream *other)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status : stream->backend->queue->follow(stream, other);
}

static inline iris_status_t
iris_i_queue_capture_begin(struct iris_stream *stream)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status : stream->backend->queue->capture_begin(stream);
}

static inline iris_status_t iris_i_queue_capture_end(struct iris_stream *stream,
                                                     void **graph_p)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status
                  : stream->backend->queue->capture_end(stream, graph_p);
}

static inline iris_status_t
iris_i_queue_graph_launch(struct iris_stream *stream, void *graph)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status
                  : stream->backend->queue->graph_launch(stream, graph);
}

static inline void *iris_i_queue_native(struct iris_stream *stream)
{
    return stream->backend->queue->native(stream);
}

static inline iris_status_t iris_i_queue_call(struct iris_stream *stream,
                                              iris_native_call_t function,
                                              void *what, int apart)
{
    iris_status_t status = iris_i_queue_fault(stream);

    return status ? status
                  : stream->backend->queue->call(stream, function, what, apart);
}

#endif /* IRIS_SRC_BACKEND_CALLS_H */
