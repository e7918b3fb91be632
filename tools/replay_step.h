/* SPDX-License-Identifier: MIT
 *
 * The effects of workgroups' steps, and the dependences between steps.
 */
#ifndef IRIS_TOOLS_REPLAY_STEP_H
#define IRIS_TOOLS_REPLAY_STEP_H

#include "replay_file.h"

/* Accesses to words of 8 bytes. */
struct replay_access {
    int target;
    uint64_t first, last;
    bool writes;
};

/* The effect of a step, independent of the run. */
struct replay_effect {
    unsigned lane; /* the number of the step's workgroup */
    int rank;
    bool begins, leaves, is_own;
    size_t num_accesses;
    struct replay_access *accesses;
};

/* The caller frees the accesses. */
struct replay_effect replay_effect_of(const struct replay_schedule *schedule,
                                      const struct replay_step *step,
                                      unsigned lane);

/* Returns a deep copy. */
struct replay_effect replay_copy(const struct replay_effect *effect);

/* Whether the order of the two steps may matter. */
bool replay_depend(const struct replay_effect *a,
                   const struct replay_effect *b);

/* Marks the steps that change nothing: polls that failed, and reads in a loop
 * that repeat a value. The run without them is the same. */
void replay_find_idle(const struct replay_schedule *schedule, bool *idle);

#endif /* IRIS_TOOLS_REPLAY_STEP_H */
