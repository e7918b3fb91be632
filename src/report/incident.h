/* SPDX-License-Identifier: MIT
 *
 * The report that a job writes of itself.
 */
#ifndef IRIS_SRC_REPORT_INCIDENT_H
#define IRIS_SRC_REPORT_INCIDENT_H

#include "control/control.h"

/* Writes the report of this incident, unless another rank does or has done it:
 * to stderr, and if `prefix` is not empty to <prefix>_report_<n>.json. What
 * keeps it from being written is logged. */
void iris_i_report_incident(struct iris_control *control, const char *prefix);

/* The same of a call that members made differently, this thread's message
 * saying how. Once a second for the job. */
void iris_i_report_mismatch(struct iris_control *control, const char *prefix);

/* From here on SIGUSR2 to this process prints the report of the job, unless the
 * program has a handler or ignores it. `prefix` lives until _unwatch(). */
void iris_i_report_watch(struct iris_control *control, const char *prefix);

/* Waits for a report under way. One that was not watched is fine. */
void iris_i_report_unwatch(struct iris_control *control);

#endif /* IRIS_SRC_REPORT_INCIDENT_H */
