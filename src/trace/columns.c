/* SPDX-License-Identifier: MIT
 *
 * Recorded operations, fetched from the device some at a time.
 */
#include "config.h"

#include "trace/trace.h"

#include <stdlib.h>
#include <string.h>

iris_status_t iris_i_trace_chunk_open(struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk)
{
    memset(chunk, 0, sizeof *chunk);
    chunk->memory = malloc(iris_i_trace_bytes(IRIS_TRACE_CHUNK));
    if (chunk->memory == NULL) {
        return iris_i_fail(&trace->iris->log, IRIS_ERR_NO_MEMORY,
                           "no memory to write the trace");
    }
    for (int i = 0; i < IRIS_TRACE_COLUMNS; i++) {
        chunk->columns[i] =
            chunk->memory + iris_i_trace_offset(IRIS_TRACE_CHUNK, i);
    }
    return IRIS_OK;
}

void iris_i_trace_chunk_close(struct iris_trace_chunk *chunk)
{
    free(chunk->memory);
}

iris_status_t iris_i_trace_chunk_read(struct iris_trace *trace,
                                      struct iris_trace_chunk *chunk,
                                      size_t first, size_t count)
{
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
    chunk->first = first;
    chunk->count = count;
    return IRIS_OK;
}

int64_t iris_i_trace_at(const struct iris_trace_chunk *chunk,
                        enum iris_trace_column column, size_t i)
{
    int64_t wide;
    int32_t word;

    if (iris_i_trace_width(column) == sizeof wide) {
        memcpy(&wide, chunk->columns[column] + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&word, chunk->columns[column] + i * sizeof word, sizeof word);
    return word;
}
