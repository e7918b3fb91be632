/* SPDX-License-Identifier: MIT
 *
 * The messages of a trace as a schedule, in the text that sim_schedule.h reads.
 */
#ifndef IRIS_TOOLS_SIM_TRACE_H
#define IRIS_TOOLS_SIM_TRACE_H

#include <stdio.h>

/* Reads a merged trace, scaled as sim_options says, and writes its schedule to
 * a temporary file, which the caller closes. Returns 0, or -1 after printing a
 * message. */
int sim_trace_schedule(const char *path, FILE **file_p);

#endif /* IRIS_TOOLS_SIM_TRACE_H */
