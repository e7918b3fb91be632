/* SPDX-License-Identifier: MIT
 *
 * Stubs for slots of backends that lack a function. Each message says that it
 * is unsupported, and names an alternative.
 */
#ifndef IRIS_SRC_BACKEND_STUBS_H
#define IRIS_SRC_BACKEND_STUBS_H

#include "backend/backend.h"

/* For devices without a runtime. */
iris_status_t iris_i_no_stream_wrap(struct iris_backend *backend, void *native,
                                    struct iris_stream **stream_p);
void *iris_i_no_native(struct iris_stream *stream);
iris_status_t iris_i_no_call(struct iris_stream *stream,
                             iris_native_call_t function, void *what);

/* For queues that have always done all their work. */
iris_status_t iris_i_no_follow(struct iris_stream *stream,
                               struct iris_stream *other);

/* For queues without graphs. No graph is ever made, so none is destroyed. */
iris_status_t iris_i_no_capture_begin(struct iris_stream *stream);
iris_status_t iris_i_no_capture_end(struct iris_stream *stream, void **graph_p);
iris_status_t iris_i_no_graph_launch(struct iris_stream *stream, void *graph);
void iris_i_no_graph_destroy(struct iris_backend *backend, void *graph);

/* For queues that signal and wait by kernels. No message: the core launches
 * one. */
iris_status_t iris_i_no_signal(struct iris_stream *stream, uint64_t *place,
                               uint64_t value);
iris_status_t iris_i_no_wait(struct iris_stream *stream, uint64_t *place,
                             iris_cmp_t cmp, uint64_t value);

/* For queues that copy rows one by one. No message: the core does so. */
iris_status_t iris_i_no_copy_rows(struct iris_stream *stream,
                                  const struct iris_copy_rows *rows);

/* For heaps that are not IRIS_COMMIT_PRIVATE. */
iris_status_t iris_i_no_export_range(struct iris_backend *backend, void *at,
                                     struct iris_heap_handle *handle_p);
iris_status_t iris_i_no_import_range(struct iris_backend *backend, void *at,
                                     size_t most,
                                     const struct iris_heap_handle *handle);
iris_status_t iris_i_no_hold_external(struct iris_backend *backend,
                                      const void *ptr, size_t bytes,
                                      struct iris_external *external_p);
void iris_i_no_release_external(struct iris_backend *backend,
                                struct iris_external *external);
iris_status_t iris_i_no_map_external(struct iris_backend *backend, void *at,
                                     struct iris_external *external);

/* The slots for them. */
#define IRIS_NO_RANGE_SLOTS                         \
    .export_range = iris_i_no_export_range,         \
    .import_range = iris_i_no_import_range,         \
    .hold_external = iris_i_no_hold_external,       \
    .release_external = iris_i_no_release_external, \
    .map_external = iris_i_no_map_external

/* For heaps that are IRIS_COMMIT_NOTHING: these do nothing. */
iris_status_t iris_i_all_committed(struct iris_backend *backend, void *at,
                                   size_t bytes);
void iris_i_no_decommit(struct iris_backend *backend, void *at, size_t bytes);
#define IRIS_ALL_COMMITTED_SLOTS \
    .commit = iris_i_all_committed, .decommit = iris_i_no_decommit

/* Kernels can access all memory of the process. */
iris_status_t iris_i_all_accessible(struct iris_backend *backend,
                                    const char *name, const void *ptr,
                                    size_t bytes);

#endif /* IRIS_SRC_BACKEND_STUBS_H */
