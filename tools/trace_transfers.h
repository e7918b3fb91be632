/* SPDX-License-Identifier: MIT
 *
 * The transfers of an event of a trace: bytes, source and target.
 */
#ifndef IRIS_TOOLS_TRACE_TRANSFERS_H
#define IRIS_TOOLS_TRACE_TRANSFERS_H

#include "trace/trace.h"

/* Data that went one way. Loads and gets bring it from the target to the
 * calling rank. All other operations take it to the target. */
struct iris_transfer_of {
    int from, to;
    uint64_t bytes;
};

/* Calls `each` for every transfer of the event, including transfers of a rank
 * with itself. A wait transfers nothing. A collective's event represents its
 * own rank's sends in a direct exchange:
 * - its part to each other member;
 * - twice for an all_reduce (a reduce_scatter and an all_gather);
 * - for a broadcast, sends of the root only;
 * - for a reduce, all elements to the root. A collective of messages lists its
 *   sends. Returns 0, or the value of `each` if that is not 0. */
int iris_i_transfers(const struct iris_event *event,
                     int (*each)(void *arg,
                                 const struct iris_transfer_of *transfer),
                     void *arg);

int iris_i_is_collective(const struct iris_event *event);

/* Whether the event is a collective that lists its sends and receives: gather,
 * scatter, all_gatherv, all_to_allv, send, recv, send_recv. */
int iris_i_is_messages(const struct iris_event *event);

/* Reads the first message of the event's `sends` or `receives`. Returns the
 * rest of the text, or NULL without a message. */
const char *iris_i_next_message(const char *text, int *rank_p,
                                uint64_t *bytes_p);

/* Whether the calling rank waits for the data: loads and gets. */
int iris_i_is_fetch(const struct iris_event *event);

#endif /* IRIS_TOOLS_TRACE_TRANSFERS_H */
