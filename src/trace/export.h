/* SPDX-License-Identifier: MIT
 *
 * Exporting: the files of all ranks, and what makes one of them.
 */
#ifndef IRIS_SRC_TRACE_EXPORT_H
#define IRIS_SRC_TRACE_EXPORT_H

#include <limits.h>

#include "trace/recording.h"

/* Writes this rank's files of `file`, which
 * iris_i_trace_check_file() has checked, and none of
 * another; a fault of the device does not keep it from that. */
iris_status_t iris_i_trace_write_own(struct iris_trace *trace,
                                     const char *file);

/* The same without waiting for streams: IRIS_ERR_STATE if records would have to
 * be copied from a GPU that is not idle. */
iris_status_t iris_i_trace_write_now(struct iris_trace *trace,
                                     const char *file);

/* Whether the name of a trace can be written. IRIS_ERR_INVALID,
 * IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_trace_check_file(const iris_t *iris, const char *file);

/* The file of one rank, from that of all. */
void iris_i_trace_rank_path(const char *file, int rank, char path[PATH_MAX]);

/* Makes the file of all, once all ranks have written theirs. */
iris_status_t iris_i_trace_merge(iris_t *iris, const char *file);

#endif /* IRIS_SRC_TRACE_EXPORT_H */
