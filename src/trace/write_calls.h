/* SPDX-License-Identifier: MIT
 *
 * Calls of the host in one rank's file.
 */
#ifndef IRIS_SRC_TRACE_WRITE_CALLS_H
#define IRIS_SRC_TRACE_WRITE_CALLS_H

#include "trace/writer.h"

/* Writes them all. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_writer_calls(struct iris_writer *writer);

#endif /* IRIS_SRC_TRACE_WRITE_CALLS_H */
