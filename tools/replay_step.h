/* SPDX-License-Identifier: MIT
 *
 * Steps of workgroups, and which of them depend on each other.
 */
#ifndef IRIS_TOOLS_REPLAY_STEP_H
#define IRIS_TOOLS_REPLAY_STEP_H

#include "replay_file.h"

/* Words of 8 bytes. */
struct replay_access {
    int target;
    uint64_t first, last;
    bool writes;
};

/* What a step does, without the run that it is of. */
struct replay_effect {
    unsigned lane; /* the number of its workgroup */
    int rank;
    bool begins, leaves, is_own;
    size_t num_accesses;
    struct replay_access *accesses;
};

/* The caller frees the accesses. */
struct replay_effect replay_effect_of(const struct replay_schedule *schedule,
                                      const struct replay_step *step,
                                      unsigned lane);

/* A copy of its own. */
struct replay_effect replay_copy(const struct replay_effect *effect);

/* Whether the order of the two may matter. */
bool replay_depend(const struct replay_effect *a,
                   const struct replay_effect *b);

/* Marks the steps that change nothing, so that the run without them is the same:
 * polls that have failed, and reads of a loop that read the same again. */
void replay_find_idle(const struct replay_schedule *schedule, bool *idle);

#endif /* IRIS_TOOLS_REPLAY_STEP_H */
