/* SPDX-License-Identifier: MIT
 *
 * Where the members of a collective call meet: each knows afterwards what all
 * did before.
 */
#ifndef IRIS_SRC_CHECK_RACE_MEET_H
#define IRIS_SRC_CHECK_RACE_MEET_H

#include "check/race_state.h"

/* All under the lock. */

/* The number of the group that all members know by this key, which is not 0;
 * IRIS_RACE_GROUPS: there are too many. */
uint32_t iris_i_race_group(struct iris_race *race, uint64_t key);

/* The number of a group's calls on the host, or of those on streams. NULL: all
 * ranks. */
uint32_t iris_i_race_group_of(struct iris_race *race, const void *group,
                              bool on_stream);

/* The same of the messages from one member to another. */
uint32_t iris_i_race_pair_of(struct iris_race *race, const void *group,
                             int from, int to);

/* This rank's next call of the group; IRIS_RACE_GROUPS: none. */
struct iris_race_call iris_i_race_next_call(struct iris_race *race,
                                            uint32_t group);

/* The meeting of a call. Those of long ago have made room. */
struct iris_race_meeting *
iris_i_race_meeting(struct iris_race *race, const struct iris_race_call *call);

#endif /* IRIS_SRC_CHECK_RACE_MEET_H */
