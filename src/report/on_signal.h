/* SPDX-License-Identifier: MIT
 *
 * SIGUSR2: a thread of the process prints the report of its jobs.
 */
#ifndef IRIS_SRC_REPORT_ON_SIGNAL_H
#define IRIS_SRC_REPORT_ON_SIGNAL_H

#include "control/control.h"

/* From here on SIGUSR2 to this process prints the report of the job, unless the
 * program has a handler or ignores it. `prefix` lives until _unwatch(). */
void iris_i_report_watch(struct iris_control *control, const char *prefix);

/* Waits for a report under way. One that was not watched is fine. */
void iris_i_report_unwatch(struct iris_control *control);

#endif /* IRIS_SRC_REPORT_ON_SIGNAL_H */
