/* SPDX-License-Identifier: MIT
 *
 * One clock for a trace.
 */
#ifndef IRIS_SRC_TRACE_TRACE_CLOCK_H
#define IRIS_SRC_TRACE_TRACE_CLOCK_H

#include "trace/recording.h"

/* Measures a pair of the device's clock and the host's. With `first`, the
 * conversion begins with it; otherwise it makes the conversion more exact.
 * Waits for the default stream. */
iris_status_t iris_i_trace_measure_device(struct iris_trace *trace, int first);

/* Measures this rank's clock against rank 0's, after its own preparation with
 * result `status`. With `first`, also agrees on the time of the trace's begin.
 * Collective. */
iris_status_t iris_i_trace_measure_ranks(struct iris_trace *trace, int first,
                                         iris_status_t status);

/* Converts the device's ticks, and this host's clock, to nanoseconds since the
 * trace began. */
int64_t iris_i_trace_device_ns(const struct iris_trace_clock *clock,
                               int64_t ticks);
int64_t iris_i_trace_host_ns(const struct iris_trace_clock *clock, int64_t ns);

#endif /* IRIS_SRC_TRACE_TRACE_CLOCK_H */
