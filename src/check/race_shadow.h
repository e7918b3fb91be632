/* SPDX-License-Identifier: MIT
 *
 * The shadow of the heaps: for each 8 bytes the latest accesses.
 */
#ifndef IRIS_SRC_CHECK_RACE_SHADOW_H
#define IRIS_SRC_CHECK_RACE_SHADOW_H

#include "check/race_memory.h"

/* Bytes of a rank's heap that are accessed. */
struct iris_race_range {
    int rank;
    size_t offset;
    size_t bytes;
};

/* Told of an access that races with an earlier one at `offset`. */
typedef void (*iris_race_tell_t)(void *arg,
                                 const struct iris_race_access *before,
                                 const struct iris_race_access *now, int rank,
                                 size_t offset);

/* Compares the access, all of which but the mask is filled in, with the earlier
 * ones and keeps it. By the thread that runs the access's lane, or under the
 * lock. `tell` takes no lock. */
void iris_i_race_touch(struct iris_race_memory *memory,
                       const struct iris_race_range *range,
                       const struct iris_race_access *access,
                       iris_race_tell_t tell, void *arg);

/* The latest plain write of the 8 bytes there; false: none is known. */
bool iris_i_race_last_plain(const struct iris_race_memory *memory, int rank,
                            size_t offset, struct iris_race_access *plain_p);

/* Forgets what was accessed there. */
void iris_i_race_forget(struct iris_race_memory *memory,
                        const struct iris_race_range *range);

#endif /* IRIS_SRC_CHECK_RACE_SHADOW_H */
