/* SPDX-License-Identifier: MIT
 *
 * The records of one context: lookup, the layout of its columns, and reading
 * them from the device.
 */
#include "config.h"

#include "trace/internal.h"

#include "context/context.h"

#include <stdlib.h>
#include <string.h>

struct iris_trace *iris_i_trace_of(const iris_t *iris, const char *call)
{
    if (iris_i_enter(iris, call) != IRIS_OK) {
        return NULL;
    }
    if (iris_i_extension(iris, IRIS_EXTENSION_TRACE) == NULL) {
        (void)iris_i_fail(iris_i_log(iris), IRIS_ERR_STATE,
                          "%s: tracing is not enabled; call iris_trace_enable "
                          "first",
                          call);
    }
    return (struct iris_trace *)iris_i_extension(iris, IRIS_EXTENSION_TRACE);
}

/* ---- Layout ---- */

size_t iris_i_trace_width(enum iris_trace_column column)
{
    switch (column) {
    case IRIS_TRACE_TIMESTAMP:
    case IRIS_TRACE_ADDRESS:
    case IRIS_TRACE_END:
    case IRIS_TRACE_VALUE:
    case IRIS_TRACE_WHAT:
        return sizeof(int64_t);
    default:
        return sizeof(int32_t);
    }
}

size_t iris_i_trace_offset(size_t max_events, enum iris_trace_column column)
{
    size_t offset = IRIS_TRACE_HEADER_BYTES;

    for (int i = 0; i < (int)column; i++) {
        size_t bytes = max_events * iris_i_trace_width(i);

        offset +=
            (bytes + IRIS_ALIGNMENT - 1) / IRIS_ALIGNMENT * IRIS_ALIGNMENT;
    }
    return offset;
}

size_t iris_i_trace_bytes(size_t max_events)
{
    return iris_i_trace_offset(max_events, IRIS_TRACE_COLUMNS);
}

/* ---- Reading ---- */

iris_status_t iris_i_trace_read(const struct iris_trace *trace, void *to,
                                const void *from, size_t bytes)
{
    if (iris_i_is_gpu(trace->iris)) {
        return iris_i_heap_copy(&iris_i_heap(trace->iris)->memory, to, from,
                                bytes);
    }
    memcpy(to, from, bytes);
    return IRIS_OK;
}

iris_status_t iris_i_trace_count(struct iris_trace *trace, uint64_t *count_p)
{
    uint32_t count;
    iris_status_t status =
        iris_i_trace_read(trace, &count, trace->memory, sizeof count);

    if (status == IRIS_OK) {
        *count_p = count;
    }
    return status;
}

iris_status_t iris_i_trace_chunk_open(const struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk)
{
    memset(chunk, 0, sizeof *chunk);
    chunk->memory = malloc(iris_i_trace_bytes(IRIS_TRACE_CHUNK));
    if (chunk->memory == NULL) {
        return iris_i_fail(iris_i_log(trace->iris), IRIS_ERR_NO_MEMORY,
                           "no memory to write the trace");
    }
    for (int i = 0; i < IRIS_TRACE_COLUMNS; i++) {
        chunk->columns[i] =
            chunk->memory + iris_i_trace_offset(IRIS_TRACE_CHUNK, i);
    }
    return IRIS_OK;
}

iris_status_t iris_i_trace_chunk_read(const struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk,
                                      size_t first, size_t count)
{
    count = count < IRIS_TRACE_CHUNK ? count : IRIS_TRACE_CHUNK;
    for (int i = 0; i < IRIS_TRACE_COLUMNS; i++) {
        size_t width = iris_i_trace_width(i);
        const char *from = trace->memory +
                           iris_i_trace_offset(trace->max_events, i) +
                           first * width;
        iris_status_t status =
            iris_i_trace_read(trace, chunk->columns[i], from, count * width);

        if (status != IRIS_OK) {
            return status;
        }
    }
    return IRIS_OK;
}

void iris_i_trace_row(const struct iris_trace_chunk *chunk, size_t i,
                      int64_t row[IRIS_TRACE_COLUMNS])
{
    i %= IRIS_TRACE_CHUNK;
    for (int k = 0; k < IRIS_TRACE_COLUMNS; k++) {
        row[k] = iris_i_trace_width(k) == sizeof(int64_t)
                     ? ((const int64_t *)(const void *)chunk->columns[k])[i]
                     : ((const int32_t *)(const void *)chunk->columns[k])[i];
    }
}
