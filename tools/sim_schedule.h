/* SPDX-License-Identifier: MIT
 *
 * A schedule in the GOAL language of LogGOPSim (Hoefler, Siebert and Lumsdaine,
 * ICPP 2009): each rank's computations, sends and receives, and their
 * dependencies. A line may end with a word of our own:
 *
 *     calc 100 release      then its rank waits for its writes' arrival
 *     calc 100 round 1      then for results of atomics at rank 1
 *     send 8b to 1 tag 1 round   its rank goes on with the result of this atomic
 *     send 8b to 1 tag 1 copy    a copy engine sends
 */
#ifndef IRIS_TOOLS_SIM_SCHEDULE_H
#define IRIS_TOOLS_SIM_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum sim_kind { SIM_CALC, SIM_SEND, SIM_RECV };

#define SIM_NO_STEP SIZE_MAX

/* Steps of a rank are next to each other, in the order of its labels. */
struct sim_step {
    enum sim_kind kind;
    int rank;
    int peer;        /* for a calc, the peer of its round */
    uint64_t label;  /* the number behind "l" */
    uint64_t amount; /* ns of calc, else bytes */
    uint64_t tag;
    int is_release, is_round, is_copy;
    size_t partner;     /* for a send or recv; SIM_NO_STEP: no partner */
    size_t num_before;  /* steps that it waits for */
    size_t first_after; /* in `after` */
};

struct sim_arrow {
    size_t before, after;
};

struct sim_schedule {
    int num_ranks;
    struct sim_step *steps;
    size_t num_steps;
    struct sim_arrow *arrows; /* sorted by `before` */
    size_t num_arrows;
};

/* Returns 0, or -1 after printing a message, which contains `name`. */
int sim_schedule_read(struct sim_schedule *schedule_p, FILE *file,
                      const char *name);
void sim_schedule_free(struct sim_schedule *schedule);

#endif /* IRIS_TOOLS_SIM_SCHEDULE_H */
