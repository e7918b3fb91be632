/* SPDX-License-Identifier: MIT
 *
 * Runs a program under a schedule, and what became of it.
 */
#ifndef IRIS_TOOLS_REPLAY_RUN_H
#define IRIS_TOOLS_REPLAY_RUN_H

#include "replay_file.h"

struct replay_program {
    char **argv;       /* NULL at the end */
    const char *match; /* output that is the failure; NULL: the exit status */
    int timeout_s;     /* of a run */
    char folder[256];  /* for files of runs */
};

struct replay_result {
    char failure[512];               /* empty: there was none */
    char *output;                    /* of the program, stdout and stderr */
    bool has_schedule;               /* the program has recorded the run */
    struct replay_schedule schedule; /* then: the run */
};

/* Makes and removes the folder. 0; -1: a message has been printed. */
int replay_prepare(struct replay_program *program);
void replay_clean(const struct replay_program *program);

/* Copies the schedule that the latest run recorded to `path`. 0; -1: a message
 * has been printed. */
int replay_keep(const struct replay_program *program, const char *path);

/* Runs the program with these choices of the schedule's. 0; -1: it cannot be
 * started or read, and a message has been printed. replay_drop() frees it. */
int replay_run(const struct replay_program *program,
               const struct replay_schedule *schedule,
               const struct replay_choice *choices, size_t num_choices,
               struct replay_result *result);
void replay_drop(struct replay_result *result);

/* Whether the run failed like this, also if it failed in other ways, too. */
bool replay_has_failure(const struct replay_result *result,
                        const char *failure);

#endif /* IRIS_TOOLS_REPLAY_RUN_H */
