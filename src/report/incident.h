/* SPDX-License-Identifier: MIT
 *
 * The report that a job writes about itself.
 */
#ifndef IRIS_SRC_REPORT_INCIDENT_H
#define IRIS_SRC_REPORT_INCIDENT_H

#include "control/control.h"

/* Writes the report of this incident, unless another rank does so or has done
 * so. It goes to stderr and, if `prefix` is not empty, to
 * <prefix>_report_<n>.json. Logs errors. */
void iris_i_report_incident(struct iris_control *control, const char *prefix);

/* Writes the report of a call that members made differently, with this thread's
 * message as the cause. At most once a second for the job. */
void iris_i_report_mismatch(struct iris_control *control, const char *prefix);

/* From now on, SIGUSR2 to this process prints the report of the job, unless the
 * program handles or ignores the signal. `prefix` lives until _unwatch(). */
void iris_i_report_watch(struct iris_control *control, const char *prefix);

/* Waits for the end of a report. Does nothing for a job that was not
 * watched. */
void iris_i_report_unwatch(struct iris_control *control);

#endif /* IRIS_SRC_REPORT_INCIDENT_H */
