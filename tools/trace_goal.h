/* SPDX-License-Identifier: MIT
 *
 * The messages of a trace as a schedule in the GOAL language.
 */
#ifndef IRIS_TOOLS_TRACE_GOAL_H
#define IRIS_TOOLS_TRACE_GOAL_H

#include <stdio.h>

/* Reads a merged trace, and writes its schedule to the file that `open` opens,
 * which the caller closes. 0; -1, having complained or if there is no memory. */
int trace_goal(const char *path, FILE *(*open)(void), FILE **file_p);

#endif /* IRIS_TOOLS_TRACE_GOAL_H */
