/* SPDX-License-Identifier: MIT
 *
 * A trace as if more ranks had run the program.
 */
#ifndef IRIS_TOOLS_TRACE_SCALE_H
#define IRIS_TOOLS_TRACE_SCALE_H

#include "trace/trace.h"

/* Rank r of `to` repeats the events of rank r modulo `from`; `to` is a multiple
 * of `from`. A collective of all ranks becomes one of all `to` ranks. All other
 * targets are ranks of the same copy or, in a ring, ranks at the same
 * distance. */
struct trace_scale {
    int from, to;
    int is_ring;
    int (*event)(void *arg, const struct iris_event *event);
    void *arg;
};

/* Calls `event` for each copy of the event; `scale` is a trace_scale. Returns
 * 0, -1, or the value that `event` returned. */
int trace_scale_event(void *scale, const struct iris_event *event);

#endif /* IRIS_TOOLS_TRACE_SCALE_H */
