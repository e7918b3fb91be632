/* SPDX-License-Identifier: MIT
 *
 * The likely cause if no rank can go on.
 */
#ifndef IRIS_SRC_REPORT_CAUSE_HUNG_H
#define IRIS_SRC_REPORT_CAUSE_HUNG_H

#include "report/snapshot.h"

/* `hung` says for each rank whether it cannot go on. */
void iris_i_explain_hung(struct iris_report *report, const char *hung);

/* Workgroups repeat atomic operations: until a deadline ended them if `ended`,
 * else for a long time. 0: there are no such workgroups. */
int iris_i_explain_spin(struct iris_report *report, int ended);

#endif /* IRIS_SRC_REPORT_CAUSE_HUNG_H */
