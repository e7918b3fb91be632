/* SPDX-License-Identifier: MIT
 *
 * This process's id, and what /proc/PID/stat says of a process.
 */
#ifndef IRIS_SRC_BASE_PROCESS_H
#define IRIS_SRC_BASE_PROCESS_H

#include <stdint.h>

struct iris_process {
    char state; /* 'R', 'S', 'T', 'Z' and so on, as ps has it */
    int parent;
    uint64_t start_ticks; /* with the number it tells processes apart */
};

/* As getpid(), without a system call for each: every public call asks. A child
 * that shares this one's memory (vfork) is told its parent's. */
int iris_i_process_id(void);

/* 0: there is no such process, or it may not be looked at. */
int iris_i_process_read(int pid, struct iris_process *process_p);

#endif /* IRIS_SRC_BASE_PROCESS_H */
