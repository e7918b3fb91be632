/* SPDX-License-Identifier: MIT
 *
 * Schedules and runs under them: shared with tests/check/explorer.c.
 */
#ifndef IRIS_TOOLS_REPLAY_H
#define IRIS_TOOLS_REPLAY_H

#include "iris.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A choice that is not the default, as a line in the text of the schedule. */
struct replay_choice {
    const char *text; /* "turn ..." or "read ..." */
};

/* An operation of a kernel. Its strings are in the text of the schedule. */
struct replay_op {
    int rank;
    unsigned workgroup;
    const char *kernel;
    int target; /* rank that owns the memory; -1: a fence */
    uint64_t offset;
    uint64_t bytes;
    bool reads, writes;
    uint64_t seen, written; /* values of at most 8 bytes; else 0 */
    unsigned behind;   /* number of newer writes that the read did not see */
    const char *deed;  /* "atomic store, relaxed, system scope" */
    const char *place; /* "inbox"+8 */
    const char *file;  /* file with the operation's code */
    uint64_t code;     /* offset in the file */
};

/* A line about a step of an explored run, which replays pass over. */
struct replay_mark {
    const char *line;
    size_t op; /* number of operations before it */
};

struct replay_schedule {
    char *text; /* the file's text, with all strings */
    unsigned long long seed;
    char check[16];
    int num_ranks;
    char program[256];
    struct replay_choice *choices;
    size_t num_choices;
    struct replay_op *ops;
    size_t num_ops;
    struct replay_mark *marks;
    size_t num_marks;
    bool is_early; /* a choice was made before all workgroups arrived */
    bool has_end;  /* the run has reached its end */
};

struct replay_program {
    char **argv;       /* NULL at the end */
    const char *match; /* output that means failure; NULL: the exit status */
    int timeout_s;     /* time limit of a run */
    char folder[TOOL_FOLDER_BYTES]; /* folder for files of runs */
};

struct replay_result {
    char failure[512];               /* empty: the run did not fail */
    char *output;                    /* stdout and stderr of the program */
    bool has_schedule;               /* the program has recorded the run */
    struct replay_schedule schedule; /* the run, if has_schedule */
};

/* Exits with 2 if there is no memory. */
void *replay_alloc(void *old, size_t bytes);

/* iris_i_grow(), which exits with 2 if there is no memory. */
void *replay_grow(void *array_p, size_t *count_p, size_t bytes);

/* Create and remove the folder. Return 0, or -1 after printing a message. */
int replay_prepare(struct replay_program *program);
void replay_clean(const struct replay_program *program);

/* Runs the program with these choices. Returns 0, or -1 after printing a
 * message if the program cannot be started or its schedule cannot be read.
 * replay_drop() frees the result. */
int replay_run(const struct replay_program *program,
               const struct replay_schedule *schedule,
               const struct replay_choice *choices, size_t num_choices,
               struct replay_result *result);
void replay_drop(struct replay_result *result);

/* Copies the schedule that the latest run recorded to `path`. Returns 0, or -1
 * after printing a message. */
int replay_keep(const struct replay_program *program, const char *path);

/* Whether both are the same operation with equal values. */
bool replay_is_same(const struct replay_op *a, const struct replay_op *b);

/* replay_table.c: prints the part of the run that matters. */
void replay_print(const struct replay_result *result);

#endif /* IRIS_TOOLS_REPLAY_H */
