/* SPDX-License-Identifier: MIT
 *
 * Explores all executions of a small program.
 */
#ifndef IRIS_TOOLS_REPLAY_EXPLORE_H
#define IRIS_TOOLS_REPLAY_EXPLORE_H

#include "replay_run.h"

struct replay_exploration {
    unsigned most;        /* limit for the number of executions */
    bool goes_on;         /* continue after a failure */
    unsigned long count;  /* number of different executions */
    unsigned long again;  /* runs that repeated one of them from some step on */
    unsigned long failed; /* runs that failed */
    char failure[512];    /* the first failure; empty if no run failed */
    bool is_complete;
};

/* Runs the program in each order of dependent steps and with each old value
 * that the model allows. Prints each different output once if goes_on is set.
 * After the first failure `path` has its schedule. Returns 0, or -1 after
 * printing a message. */
int replay_explore(const struct replay_program *program, const char *path,
                   struct replay_exploration *exploration);

#endif /* IRIS_TOOLS_REPLAY_EXPLORE_H */
