/* SPDX-License-Identifier: MIT
 *
 * Series of plain accesses (struct iris_cpu_series).
 */
#ifndef IRIS_SRC_BACKEND_CPU_SERIES_H
#define IRIS_SRC_BACKEND_CPU_SERIES_H

#include <iris/device/series.h>

#include "base/hooks.h"

/* Begins a series behind a plain access, of which observers have the event.
 * `what` is iris_d_packed() of it. */
void iris_i_cpu_series_begin(struct iris_cpu_wg *cpu, struct iris_hooks *hooks,
                             const struct iris_cpu_event *event, uint64_t what);

/* Gives observers the accesses that they have not got. `cpu` may have no
 * series. */
void iris_i_cpu_series_tell(struct iris_cpu_wg *cpu, struct iris_hooks *hooks);

#endif /* IRIS_SRC_BACKEND_CPU_SERIES_H */
