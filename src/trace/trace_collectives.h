/* SPDX-License-Identifier: MIT
 *
 * Keeps the members and messages of collectives as text, because a group may be
 * destroyed before the trace is written.
 */
#ifndef IRIS_SRC_TRACE_COLLECTIVES_H
#define IRIS_SRC_TRACE_COLLECTIVES_H

#include "trace/recording.h"

/* Notes the members of a call that begins, and the bytes that it sends to each
 * and receives from each, if it is one of messages. */
void iris_i_trace_collective(struct iris_trace *trace,
                             struct iris_trace_call *call);

#endif /* IRIS_SRC_TRACE_COLLECTIVES_H */
