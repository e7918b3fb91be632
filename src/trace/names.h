/* SPDX-License-Identifier: MIT
 *
 * Names of kernels, events and calls.
 */
#ifndef IRIS_SRC_TRACE_NAMES_H
#define IRIS_SRC_TRACE_NAMES_H

#include "trace/recording.h"

/* The number of a kernel's name, which is copied; 0: no name. */
uint32_t iris_i_trace_kernel(struct iris_trace *trace, const char *name);

/* The name of the event with that id. `text` is a buffer for events without a
 * name. */
const char *iris_i_trace_event_name(struct iris_trace *trace, int event,
                                    char text[IRIS_TRACE_NAME_BYTES]);
/* The name of a call in the trace: "all_reduce 4096 f32". */
#define IRIS_TRACE_CALL_BYTES 128
void iris_i_trace_call_name(const struct iris_trace *trace,
                            const struct iris_trace_call *call,
                            char text[IRIS_TRACE_CALL_BYTES]);

/* The rank whose memory a call accesses besides its own, also by a pointer of
 * iris_as_remote(); -1: none. */
int iris_i_trace_target(const struct iris_trace *trace,
                        const struct iris_trace_call *call);

#endif /* IRIS_SRC_TRACE_NAMES_H */
