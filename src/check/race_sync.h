/* SPDX-License-Identifier: MIT
 *
 * The edges between lanes: atomics and fences.
 */
#ifndef IRIS_SRC_CHECK_RACE_SYNC_H
#define IRIS_SRC_CHECK_RACE_SYNC_H

#include "check/race_memory.h"

/* An atomic or a fence of a lane. */
struct iris_race_atomic {
    struct iris_race_word *word; /* iris_i_race_word() */
    uint32_t lane;
    uint32_t site;
    int rank; /* whose word */
    size_t offset;
    size_t bytes;
    iris_sem_t sem;
    iris_scope_t scope;
    uint64_t id;   /* number of the operation in its lane */
    bool foreseen; /* before a write: its value is known */
    uint64_t value;
};

/* The word at that place; `make`: creates it. NULL: not found. */
struct iris_race_word *iris_i_race_word(struct iris_race_memory *memory,
                                        int rank, size_t offset, bool make);

/* The following are called by the thread that runs the lane, or under the
 * lock. */

/* Before a write or update: records its release. */
void iris_i_race_write(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic);

/* After it: the word's new value (one of two if it is unknown), and the value
 * that an update saw. An update continues the release of the write that it
 * saw. */
void iris_i_race_written(struct iris_race_memory *memory,
                         const struct iris_race_atomic *atomic,
                         const uint64_t values[2], const uint64_t *seen);

/* After a compare-and-swap that failed: there was no write. */
void iris_i_race_unwritten(struct iris_race_memory *memory,
                           const struct iris_race_atomic *atomic);

/* After a read, or the read of an update: acquires the release of the value's
 * writer. */
void iris_i_race_read(struct iris_race_memory *memory,
                      const struct iris_race_atomic *atomic, uint64_t seen);

void iris_i_race_fence(struct iris_race_memory *memory,
                       const struct iris_race_atomic *atomic);

#endif /* IRIS_SRC_CHECK_RACE_SYNC_H */
