/* SPDX-License-Identifier: MIT
 *
 * The choices of a run in the weak mode, from a seed or from a recorded file.
 */
#ifndef IRIS_SRC_CHECK_WEAK_CHOICE_H
#define IRIS_SRC_CHECK_WEAK_CHOICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <iris/status.h>

struct iris_weak_choices_params {
    uint64_t seed;
    const char *follow; /* a file of choices; empty: no file */
    const char *record; /* the file to write; empty: no file */
    bool newest;        /* no read returns an old value */
    int num_ranks;
};

/* A workgroup of the kernel that a stream runs. */
struct iris_weak_who {
    int rank;        /* -1: none */
    unsigned stream; /* number in the rank */
    unsigned workgroup;
};

struct iris_weak_choices {
    uint64_t random;
    bool newest;
    unsigned stay; /* one turn in this number goes to another workgroup */
    uint64_t num_decisions;
    struct iris_weak_count *counts; /* number of each workgroup's decisions */
    size_t num_counts;
    struct iris_weak_decision *follow; /* sorted; NULL: the seed decides */
    size_t num_follow;
    FILE *record; /* NULL: do not record */
    /* iris-replay --explore: these choices in this order, then the defaults */
    bool explores;
    struct iris_weak_step *script;
    size_t num_script, next_script;
};

enum iris_weak_choice {
    IRIS_WEAK_GO_ON, /* the next workgroup; 0: the one that ran last */
    IRIS_WEAK_TURN,  /* the next one after a failed poll; 0: the next in line */
    IRIS_WEAK_READ,  /* the age of a value; 0: the newest */
};

struct iris_weak_question {
    enum iris_weak_choice choice;
    struct iris_weak_who who;         /* the workgroup that ran last, or that
                                       * reads */
    unsigned count;                   /* of answers */
    const struct iris_weak_who *next; /* the possible next workgroups; NULL
                                       * for a read */
};

/* *choices is all zero. Close it in any case. IRIS_ERR_NO_MEMORY;
 * IRIS_ERR_CONFIG: a file cannot be read or written, or is from another
 * program, number of ranks or check. */
iris_status_t
iris_i_weak_choices_open(const struct iris_weak_choices_params *params,
                         struct iris_weak_choices *choices);
void iris_i_weak_choices_close(struct iris_weak_choices *choices);

/* An answer, from 0 to count - 1; it is recorded. */
unsigned iris_i_weak_decide(struct iris_weak_choices *choices,
                            const struct iris_weak_question *question);

/* Adds a line about the running workgroup, if iris-replay explores. */
void iris_i_weak_tell(const struct iris_weak_choices *choices,
                      const char *text);

/* Records that the next choice is made before every workgroup has come, so the
 * run may not replay. */
void iris_i_weak_early(const struct iris_weak_choices *choices);

#endif /* IRIS_SRC_CHECK_WEAK_CHOICE_H */
