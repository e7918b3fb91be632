/* SPDX-License-Identifier: MIT
 *
 * Detects circles of ranks that wait for each other in agreements of different
 * groups.
 */
#ifndef IRIS_SRC_CONTROL_CIRCLE_H
#define IRIS_SRC_CONTROL_CIRCLE_H

#include "control/posts.h"

/* This rank waits for `absent` in the members' current agreement; its board
 * shows that from now on. IRIS_ERR_MISMATCH: that rank waits for this one,
 * directly or through others. No group in the circle can go on, and all their
 * members are told. */
iris_status_t iris_i_circle_check(const struct iris_members *members,
                                  const char *call, int absent);

/* The error of a member that learned of a circle from `rank`, or of its
 * leaving. */
iris_status_t iris_i_circle_told(const struct iris_members *members, int rank);

/* This rank no longer waits. */
void iris_i_circle_leave(const struct iris_members *members);

#endif /* IRIS_SRC_CONTROL_CIRCLE_H */
