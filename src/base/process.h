/* SPDX-License-Identifier: MIT
 *
 * This process's id, and the state and threads of a process from /proc/PID.
 */
#ifndef IRIS_SRC_BASE_PROCESS_H
#define IRIS_SRC_BASE_PROCESS_H

#include <stdint.h>

struct iris_process {
    char state; /* 'R', 'S', 'T', 'Z' and so on, as in ps */
    int parent;
    uint64_t start_ticks; /* together with the number, identifies a process */
};

/* Like getpid(), without a system call for each: every public call asks. A
 * child that shares this process's memory (vfork) gets its parent's id. */
int iris_i_process_id(void);

/* 0: there is no such process, or access is denied. */
int iris_i_process_read(int pid, struct iris_process *process_p);

/* A pidfd of the process, above the standard streams, which the caller closes;
 * -1 with errno. */
int iris_i_process_watch(int pid);

/* The number of the process's threads, except those that the library has named.
 * 0: there is no such process. */
int iris_i_process_threads(int pid);

#endif /* IRIS_SRC_BASE_PROCESS_H */
