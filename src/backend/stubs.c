/* SPDX-License-Identifier: MIT
 *
 * Stubs for slots of backends that lack a function. They are compiled into
 * modules, too.
 */
#include "config.h"

#include "backend/backend.h"

static iris_status_t unsupported(const struct iris_backend *backend,
                                 const char *what, const char *instead)
{
    return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                       "the %s backend has no %s; %s", backend->type->name,
                       what, instead);
}

iris_status_t iris_i_no_stream_wrap(struct iris_backend *backend, void *native,
                                    struct iris_stream **stream_p)
{
    (void)native, (void)stream_p;
    return unsupported(backend, "streams of its own to wrap",
                       "use iris_stream_create");
}

void *iris_i_no_native(struct iris_stream *stream)
{
    (void)stream;
    return NULL;
}

iris_status_t iris_i_no_call(struct iris_stream *stream,
                             iris_native_call_t function, void *what)
{
    (void)function, (void)what;
    return unsupported(stream->backend, "streams that a library could use",
                       "enqueue a kernel");
}

iris_status_t iris_i_no_follow(struct iris_stream *stream,
                               struct iris_stream *other)
{
    (void)stream, (void)other;
    return IRIS_OK;
}

static iris_status_t no_graphs(const struct iris_stream *stream)
{
    return unsupported(stream->backend, "graphs",
                       "enqueue the work each time, or use a GPU");
}

iris_status_t iris_i_no_capture_begin(struct iris_stream *stream)
{
    return no_graphs(stream);
}

iris_status_t iris_i_no_capture_end(struct iris_stream *stream, void **graph_p)
{
    (void)graph_p;
    return no_graphs(stream);
}

iris_status_t iris_i_no_graph_launch(struct iris_stream *stream, void *graph)
{
    (void)graph;
    return no_graphs(stream);
}

void iris_i_no_graph_destroy(struct iris_backend *backend, void *graph)
{
    (void)backend, (void)graph;
}

iris_status_t iris_i_no_copy_rows(struct iris_stream *stream,
                                  const struct iris_copy_rows *rows)
{
    (void)stream, (void)rows;
    return IRIS_ERR_UNSUPPORTED;
}

iris_status_t iris_i_no_signal(struct iris_stream *stream, uint64_t *place,
                               uint64_t value)
{
    (void)stream, (void)place, (void)value;
    return IRIS_ERR_UNSUPPORTED;
}

iris_status_t iris_i_no_wait(struct iris_stream *stream, uint64_t *place,
                             iris_cmp_t cmp, uint64_t value)
{
    (void)stream, (void)place, (void)cmp, (void)value;
    return IRIS_ERR_UNSUPPORTED;
}

iris_status_t iris_i_no_export_range(struct iris_backend *backend, void *at,
                                     struct iris_heap_handle *handle_p)
{
    (void)at, (void)handle_p;
    return unsupported(backend, "heaps that peers map piece by piece",
                       "import the whole heap");
}

iris_status_t iris_i_no_import_range(struct iris_backend *backend, void *at,
                                     size_t most,
                                     const struct iris_heap_handle *handle)
{
    (void)at, (void)most, (void)handle;
    return unsupported(backend, "heaps that peers map piece by piece",
                       "import the whole heap");
}

iris_status_t iris_i_no_hold_external(struct iris_backend *backend,
                                      const void *ptr, size_t bytes,
                                      struct iris_external *external_p)
{
    (void)ptr, (void)bytes, (void)external_p;
    return unsupported(backend, "way to map memory a second time", "copy it");
}

void iris_i_no_release_external(struct iris_backend *backend,
                                struct iris_external *external)
{
    (void)backend, (void)external;
}

iris_status_t iris_i_no_map_external(struct iris_backend *backend, void *at,
                                     struct iris_external *external)
{
    (void)at, (void)external;
    return unsupported(backend, "way to map memory a second time", "copy it");
}

iris_status_t iris_i_all_accessible(struct iris_backend *backend,
                                    const char *name, const void *ptr,
                                    size_t bytes)
{
    (void)backend, (void)name, (void)ptr, (void)bytes;
    return IRIS_OK;
}

iris_status_t iris_i_all_committed(struct iris_backend *backend, void *at,
                                   size_t bytes)
{
    (void)backend, (void)at, (void)bytes;
    return IRIS_OK;
}

void iris_i_no_decommit(struct iris_backend *backend, void *at, size_t bytes)
{
    (void)backend, (void)at, (void)bytes;
}
