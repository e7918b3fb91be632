/* SPDX-License-Identifier: MIT
 *
 * The messages of a trace as a schedule in the GOAL language.
 */
#ifndef IRIS_TOOLS_TRACE_GOAL_H
#define IRIS_TOOLS_TRACE_GOAL_H

#include <stdio.h>

struct trace_goal_options {
    FILE *(*open)(void); /* opens the file to write */
    int ranks; /* ranks of the schedule, see trace_scale.h; 0: the trace's */
    int is_ring;
    int has_costs; /* it says what a platform times, see sim_schedule.h */
};

/* Reads a merged trace, and writes its schedule to a file, which the caller
 * closes. 0; -1, having complained. */
int trace_goal(const char *path, const struct trace_goal_options *options,
               FILE **file_p);

#endif /* IRIS_TOOLS_TRACE_GOAL_H */
