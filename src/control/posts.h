/* SPDX-License-Identifier: MIT
 *
 * The members of a group, and what they have posted for their latest agreement.
 */
#ifndef IRIS_SRC_CONTROL_POSTS_H
#define IRIS_SRC_CONTROL_POSTS_H

#include "control/call.h"

/* The members of a group, as agreements see them: one of its user's structs. */
struct iris_members {
    struct iris_control *control;
    const int *ranks; /* in group order */
    int count;
    int place;
    uint64_t seq; /* agreements so far */
    struct iris_drafts drafts;
    const struct iris_draft *draft; /* the latest call's; NULL: none */
};

struct iris_post_id iris_i_posts_id(const struct iris_members *members,
                                    int rank);

/* Copies a piece of a member's post; returns how long all of it is. */
size_t iris_i_posts_collect(const struct iris_members *members, int rank,
                            size_t at, void *to, size_t bytes);

/* Takes a member's call apart; returns where its payload begins. */
size_t iris_i_posts_take_apart(const struct iris_members *members, int rank,
                               struct iris_posted_call *call_p);

/* Whether a member has posted its call of the latest agreement. */
int iris_i_agree_has_come(const struct iris_members *members, int rank);

/* Copies up to `bytes` of what the member of rank `rank` posted as payload in
 * the latest agreement; returns how long all of it is. Until this rank's next
 * one. */
size_t iris_i_agree_payload(const struct iris_members *members, int rank,
                            void *to, size_t bytes);

/* 1 if all members made the same call, if not with the same fields, in the
 * latest agreement: then all of them, whatever it gave, can go on to another
 * one of that call's. The same on all members. */
int iris_i_agree_all_called(const struct iris_members *members);

#endif /* IRIS_SRC_CONTROL_POSTS_H */
