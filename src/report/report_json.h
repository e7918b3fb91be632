/* SPDX-License-Identifier: MIT
 *
 * A report for tools: one JSON object with the contents of the text, and the
 * underlying numbers.
 */
#ifndef IRIS_SRC_REPORT_REPORT_JSON_H
#define IRIS_SRC_REPORT_REPORT_JSON_H

#include "report/snapshot.h"

void iris_i_report_json(const struct iris_report *report, FILE *out);

#endif /* IRIS_SRC_REPORT_REPORT_JSON_H */
