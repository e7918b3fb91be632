/* SPDX-License-Identifier: MIT
 *
 * Operations of kernels, for the race checker.
 */
#ifndef IRIS_SRC_CHECK_RACE_DEVICE_H
#define IRIS_SRC_CHECK_RACE_DEVICE_H

#include "check/race_state.h"

/* The device function of an observer whose self is a struct iris_race. */
iris_status_t iris_i_race_device(void *race,
                                 const struct iris_cpu_event *event);

/* An access of the rank's host. The event's kernel is "". */
void iris_i_race_of_host(struct iris_race *race,
                         const struct iris_cpu_event *event);

#endif /* IRIS_SRC_CHECK_RACE_DEVICE_H */
