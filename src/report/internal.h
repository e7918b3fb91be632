/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/report: reads, judges and prints the flight
 * records of a job, in any process; knows no context.
 */
#ifndef IRIS_SRC_REPORT_INTERNAL_H
#define IRIS_SRC_REPORT_INTERNAL_H

#include "report/report.h"

/* ---- cause.c ---- */

/* Writes the cause for the verdict. `hung` says for each rank whether it cannot
 * go on. */
void iris_i_explain(struct iris_report *report, const char *hung);

/* ---- places.c ---- */

/* Sets the places of the waits that count, and of calls in which the host waits
 * for a stream. May start a process for each place. */
void iris_i_report_find_places(struct iris_report *report);

#endif /* IRIS_SRC_REPORT_INTERNAL_H */
