/* SPDX-License-Identifier: MIT
 *
 * The library's own memory at the start of every heap.
 */
#ifndef IRIS_SRC_CONTEXT_CONTEXT_LAYOUT_H
#define IRIS_SRC_CONTEXT_CONTEXT_LAYOUT_H

#include "context/context_type.h"

/* What a traced rank's heap is larger by. */
#define IRIS_TRACE_HEAP_BYTES ((size_t)44 << 20)

/* Bytes of a heap and of the library's own in it, as the settings want them. */
struct iris_layout_sizes {
    size_t heap_bytes;
    size_t own_bytes;
};
struct iris_layout_sizes
iris_i_layout_sizes(const struct iris_settings *settings, int num_ranks);

/* The smallest heap size that a program may ask for. */
size_t iris_i_layout_least(const struct iris_settings *settings, int num_ranks);

/* Where the device half of the group with this place is. */
struct iris_dev_group *iris_i_layout_group(const iris_t *iris, int place);

/* Writes the word that peers recognise the heap by, and where that is. */
iris_status_t iris_i_layout_write_id(iris_t *iris, uint64_t *id_p);
size_t iris_i_layout_id_offset(int num_ranks);

/* Writes the device context, at its start, but for that word. */
iris_status_t iris_i_layout_write_context(iris_t *iris);

/* Writes its words about tracing, behind what the stream does, and waits. */
iris_status_t iris_i_layout_write_tracing(iris_t *iris, const int64_t *words,
                                          struct iris_stream *stream);

#endif /* IRIS_SRC_CONTEXT_CONTEXT_LAYOUT_H */
