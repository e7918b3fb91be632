/* SPDX-License-Identifier: MIT
 *
 * Agreement, the one primitive under every collective host call: post what I am
 * calling, wait until all members have posted, compare.
 */
#ifndef IRIS_SRC_CONTROL_AGREE_H
#define IRIS_SRC_CONTROL_AGREE_H

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

/* Blocks until every member has posted its call, and gives all the same
 * verdict: IRIS_OK; the failing member's status (with its own message here, or
 * one that names it); or IRIS_ERR_MISMATCH, saying what each called. What
 * members wrote before is visible after. IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT,
 * IRIS_ERR_INTERRUPTED and what keep_waiting() returns end the group: later
 * agreements fail the same way. A wait that takes long logs one line saying for
 * whom. */
iris_status_t iris_i_agree(struct iris_members *members,
                           const struct iris_call *call);

/* Shows that this rank is in a collective call, before it does its own part of
 * it, to peers that wonder why it is late. iris_i_agree() ends it. */
void iris_i_agree_begin(struct iris_control *control,
                        const struct iris_call_type *type);

/* 1 if all members made the same call, if not with the same fields, in the
 * latest agreement: then all of them, whatever it gave, can go on to another
 * one of that call's. The same on all members. */
int iris_i_agree_all_called(const struct iris_members *members);

/* Puts into the flight record that this call waits, since `begin_ns`, and for
 * whom (agree_note.c). `slot` is -1 the first time; returns the one it has. */
int iris_i_agree_note(const struct iris_members *members, const char *call,
                      int64_t begin_ns, int slot);

/* Forgets, for what others are shown, the calls so far: those of init. */
void iris_i_agree_reset(struct iris_control *control);

/* Copies up to `bytes` of what the member of rank `rank` posted as payload in
 * the latest agreement; returns how long all of it is. Until this rank's next
 * one. */
size_t iris_i_agree_payload(const struct iris_members *members, int rank,
                            void *to, size_t bytes);

/* Whether a member has posted its call of the latest agreement. */
int iris_i_agree_has_come(const struct iris_members *members, int rank);

#endif /* IRIS_SRC_CONTROL_AGREE_H */
