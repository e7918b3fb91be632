/* SPDX-License-Identifier: MIT
 *
 * One rank's file of a trace.
 */
#ifndef IRIS_SRC_TRACE_RANK_FILE_H
#define IRIS_SRC_TRACE_RANK_FILE_H

#include "trace/recording.h"

/* Writes it, completely or not at all. */
iris_status_t iris_i_trace_write(struct iris_trace *trace, const char *path);

#endif /* IRIS_SRC_TRACE_RANK_FILE_H */
