/* SPDX-License-Identifier: MIT
 *
 * Why a word does not have the value that a kernel waits for.
 */
#ifndef IRIS_SRC_REPORT_CAUSE_WORD_H
#define IRIS_SRC_REPORT_CAUSE_WORD_H

#include "report/snapshot.h"

/* The known facts about the word that a wait of `rank` is for, and a guess. */
void iris_i_explain_word(struct iris_report *report, int rank,
                         const struct iris_record_wait *wait);

#endif /* IRIS_SRC_REPORT_CAUSE_WORD_H */
