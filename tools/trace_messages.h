/* SPDX-License-Identifier: MIT
 *
 * The messages of a trace: every byte that went from one rank to another is in
 * one of them.
 */
#ifndef IRIS_TOOLS_TRACE_MESSAGES_H
#define IRIS_TOOLS_TRACE_MESSAGES_H

#include "trace/trace.h"
#include "trace_calls.h"

struct trace_pile;

struct trace_messages {
    struct iris_flows flows;
    struct trace_pile *piles; /* a hash table of bytes that go together */
    size_t num_piles, num_places;
    struct trace_cost *costs; /* costs of signals, indexed by their place + 1 */
    size_t num_costs;
    struct trace_calls calls; /* of collectives */
    struct trace_streams streams;
};

int trace_messages_open(struct trace_messages *messages);
void trace_messages_close(struct trace_messages *messages);

/* Takes an event into account, in the order of the file. Returns 0, or -1
 * without memory. */
int trace_messages_add(void *messages, const struct iris_event *event);

/* All ends of all messages, once, after all events are known. The caller frees
 * the list.
 *
 * - A signal that a wait saw is a message to the waiting rank. It has its own
 *   bytes and those of all puts, stores and atomics of its workgroup to that
 *   rank since the workgroup's last signal to it.
 * - A workgroup's loads and gets from one rank, between two of its signals or
 *   waits, are a message from that rank. No operation there waits for it.
 * - A copy on a stream is a message.
 * - Signals, copies, exchanges and compare-and-swaps have their own costs.
 * - Collectives are messages between members, see trace_calls.h.
 * - Writes without a later signal are a message for which the other rank does
 *   not wait.
 *
 * Returns 0, or -1 without memory. */
int trace_messages_list(struct trace_messages *messages,
                        struct trace_items *items_p);

#endif /* IRIS_TOOLS_TRACE_MESSAGES_H */
