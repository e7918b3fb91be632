/* SPDX-License-Identifier: MIT
 *
 * The choices that a run of the weak mode is made of: by a seed, or as a
 * recorded file says.
 */
#ifndef IRIS_SRC_CHECK_WEAK_CHOICE_H
#define IRIS_SRC_CHECK_WEAK_CHOICE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <iris/status.h>

struct iris_weak_choices_params {
    uint64_t seed;
    const char *follow; /* a file of choices; empty: none */
    const char *record; /* the file to write; empty: none */
    bool newest;        /* no read returns an old value */
};

struct iris_weak_choices {
    uint64_t random;
    bool newest;
    unsigned stay; /* one in so many goes to another workgroup */
    uint64_t num_decisions;
    struct iris_weak_decision *follow; /* NULL: the seed decides */
    size_t num_follow, next_follow;
    FILE *record; /* NULL: do not record */
};

/* What the choice is about. */
enum iris_weak_choice {
    IRIS_WEAK_GO_ON, /* who is next; 0: who ran last */
    IRIS_WEAK_TURN, /* the same after a poll that failed; 0: the next in line */
    IRIS_WEAK_READ, /* how old a value is; 0: the newest */
};

/* *choices is all zero. Close it in any case. IRIS_ERR_NO_MEMORY;
 * IRIS_ERR_CONFIG: a file cannot be read or written. */
iris_status_t
iris_i_weak_choices_open(const struct iris_weak_choices_params *params,
                         struct iris_weak_choices *choices);
void iris_i_weak_choices_close(struct iris_weak_choices *choices);

/* One of `count`; it is recorded. */
unsigned iris_i_weak_decide(struct iris_weak_choices *choices,
                            enum iris_weak_choice choice, unsigned count);

#endif /* IRIS_SRC_CHECK_WEAK_CHOICE_H */
