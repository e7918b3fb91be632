/* SPDX-License-Identifier: MIT
 *
 * Operations of hosts, for the race checker.
 */
#ifndef IRIS_SRC_CHECK_RACE_HOST_H
#define IRIS_SRC_CHECK_RACE_HOST_H

#include "check/race_state.h"

/* The host function of an observer whose self is a struct iris_race. */
void iris_i_race_host(void *race, const struct iris_host_event *event);

#endif /* IRIS_SRC_CHECK_RACE_HOST_H */
