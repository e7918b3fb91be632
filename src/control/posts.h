/* SPDX-License-Identifier: MIT
 *
 * What the members of a group have posted for their latest agreement; parts of
 * that are for all (agree.h).
 */
#ifndef IRIS_SRC_CONTROL_POSTS_H
#define IRIS_SRC_CONTROL_POSTS_H

#include "control/agree.h"

struct iris_post_id iris_i_posts_id(const struct iris_members *members,
                                    int rank);

/* Copies a piece of a member's post; returns how long all of it is. */
size_t iris_i_posts_collect(const struct iris_members *members, int rank,
                            size_t at, void *to, size_t bytes);

/* Takes a member's call apart; returns where its payload begins. */
size_t iris_i_posts_take_apart(const struct iris_members *members, int rank,
                               struct iris_posted_call *call_p);

#endif /* IRIS_SRC_CONTROL_POSTS_H */
