/* SPDX-License-Identifier: MIT
 *
 * The contents of a report as text.
 */
#ifndef IRIS_SRC_REPORT_WORDS_H
#define IRIS_SRC_REPORT_WORDS_H

#include "report/escape.h"
#include "report/snapshot.h"

/* Functions that return a text return a static one; the others fill a
 * buffer. */
const char *iris_i_verdict_name(enum iris_verdict verdict);
const char *iris_i_host_op_name(int op);
const char *iris_i_process_name(char process);
const char *iris_i_state_name(unsigned state);
void iris_i_describe_group(const struct iris_record_wait *wait, char *text,
                           size_t bytes);
void iris_i_describe_wait(const struct iris_record_wait *wait, char *text,
                          size_t bytes);
void iris_i_describe_call(const struct iris_record_call *call, char *text,
                          size_t bytes);
void iris_i_describe_doing(const struct iris_report *report, int rank,
                           char *text, size_t bytes);

/* "4711.2": the process of rank 0, and the index of the job in it. */
#define IRIS_REPORT_NAME 48
void iris_i_report_name(const struct iris_report *report,
                        char name[IRIS_REPORT_NAME]);

/* Appends to the report's cause. */
#define iris_i_say(report, ...) \
    iris_i_append((report)->cause, sizeof(report)->cause, __VA_ARGS__)
/* "ranks 0, 2"; "rank 1 runs kernel ...". */
void iris_i_say_ranks(struct iris_report *report, const char *marked);
void iris_i_say_doing(struct iris_report *report, int rank);

#endif /* IRIS_SRC_REPORT_WORDS_H */
