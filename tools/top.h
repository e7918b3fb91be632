/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by the files of iris-top.
 */
#ifndef IRIS_TOOLS_TOP_H
#define IRIS_TOOLS_TOP_H

#include "report/snapshot.h"

/* Prints the jobs that this user's processes have. */
int top_list(void);

/* The segment of the job of that name: its IRIS_JOB_ID, or PID.N. -1: there is
 * none. */
int top_find_job(const char *name);

/* The first job of a process that this one has started, itself or by others:
 * mpirun, or a program that spawned its ranks. -1. */
int top_find_below(int pid);

/* Prints a table again and again, until all ranks have ended or left. */
int top_live(int fd);

#endif /* IRIS_TOOLS_TOP_H */
