/* SPDX-License-Identifier: MIT
 *
 * The timeline of iris trace report: tracks of slices, and arrows between them.
 */
#ifndef IRIS_TOOLS_TRACE_TIMELINE_H
#define IRIS_TOOLS_TRACE_TIMELINE_H

#include "trace/trace.h"
#include "trace_figures.h"
#include "trace_places.h"

#define TIMELINE_BINS 8192 /* so that a reader can zoom in */

/* The content of a bin. A member without a value is -1. */
struct timeline_slice {
    short row;    /* of figures.events */
    short target; /* the rank that the operation accessed */
    short label;  /* of its memory */
};

/* Each bin shows the operation that took most of it. */
struct timeline_track {
    int pid;
    char tid[32];
    float share[TIMELINE_BINS]; /* the part of the bin that it took */
    struct timeline_slice slices[TIMELINE_BINS];
};

/* From a signal to the wait that it ended, or from a launch to the kernel's run.
 * Positions are in bins. */
#define TIMELINE_NO_PUT -1
#define TIMELINE_LAUNCH -2
struct timeline_arrow {
    int from_track, to_track;
    double from, to;
    double put; /* the put before the signal, or one of the above */
};

struct timeline_launch {
    struct iris_flow_end from, to;
};

struct timeline {
    const struct trace_figures *figures; /* figures of the first reading */
    const struct trace_spaces *spaces;   /* names of memory */
    struct iris_flows flows;
    struct iris_flow_end launch; /* the latest one */
    struct timeline_launch *launches;
    size_t num_launches;
    struct timeline_track *tracks;
    int count;
    int left_out; /* whether there are more tracks */
    char (*labels)[TRACE_LABEL];
    size_t num_labels;
    struct timeline_arrow *arrows;
    size_t num_arrows;
    int arrows_left_out; /* whether there are more arrows */
};

/* Returns 0, or -1 without memory. Close the timeline in either case. */
int timeline_open(struct timeline *timeline,
                  const struct trace_figures *figures,
                  const struct trace_spaces *spaces);
void timeline_close(struct timeline *timeline);

/* Take an event of the second reading into account. Return 0, or -1 without
 * memory. */
int timeline_add(void *timeline, const struct iris_event *event);

/* Sorts the tracks and finds the arrows, after the last event. Returns 0, or -1
 * without memory. */
int timeline_finish(struct timeline *timeline);

#endif /* IRIS_TOOLS_TRACE_TIMELINE_H */
