/* SPDX-License-Identifier: MIT
 *
 * The lines of a recorded schedule that list the operations.
 */
#ifndef IRIS_SRC_CHECK_WEAK_NOTE_H
#define IRIS_SRC_CHECK_WEAK_NOTE_H

#include "check/weak_state.h"

/* An operation of a kernel, after its execution. */
struct iris_weak_deed {
    const struct iris_weak_range *range; /* NULL: a fence */
    bool reads;
    bool writes;
    uint64_t seen;    /* the value read, at most 8 bytes; else 0 */
    uint64_t written; /* the value written, at most 8 bytes; else 0 */
    unsigned behind;  /* number of writes newer than the value read */
};

/* Adds a line to the recorded schedule, if it is recorded. Under the schedule's
 * lock. */
void iris_i_weak_note(const struct iris_weak *weak,
                      const struct iris_cpu_event *event,
                      const struct iris_weak_deed *deed);

#endif /* IRIS_SRC_CHECK_WEAK_NOTE_H */
