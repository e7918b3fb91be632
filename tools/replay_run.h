/* SPDX-License-Identifier: MIT
 *
 * Runs a program under a schedule and reports the result.
 */
#ifndef IRIS_TOOLS_REPLAY_RUN_H
#define IRIS_TOOLS_REPLAY_RUN_H

#include "replay_file.h"

struct replay_program {
    char **argv;       /* NULL at the end */
    const char *match; /* output that means failure; NULL: the exit status */
    int timeout_s;     /* time limit of a run */
    char folder[256];  /* folder for files of runs */
};

struct replay_result {
    char failure[512];               /* empty: the run did not fail */
    char *output;                    /* stdout and stderr of the program */
    bool has_schedule;               /* the program has recorded the run */
    struct replay_schedule schedule; /* the run, if has_schedule */
};

/* Create and remove the folder. Return 0, or -1 after printing a message. */
int replay_prepare(struct replay_program *program);
void replay_clean(const struct replay_program *program);

/* Copies the schedule that the latest run recorded to `path`. Returns 0, or -1
 * after printing a message. */
int replay_keep(const struct replay_program *program, const char *path);

/* Runs the program with these choices. Returns 0, or -1 after printing a
 * message if the program cannot be started or its schedule cannot be read.
 * replay_drop() frees the result. */
int replay_run(const struct replay_program *program,
               const struct replay_schedule *schedule,
               const struct replay_choice *choices, size_t num_choices,
               struct replay_result *result);
void replay_drop(struct replay_result *result);

/* Whether the run has this failure, possibly among others. */
bool replay_has_failure(const struct replay_result *result,
                        const char *failure);

#endif /* IRIS_TOOLS_REPLAY_RUN_H */
