/* SPDX-License-Identifier: MIT
 *
 * A report for people: the cause first, then every rank.
 */
#ifndef IRIS_SRC_REPORT_REPORT_TEXT_H
#define IRIS_SRC_REPORT_REPORT_TEXT_H

#include "report/snapshot.h"

void iris_i_report_text(const struct iris_report *report, FILE *out);

#endif /* IRIS_SRC_REPORT_REPORT_TEXT_H */
