/* SPDX-License-Identifier: MIT
 *
 * The likely cause in one sentence.
 */
#ifndef IRIS_SRC_REPORT_CAUSE_H
#define IRIS_SRC_REPORT_CAUSE_H

#include "report/snapshot.h"

/* Writes the cause for the verdict. `hung` says for each rank whether it cannot
 * go on. */
void iris_i_explain(struct iris_report *report, const char *hung);

#endif /* IRIS_SRC_REPORT_CAUSE_H */
