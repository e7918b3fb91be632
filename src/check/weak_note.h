/* SPDX-License-Identifier: MIT
 *
 * The lines of a recorded schedule that say which operations ran.
 */
#ifndef IRIS_SRC_CHECK_WEAK_NOTE_H
#define IRIS_SRC_CHECK_WEAK_NOTE_H

#include "check/weak_state.h"

/* An operation of a kernel, after it. */
struct iris_weak_deed {
    const struct iris_weak_range *range; /* NULL: a fence */
    bool reads;
    bool writes;
    uint64_t seen;    /* the value read, of 8 bytes at most; else 0 */
    uint64_t written; /* the same of the value written */
    unsigned behind;  /* how many writes too old the value read is */
};

/* Adds a line to the recorded schedule, if there is one. Under the schedule's
 * lock. */
void iris_i_weak_note(const struct iris_weak *weak,
                      const struct iris_cpu_event *event,
                      const struct iris_weak_deed *deed);

#endif /* IRIS_SRC_CHECK_WEAK_NOTE_H */
