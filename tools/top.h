/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by the files of iris top.
 */
#ifndef IRIS_TOOLS_TOP_H
#define IRIS_TOOLS_TOP_H

#include "report/report.h"

/* Prints the jobs that have processes of this user. */
int top_list(void);

/* Opens the segment of the job with that name: its IRIS_JOB_ID, or PID.N.
 * Returns -1 without such a job. */
int top_find_job(const char *name);

/* Opens the first job of a process that this one has started, directly or
 * through others such as mpirun. Returns -1 without such a job. */
int top_find_below(int pid);

/* Prints a table repeatedly, until all ranks have ended or left. */
int top_live(int fd);

#endif /* IRIS_TOOLS_TOP_H */
