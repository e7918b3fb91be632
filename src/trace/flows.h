/* SPDX-License-Identifier: MIT
 *
 * Which signal ended which wait, and which put went before a signal.
 */
#ifndef IRIS_SRC_TRACE_FLOWS_H
#define IRIS_SRC_TRACE_FLOWS_H

#include <stddef.h>

#include "trace/events.h"
#include "trace/out.h"

/* Where on a timeline something is. */
struct iris_flow_end {
    int pid;
    char tid[20];
    int64_t ns;
};

/* A signal, or a wait that has ended. */
struct iris_flow_point {
    int rank; /* whose word */
    uint64_t offset;
    uint64_t value; /* of the word then */
    int64_t begin_ns, end_ns;
    uint64_t bytes, cost;     /* for who asks for the points; 0 at first */
    struct iris_flow_end at;  /* in the event */
    struct iris_flow_end put; /* of a signal: the put before it; pid -1: none */
};

struct iris_flow_list {
    struct iris_flow_point *points;
    size_t count;
};

struct iris_flows {
    struct iris_flow_list signals;
    struct iris_flow_list waits;
    struct iris_flow_put *puts; /* the latest ones */
};

/* Where the event is at that time. */
struct iris_flow_end iris_i_flow_end(const struct iris_event *event,
                                     int64_t ns);

/* An arrow of a trace; arrows of one `cat` have ids of their own. */
struct iris_flow_arrow {
    const char *name, *cat;
    uint64_t id;
    struct iris_flow_end from, to;
};
void iris_i_flow_write(struct iris_out *out,
                       const struct iris_flow_arrow *arrow);

int iris_i_flows_open(struct iris_flows *flows);
void iris_i_flows_close(struct iris_flows *flows);

/* Takes the event if it is a put, a signal or a wait that held. Events of one
 * workgroup come in their order. 0; -1: no memory. */
int iris_i_flows_add(struct iris_flows *flows, const struct iris_event *event);

/* Once all are there. */
void iris_i_flows_sort(struct iris_flows *flows);

/* The signal that ended the wait: of those that made the word what the wait saw
 * the last that began before the wait's end; if there is none, the first of
 * all. NULL: no such signal is in the trace. */
const struct iris_flow_point *
iris_i_flows_signal_of(const struct iris_flows *flows,
                       const struct iris_flow_point *wait);

#endif /* IRIS_SRC_TRACE_FLOWS_H */
