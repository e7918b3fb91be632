/* SPDX-License-Identifier: MIT
 *
 * Keeps the members and messages of collectives as text, because a group may be
 * destroyed before the trace is written.
 */
#ifndef IRIS_SRC_TRACE_COLLECTIVES_H
#define IRIS_SRC_TRACE_COLLECTIVES_H

#include "trace/recording.h"

/* Records the members of a call that begins and, for a call of messages, the
 * bytes for and from each. */
void iris_i_trace_collective(struct iris_trace *trace,
                             struct iris_trace_call *call);

#endif /* IRIS_SRC_TRACE_COLLECTIVES_H */
