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

/* ---- cause_hung.c ---- */

/* `hung` says for each rank whether it cannot go on. */
void iris_i_explain_hung(struct iris_report *report, const char *hung);

/* Workgroups repeat atomic operations: until a deadline ended them if `ended`,
 * else for a long time. 0: there are no such workgroups. */
int iris_i_explain_spin(struct iris_report *report, int ended);

/* ---- cause_word.c ---- */

/* The known facts about the word that a wait of `rank` is for, and a guess. */
void iris_i_explain_word(struct iris_report *report, int rank,
                         const struct iris_record_wait *wait);

#endif /* IRIS_SRC_REPORT_INTERNAL_H */
