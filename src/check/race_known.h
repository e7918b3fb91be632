/* SPDX-License-Identifier: MIT
 *
 * The numbers that a thread has learned under the lock: of its workgroup's lane,
 * and of sites. With them it checks plain accesses without the lock.
 */
#ifndef IRIS_SRC_CHECK_RACE_KNOWN_H
#define IRIS_SRC_CHECK_RACE_KNOWN_H

#include "check/race_state.h"

/* The lane of the event's workgroup, which no other thread runs meanwhile. */
void iris_i_race_learn_lane(const struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t lane);
void iris_i_race_learn_site(const struct iris_race *race,
                            const struct iris_cpu_event *event, uint32_t site);

/* False: the thread has not learned both. */
bool iris_i_race_knows(const struct iris_race *race,
                       const struct iris_cpu_event *event, uint32_t *lane_p,
                       uint32_t *site_p);

#endif /* IRIS_SRC_CHECK_RACE_KNOWN_H */
