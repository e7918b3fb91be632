/* SPDX-License-Identifier: MIT
 *
 * Recording on the CPU: the functions of an observer of a context's kernels and
 * calls.
 */
#ifndef IRIS_SRC_TRACE_OBSERVE_H
#define IRIS_SRC_TRACE_OBSERVE_H

#include "trace/recording.h"

iris_status_t iris_i_trace_device(void *self,
                                  const struct iris_cpu_event *event);
void iris_i_trace_host(void *self, const struct iris_host_event *event);

#endif /* IRIS_SRC_TRACE_OBSERVE_H */
