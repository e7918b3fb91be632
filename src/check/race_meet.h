/* SPDX-License-Identifier: MIT
 *
 * The meetings of collective calls: all members' operations before a meeting
 * happen before their operations after it.
 */
#ifndef IRIS_SRC_CHECK_RACE_MEET_H
#define IRIS_SRC_CHECK_RACE_MEET_H

#include "check/race_state.h"

/* All under the lock. */

/* The number of the group, which all members find by this key (not 0).
 * IRIS_RACE_GROUPS: there are too many. */
uint32_t iris_i_race_group(struct iris_race *race, uint64_t key);

/* The number that counts a group's calls on the host, or its calls on streams.
 * NULL: all ranks. */
uint32_t iris_i_race_group_of(struct iris_race *race, const void *group,
                              bool on_stream);

/* The number that counts the messages from one member to another. */
uint32_t iris_i_race_pair_of(struct iris_race *race, const void *group,
                             int from, int to);

/* This rank's next call of the group; IRIS_RACE_GROUPS: none. */
struct iris_race_call iris_i_race_next_call(struct iris_race *race,
                                            uint32_t group);

/* The meeting of a call. It replaces one of long ago. */
struct iris_race_meeting *
iris_i_race_meeting(struct iris_race *race, const struct iris_race_call *call);

#endif /* IRIS_SRC_CHECK_RACE_MEET_H */
