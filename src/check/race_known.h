/* SPDX-License-Identifier: MIT
 *
 * Numbers that a thread has learned under the lock: those of its workgroup's
 * lane and of sites. With them it checks plain accesses without the lock.
 */
#ifndef IRIS_SRC_CHECK_RACE_KNOWN_H
#define IRIS_SRC_CHECK_RACE_KNOWN_H

#include "check/race_state.h"

/* Learns the lane of the event's workgroup. No other thread runs it
 * meanwhile. */
void iris_i_race_learn_lane(const struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t lane);
void iris_i_race_learn_site(const struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t site);

/* False: the thread has not learned both. */
bool iris_i_race_knows(const struct iris_race *race,
                       const struct iris_cpu_event *event, uint32_t *lane_p,
                       uint32_t *site_p);

#endif /* IRIS_SRC_CHECK_RACE_KNOWN_H */
