/* SPDX-License-Identifier: MIT
 *
 * Calls of collectives in a trace, as messages between their members.
 */
#ifndef IRIS_TOOLS_TRACE_CALLS_H
#define IRIS_TOOLS_TRACE_CALLS_H

#include "trace/trace.h"
#include "trace_items.h"
#include "trace_streams.h"

struct trace_call;

struct trace_calls {
    struct trace_call *calls;
    size_t count;
};

/* Keeps a collective's event. Returns 0, or -1 without memory. */
int trace_calls_add(struct trace_calls *calls, const struct iris_event *event);
void trace_calls_free(struct trace_calls *calls);

/* Adds the ends of all messages. A call of all members is a message from each
 * to each other (see trace_transfers.h): members make the same calls in the
 * same order. In calls of messages, the first message that a member sends to
 * another is the first that the other receives from it, and so on. All sends
 * and receives of a call are one step of its track. The track is the stream
 * that ran its kernel, and the step's time is that of the kernels before it. If
 * the trace has no runs, the track is the host's. Returns 0, or -1 without
 * memory. */
int trace_calls_list(struct trace_calls *calls,
                     const struct trace_streams *streams,
                     struct trace_items *items);

#endif /* IRIS_TOOLS_TRACE_CALLS_H */
