/* SPDX-License-Identifier: MIT
 *
 * The likely cause, in one sentence.
 */
#ifndef IRIS_SRC_REPORT_CAUSE_H
#define IRIS_SRC_REPORT_CAUSE_H

#include "report/snapshot.h"

/* The cause, in a sentence, of the verdict; `hung` has for each rank
 * whether it can go on no more. */
void iris_i_explain(struct iris_report *report, const char *hung);

#endif /* IRIS_SRC_REPORT_CAUSE_H */
