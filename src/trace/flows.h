/* SPDX-License-Identifier: MIT
 *
 * Matches each wait with the signal that ended it, and each signal with the put
 * before it.
 */
#ifndef IRIS_SRC_TRACE_FLOWS_H
#define IRIS_SRC_TRACE_FLOWS_H

#include <stddef.h>

#include "trace/events.h"
#include "trace/out.h"

/* A place on a timeline. */
struct iris_flow_end {
    int pid;
    char tid[20];
    int64_t ns;
};

/* A signal, or a wait that has ended. */
struct iris_flow_point {
    int rank; /* whose word */
    uint64_t offset;
    uint64_t value; /* value of the word then */
    int64_t begin_ns, end_ns;
    uint64_t bytes, cost;     /* for the user of the points; 0 initially */
    struct iris_flow_end at;  /* the place on the event */
    struct iris_flow_end put; /* for a signal, the put before it; pid -1:
                               * none */
};

struct iris_flow_list {
    struct iris_flow_point *points;
    size_t count;
};

struct iris_flows {
    struct iris_flow_list signals;
    struct iris_flow_list waits;
    struct iris_flow_put *puts; /* the latest puts */
};

/* The place of the event at that time. */
struct iris_flow_end iris_i_flow_end(const struct iris_event *event,
                                     int64_t ns);

/* An arrow of a trace. Ids are unique among the arrows of one `cat`. */
struct iris_flow_arrow {
    const char *name, *cat;
    uint64_t id;
    struct iris_flow_end from, to;
};
void iris_i_flow_write(struct iris_out *out,
                       const struct iris_flow_arrow *arrow);

int iris_i_flows_open(struct iris_flows *flows);
void iris_i_flows_close(struct iris_flows *flows);

/* Adds the event if it is a put, a signal or a wait that held. The events of a
 * workgroup come in order. Returns 0, or -1 without memory. */
int iris_i_flows_add(struct iris_flows *flows, const struct iris_event *event);

/* Call this after all events were added. */
void iris_i_flows_sort(struct iris_flows *flows);

/* The signal that ended the wait. It set the word to the value that the wait
 * saw, and is the last such signal that began before the wait's end. If none
 * began before it, it is the first. NULL: the trace has no such signal. */
const struct iris_flow_point *
iris_i_flows_signal_of(const struct iris_flows *flows,
                       const struct iris_flow_point *wait);

#endif /* IRIS_SRC_TRACE_FLOWS_H */
