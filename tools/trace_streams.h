/* SPDX-License-Identifier: MIT
 *
 * Kernels' runs on streams: where a collective that the host called took place,
 * and how long the stream had computed before it.
 */
#ifndef IRIS_TOOLS_TRACE_STREAMS_H
#define IRIS_TOOLS_TRACE_STREAMS_H

#include "trace/trace.h"

struct trace_run;    /* a launch, or a kernel's run */
struct trace_active; /* a run with operations of its own */

struct trace_streams {
    struct trace_run *launches, *runs;
    struct trace_active *active;
    size_t num_launches, num_runs, num_active;
};

/* Records the event's facts about streams. Returns 0, or -1 without memory. */
int trace_streams_add(struct trace_streams *streams,
                      const struct iris_event *event);
void trace_streams_free(struct trace_streams *streams);

/* Joins launches with runs, once, when all events are there: a stream runs its
 * kernels in the order of the launches. */
void trace_streams_join(struct trace_streams *streams);

/* Writes to *computed_p how many ns of kernels without communication the stream
 * of the call had run before the call's own kernel, and a number for each
 * kernel before it. Returns the track of the stream; NULL: the trace does not
 * say where the call took place. */
const char *trace_streams_find(const struct trace_streams *streams,
                               const struct iris_event *call,
                               int64_t *computed_p);

#endif /* IRIS_TOOLS_TRACE_STREAMS_H */
