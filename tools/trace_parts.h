/* SPDX-License-Identifier: MIT
 *
 * The parts of iris trace, and their options.
 */
#ifndef IRIS_TOOLS_TRACE_PARTS_H
#define IRIS_TOOLS_TRACE_PARTS_H

#include <stdio.h>

struct trace_options {
    const char *output; /* NULL: stdout */
    const char *bases;  /* prefix of heap-bases files; NULL: the default */
    int rank;           /* -1: any */
    int quiet;          /* no progress */
    char **files;
    int num_files;
};

extern struct trace_options trace_options;

/* Each returns the exit status. */
int trace_summary(void);
int trace_resolve(void);
int trace_merge(void);
int trace_diff(void);
int trace_report(void);

/* The file that --output names, or stdout; closed by trace_close(), which
 * returns the exit status and complains of a disk that is full. */
FILE *trace_open(void);
int trace_close(FILE *file);

#endif /* IRIS_TOOLS_TRACE_PARTS_H */
