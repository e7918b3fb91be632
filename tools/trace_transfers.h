/* SPDX-License-Identifier: MIT
 *
 * Which bytes an event of a trace moved, from which rank to which.
 */
#ifndef IRIS_TOOLS_TRACE_TRANSFERS_H
#define IRIS_TOOLS_TRACE_TRANSFERS_H

#include "trace/events.h"

/* Data that went one way. Loads and gets bring it from the target to the rank
 * that calls, all else takes it there. */
struct iris_transfer_of {
    int from, to;
    uint64_t bytes;
};

/* Calls `each` for every transfer of the event, also for one of a rank with
 * itself; a wait moves nothing. A collective's event stands for what its own
 * rank sends in a direct exchange: its part to each other member, twice for an
 * all_reduce (a reduce_scatter and an all_gather), nothing of a broadcast but at
 * the root, and all of a reduce to the root. One of messages says what it sends
 * to whom. 0, or what `each` returns if that is not 0. */
int iris_i_transfers(const struct iris_event *event,
                     int (*each)(void *arg,
                                 const struct iris_transfer_of *transfer),
                     void *arg);

int iris_i_is_collective(const struct iris_event *event);

/* Whether it is a collective that says what it sends and receives: gather,
 * scatter, all_gatherv, all_to_allv, send, recv, send_recv. */
int iris_i_is_messages(const struct iris_event *event);

/* The first message of the event's `sends` or `receives`. Returns the rest of the
 * text; NULL: there is none. */
const char *iris_i_next_message(const char *text, int *rank_p,
                                uint64_t *bytes_p);

/* Whether the calling rank waits for the data: loads and gets. */
int iris_i_is_fetch(const struct iris_event *event);

#endif /* IRIS_TOOLS_TRACE_TRANSFERS_H */
