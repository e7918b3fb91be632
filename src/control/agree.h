/* SPDX-License-Identifier: MIT
 *
 * Agreement, the one primitive under every collective host call: post what I am
 * calling, wait until all members have posted, compare.
 */
#ifndef IRIS_SRC_CONTROL_AGREE_H
#define IRIS_SRC_CONTROL_AGREE_H

#include "control/control.h"

/* How a field of a call is printed for people. */
enum iris_field_kind {
    IRIS_FIELD_NUMBER, /* "bytes 4096", signed */
    IRIS_FIELD_TEXT,   /* up to 8 letters in the word: "dtype f32" */
};

/* A collective call, as its module describes it: static and const, owned by
 * that module. Posts carry the description along, so that a peer can print a
 * call it does not know. */
struct iris_call_type {
    const char *name; /* the public function's */
    struct {
        const char *name; /* NULL: no more fields */
        enum iris_field_kind kind;
    } fields[IRIS_CALL_FIELDS];
};

/* One rank's part in a collective call. */
struct iris_call {
    const struct iris_call_type *type;
    /* How this rank's own preparation went. If it failed, this thread's message
     * is posted in place of the payload, and every member's call fails. */
    iris_status_t status;
    uint64_t fields[IRIS_CALL_FIELDS]; /* must be equal on all members */
    const void *payload;
    size_t payload_bytes; /* at most IRIS_PAYLOAD_BYTES */
    /* Asked now and then while members are waited for; a status that is not
     * IRIS_OK ends the group. NULL: nobody is asked. */
    iris_status_t (*keep_waiting)(void *arg);
    void *arg;
};

/* The members of a group, as agreements see them: one of its user's structs. */
struct iris_members {
    struct iris_control *control;
    const int *ranks; /* in group order */
    int count;
    int place;
    uint64_t seq;                            /* agreements so far */
    const struct iris_call_type *drafted[2]; /* whose signatures the drafts of
                                              * even and odd seq have */
};

/* The word of a field of kind TEXT: the first 8 letters. */
uint64_t iris_i_call_text(const char *text);

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

/* What the member of rank `rank` posted as payload in the latest agreement;
 * valid until this rank's next one. */
const void *iris_i_agree_payload(const struct iris_members *members, int rank,
                                 size_t *bytes_p);

#endif /* IRIS_SRC_CONTROL_AGREE_H */
