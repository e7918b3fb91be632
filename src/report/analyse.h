/* SPDX-License-Identifier: MIT
 *
 * Finds the ranks that can go on.
 */
#ifndef IRIS_SRC_REPORT_ANALYSE_H
#define IRIS_SRC_REPORT_ANALYSE_H

#include "report/snapshot.h"

/* Reads all ranks twice, `apart_ms` apart, and judges. The caller frees the
 * report with free(). IRIS_ERR_NO_MEMORY, IRIS_ERR_INVALID and
 * IRIS_ERR_MISMATCH (`fd` is not a job's records, or is from another version of
 * Iris) */
iris_status_t iris_i_report_make(int fd, int apart_ms,
                                 struct iris_report **report_p);

/* Judges a reading, given the one before: the ranks that can go on, the verdict
 * and its cause. */
void iris_i_report_judge(struct iris_report *report,
                         const struct iris_report *before);

#endif /* IRIS_SRC_REPORT_ANALYSE_H */
