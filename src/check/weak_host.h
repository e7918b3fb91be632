/* SPDX-License-Identifier: MIT
 *
 * Operations of hosts, for the weak mode.
 */
#ifndef IRIS_SRC_CHECK_WEAK_HOST_H
#define IRIS_SRC_CHECK_WEAK_HOST_H

#include "check/weak_state.h"

/* The host function of an observer whose self is a struct iris_weak. */
void iris_i_weak_host(void *weak, const struct iris_host_event *event);

#endif /* IRIS_SRC_CHECK_WEAK_HOST_H */
