/* SPDX-License-Identifier: MIT
 *
 * Circles of ranks that wait for each other in agreements of different groups.
 */
#ifndef IRIS_SRC_CONTROL_CIRCLE_H
#define IRIS_SRC_CONTROL_CIRCLE_H

#include "control/posts.h"

/* This rank waits for `absent` in the members' present agreement, which its
 * board shows from now on. IRIS_ERR_MISMATCH: that one waits for this rank in
 * turn. No group in the circle can go on then, which its members learn. */
iris_status_t iris_i_circle_check(const struct iris_members *members,
                                  const char *call, int absent);

/* What a member says that learned from `rank` of a circle, or that it goes. */
iris_status_t iris_i_circle_told(const struct iris_members *members, int rank);

/* It does not wait any more. */
void iris_i_circle_leave(const struct iris_members *members);

#endif /* IRIS_SRC_CONTROL_CIRCLE_H */
