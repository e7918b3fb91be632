/* SPDX-License-Identifier: MIT
 *
 * Schedules that IRIS_SCHEDULE records: the choices of a run and its operations.
 */
#ifndef IRIS_TOOLS_REPLAY_FILE_H
#define IRIS_TOOLS_REPLAY_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A line of a choice that is not the default; the text is the schedule's. */
struct replay_choice {
    const char *text; /* "turn ..." or "read ..." */
};

/* An operation of a kernel; the texts are the schedule's. */
struct replay_op {
    int rank;
    unsigned workgroup;
    const char *kernel;
    int target; /* whose heap; -1: a fence */
    uint64_t offset;
    uint64_t bytes;
    bool reads, writes;
    uint64_t seen, written; /* of 8 bytes at most; else 0 */
    unsigned behind;        /* how many writes too old the value read is */
    const char *deed;       /* "atomic store, relaxed, system scope" */
    const char *place;      /* "inbox"+8 */
    const char *file;       /* of its code */
    uint64_t code;          /* offset in the file */
};

/* A workgroup of the kernel that a stream of the rank's runs. */
struct replay_who {
    int rank;
    unsigned stream;
    unsigned workgroup;
};

#define REPLAY_MOST_NEXT 16
#define REPLAY_MOST_READS 16

/* What a workgroup does in one turn, of a run that is explored. */
struct replay_step {
    struct replay_who who;
    struct replay_who next[REPLAY_MOST_NEXT]; /* who could have had the turn */
    unsigned num_next;
    unsigned old[REPLAY_MOST_READS]; /* choices of values, 0: the newest */
    unsigned num_values[REPLAY_MOST_READS];
    unsigned num_reads;
    size_t first_op, num_ops;
    bool begins, leaves; /* the kernel */
    bool fails;          /* a poll that has failed: nothing has happened */
    bool spins;          /* it is the latest of many that may be a loop */
    bool is_own;         /* of a kernel of the library's */
};

struct replay_schedule {
    char *text; /* all strings are in it */
    unsigned long long seed;
    char check[16];
    int num_ranks;
    char program[256];
    struct replay_choice *choices;
    size_t num_choices;
    struct replay_op *ops;
    size_t num_ops;
    struct replay_step *steps; /* of a run that is explored */
    size_t num_steps;
    bool is_early; /* a choice was made before all were there */
    bool has_end;  /* the run has come to its end */
};

/* Exits with 2 if there is no memory. */
void *replay_alloc(void *old, size_t bytes);

/* Room for one more of `count` items of `bytes` each; returns the array. */
void *replay_grow(void *items, size_t count, size_t bytes);

/* 0; -1: it cannot be read, or is no schedule, and a message has been printed.
 * replay_close() frees it. */
int replay_open(const char *path, struct replay_schedule *schedule);
void replay_close(struct replay_schedule *schedule);

/* Writes the schedule's header, if it has one, and these choices; 0; -1: it cannot be
 * written, and a message has been printed. */
int replay_write(const char *path, const struct replay_schedule *header,
                 const struct replay_choice *choices, size_t num_choices);

/* Whether both are the same operation with the same values. */
bool replay_is_same(const struct replay_op *a, const struct replay_op *b);

#endif /* IRIS_TOOLS_REPLAY_FILE_H */
