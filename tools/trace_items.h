/* SPDX-License-Identifier: MIT
 *
 * The ends of messages, from which schedules are made.
 */
#ifndef IRIS_TOOLS_TRACE_ITEMS_H
#define IRIS_TOOLS_TRACE_ITEMS_H

#include "trace/trace.h"

/* The parts of an operation that a platform times, see docs/timing.md. Times
 * are the traced machine's; the platform's replace them. */
struct trace_cost {
    int is_release;    /* a signal: it waits for the writes before it */
    int is_copy;       /* by a copy engine */
    int waits_before;  /* for the results of atomics before it */
    int waits_itself;  /* for its own result, after which its rank goes on */
    int64_t before_ns; /* of those atomics */
    int64_t own_ns;    /* of the operation */
};

/* One end of a message. */
struct trace_item {
    int rank;
    char tid[20];     /* items of one track come in order; empty: of none */
    int64_t begin_ns; /* for a wait, its begin; else the same as ns */
    int64_t ns;
    int is_send;
    int peer;
    uint64_t bytes;
    uint64_t tag;
    uint64_t batch; /* not 0: items of one track with it are one step */
    int from_start; /* the time before the first item of its track counts */
    struct trace_cost cost;
};

struct trace_items {
    struct trace_item *items;
    size_t count;
};

/* An end where that event was, and one without a track: the network's. */
struct trace_item trace_item_at(const struct iris_flow_end *at);
struct trace_item trace_item_of_network(int rank, int64_t ns);

/* Adds both ends of a message of send->bytes. Returns 0, or -1 without memory. */
int trace_items_add(struct trace_items *items, const struct trace_item *send,
                    const struct trace_item *receive);

#endif /* IRIS_TOOLS_TRACE_ITEMS_H */
