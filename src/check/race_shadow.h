/* SPDX-License-Identifier: MIT
 *
 * The shadow of the heaps: the latest accesses to each 8 bytes.
 */
#ifndef IRIS_SRC_CHECK_RACE_SHADOW_H
#define IRIS_SRC_CHECK_RACE_SHADOW_H

#include "check/race_memory.h"

/* A range of bytes on a rank's heap that is accessed. */
struct iris_race_range {
    int rank;
    size_t offset;
    size_t bytes;
};

/* Receives an access that races with an earlier one at `offset`. */
typedef void (*iris_race_tell_t)(void *arg,
                                 const struct iris_race_access *before,
                                 const struct iris_race_access *now, int rank,
                                 size_t offset);

/* Compares the access with the earlier ones and keeps it. All of its members
 * except the mask are set. Called by the thread that runs the access's lane, or
 * under the lock. `tell` takes no lock. */
void iris_i_race_touch(struct iris_race_memory *memory,
                       const struct iris_race_range *range,
                       const struct iris_race_access *access,
                       iris_race_tell_t tell, void *arg);

/* The latest plain write of the 8 bytes there; false: unknown. */
bool iris_i_race_last_plain(const struct iris_race_memory *memory, int rank,
                            size_t offset, struct iris_race_access *plain_p);

/* Removes all accesses to that range. */
void iris_i_race_forget(struct iris_race_memory *memory,
                        const struct iris_race_range *range);

#endif /* IRIS_SRC_CHECK_RACE_SHADOW_H */
