/* SPDX-License-Identifier: MIT
 *
 * The control segments that a process has open.
 */
#ifndef IRIS_SRC_REPORT_FIND_H
#define IRIS_SRC_REPORT_FIND_H

#include <sys/types.h>

/* Files that were seen; later ones than this number are ignored. */
struct iris_report_seen {
    int count;
    struct {
        dev_t dev;
        ino_t ino;
    } files[256];
};

/* Whether the file is new. It is added to the seen files. */
int iris_i_report_is_new(struct iris_report_seen *seen, int fd);

/* Opens, for reading, the segment of the process's nth job (from 0). -1, with
 * errno: ENOENT, it has no more; ESRCH, no such process; EACCES. */
int iris_i_report_open(int pid, int n);

#endif /* IRIS_SRC_REPORT_FIND_H */
