/* SPDX-License-Identifier: MIT
 *
 * The likely cause where nobody can go on.
 */
#ifndef IRIS_SRC_REPORT_CAUSE_HUNG_H
#define IRIS_SRC_REPORT_CAUSE_HUNG_H

#include "report/snapshot.h"

/* `hung` has for each rank whether it can go on no more. */
void iris_i_explain_hung(struct iris_report *report, const char *hung);

/* Workgroups that repeat atomic operations, until a deadline ended them if
 * `ended`, else for long. 0: there are none. */
int iris_i_explain_spin(struct iris_report *report, int ended);

#endif /* IRIS_SRC_REPORT_CAUSE_HUNG_H */
