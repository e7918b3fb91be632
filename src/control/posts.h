/* SPDX-License-Identifier: MIT
 *
 * The members of a group, and their posts for the latest agreement.
 */
#ifndef IRIS_SRC_CONTROL_POSTS_H
#define IRIS_SRC_CONTROL_POSTS_H

#include "control/call.h"

/* The members of a group, as agreements use them. Part of a struct of the
 * user. */
struct iris_members {
    struct iris_control *control;
    const int *ranks; /* in group order */
    int count;
    int place;
    uint64_t seq; /* number of agreements so far */
    struct iris_drafts drafts;
    const struct iris_draft *draft; /* the latest call's; NULL: none */
};

struct iris_post_id iris_i_posts_id(const struct iris_members *members,
                                    int rank);

/* Copies a piece of a member's post; returns the post's length. */
size_t iris_i_posts_collect(const struct iris_members *members, int rank,
                            size_t at, void *to, size_t bytes);

/* Parses a member's call; returns the offset of its payload. */
size_t iris_i_posts_take_apart(const struct iris_members *members, int rank,
                               struct iris_posted_call *call_p);

/* Whether a member has posted its call of the latest agreement. */
int iris_i_agree_has_come(const struct iris_members *members, int rank);

/* Copies up to `bytes` of the payload that the member with rank `rank` posted
 * in the latest agreement; returns the payload's length. Valid until this
 * rank's next agreement. */
size_t iris_i_agree_payload(const struct iris_members *members, int rank,
                            void *to, size_t bytes);

/* 1 if all members made the same call in the latest agreement, even with
 * different fields. Then all of them can go on to another agreement of that
 * call, with any result of this one. The same on all members. */
int iris_i_agree_all_called(const struct iris_members *members);

#endif /* IRIS_SRC_CONTROL_POSTS_H */
