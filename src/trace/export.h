/* SPDX-License-Identifier: MIT
 *
 * Export: the files of all ranks, and the merged file.
 */
#ifndef IRIS_SRC_TRACE_EXPORT_H
#define IRIS_SRC_TRACE_EXPORT_H

#include <limits.h>

#include "trace/recording.h"

/* Writes this rank's files of `file`, which iris_i_trace_check_file() has
 * checked. Works even after a fault of the device. */
iris_status_t iris_i_trace_write_own(struct iris_trace *trace,
                                     const char *file);

/* iris_i_trace_write_own() without waiting for streams. IRIS_ERR_STATE if
 * records would have to be copied from a GPU that is not idle. */
iris_status_t iris_i_trace_write_now(struct iris_trace *trace,
                                     const char *file);

/* Whether a trace can be written under this name. IRIS_ERR_INVALID,
 * IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_trace_check_file(const iris_t *iris, const char *file);

/* The name of one rank's file, from the name of the merged file. */
void iris_i_trace_rank_path(const char *file, int rank, char path[PATH_MAX]);

/* Writes the merged file, after all ranks have written theirs. */
iris_status_t iris_i_trace_merge(iris_t *iris, const char *file);

#endif /* IRIS_SRC_TRACE_EXPORT_H */
