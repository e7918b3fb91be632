/* SPDX-License-Identifier: MIT
 *
 * How lanes come to know of each other: atomics and fences.
 */
#ifndef IRIS_SRC_CHECK_RACE_SYNC_H
#define IRIS_SRC_CHECK_RACE_SYNC_H

#include "check/race_memory.h"

/* An atomic or fence, as a lane does it. */
struct iris_race_atomic {
    uint32_t lane;
    uint32_t site;
    int rank; /* whose word */
    size_t offset;
    size_t bytes;
    iris_sem_t sem;
    iris_scope_t scope;
    uint64_t id;   /* of the operation in its lane */
    bool foreseen; /* before a write: its value is known */
    uint64_t value;
};

/* All under the lock. */

/* Before a write or update: notes what it releases. */
void iris_i_race_write(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic);

/* After it: the word's new value, one of two where that is not known, and what was seen of it by an update, which
 * goes on with what that write released. */
void iris_i_race_written(struct iris_race_memory *memory,
                         const struct iris_race_atomic *atomic,
                         const uint64_t values[2], const uint64_t *seen);

/* After a compare-and-swap that failed: there was no write. */
void iris_i_race_unwritten(struct iris_race_memory *memory,
                           const struct iris_race_atomic *atomic);

/* After a read, also that of an update: takes what the writer of the value
 * released. */
void iris_i_race_read(struct iris_race_memory *memory,
                      const struct iris_race_atomic *atomic, uint64_t seen);

void iris_i_race_fence(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic);

#endif /* IRIS_SRC_CHECK_RACE_SYNC_H */
