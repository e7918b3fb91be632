/* SPDX-License-Identifier: MIT
 *
 * The library's own memory at the start of every heap.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_LAYOUT_H
#define IRIS_SRC_CONTEXT_CONTEXT_LAYOUT_H

#include "context/context_type.h"

/* The heap of a traced rank is larger by this size. */
#define IRIS_TRACE_HEAP_BYTES ((size_t)44 << 20)

/* Bytes of a heap and of the library's own part, from the settings. */
struct iris_layout_sizes {
    size_t heap_bytes;
    size_t own_bytes;
};
struct iris_layout_sizes
iris_i_layout_sizes(const struct iris_settings *settings, int num_ranks);

/* The smallest heap size that a program may ask for. */
size_t iris_i_layout_least(const struct iris_settings *settings, int num_ranks);

/* Address of the device half of the group with this index. */
struct iris_dev_group *iris_i_layout_group(const iris_t *iris, int place);

/* Writes the word by which peers recognise the heap, and gives its offset. */
iris_status_t iris_i_layout_write_id(iris_t *iris, uint64_t *id_p);
size_t iris_i_layout_id_offset(int num_ranks);

/* Writes the device context, at the start of its heap, without that word. */
iris_status_t iris_i_layout_write_context(iris_t *iris);

/* Writes the words about tracing after all earlier work of the stream, and
 * waits. */
iris_status_t iris_i_layout_write_tracing(iris_t *iris, const int64_t *words,
                                          struct iris_stream *stream);

#endif /* IRIS_SRC_CONTEXT_CONTEXT_LAYOUT_H */
