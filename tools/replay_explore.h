/* SPDX-License-Identifier: MIT
 *
 * All executions of a small program.
 */
#ifndef IRIS_TOOLS_REPLAY_EXPLORE_H
#define IRIS_TOOLS_REPLAY_EXPLORE_H

#include "replay_run.h"

struct replay_exploration {
    unsigned most;       /* executions at most */
    bool goes_on;        /* after a failure, too */
    unsigned long count; /* executions that differ */
    unsigned long again; /* runs that were like one of them from some step on */
    unsigned long failed; /* runs that failed */
    char failure[512];    /* the first; empty: none */
    bool is_complete;
};

/* Runs the program in each order of dependent steps and with each old value that
 * the model allows, and prints each different output once if it goes on. After
 * the first failure its schedule is in `path`. 0; -1: a message has been
 * printed. */
int replay_explore(const struct replay_program *program, const char *path,
                   struct replay_exploration *exploration);

#endif /* IRIS_TOOLS_REPLAY_EXPLORE_H */
