/* SPDX-License-Identifier: MIT
 *
 * The one primitive under every collective host call: post what I am calling,
 * wait until all members have posted, compare.
 */
#ifndef IRIS_SRC_CONTROL_AGREE_H
#define IRIS_SRC_CONTROL_AGREE_H

#include "context/group.h"

/* X(KIND, public name, names of up to three compared arguments) */
/* clang-format off */
#define IRIS_CALL_ROWS(X)                                                      \
    X(FINALIZE,     "iris_finalize",     NULL,    NULL,        NULL)           \
    X(BARRIER,      "iris_barrier",      NULL,    NULL,        NULL)           \
    X(MALLOC,       "iris_malloc",       "bytes", "alignment", "offset")       \
    X(CALLOC,       "iris_calloc",       "bytes", "alignment", "offset")       \
    X(FREE,         "iris_free",         "offset", NULL,       NULL)           \
    X(GROW,         "iris_malloc",       "offset", "bytes",   NULL)           \
    X(AS_SYMMETRIC, "iris_as_symmetric", "bytes", "alignment", "offset")       \
    X(ADOPT,        "iris_as_symmetric", "offset", "bytes",   NULL)           \
    X(GROUP_CREATE, "iris_group_create", NULL,    NULL,        NULL)           \
    X(GROUP_SLOT,   "iris_group_create", NULL,    NULL,        NULL)           \
    X(GROUP_FREE,   "iris_group_destroy", NULL,   NULL,        NULL)           \
    X(BROADCAST,    "iris_broadcast",    "bytes", "root",      "position")
/* clang-format on */

enum iris_call_kind {
    IRIS_CALL_NONE,
#define IRIS_CALL_ENUM(kind, name, a, b, c) IRIS_CALL_##kind,
    IRIS_CALL_ROWS(IRIS_CALL_ENUM)
#undef IRIS_CALL_ENUM
};

/* One rank's part in a collective call. */
struct iris_call {
    enum iris_call_kind kind;
    /* How this rank's own preparation went. If it failed, this thread's message
     * is posted in place of the payload, and every member's call fails. */
    iris_status_t status;
    uint64_t args[3]; /* must be equal on all members */
    const void *payload;
    size_t payload_bytes; /* at most IRIS_PAYLOAD_BYTES */
};

/* Blocks until every member has posted its call, and gives all the same
 * verdict: IRIS_OK; the failing member's status (with its own message here, or
 * one that names it); or IRIS_ERR_MISMATCH, saying what each called. What
 * members wrote before is visible after. IRIS_ERR_PEER_LOST and
 * IRIS_ERR_TIMEOUT end the group: later meetings fail the same way. */
iris_status_t iris_i_meet(iris_t *iris, struct iris_group *group,
                          const struct iris_call *call);

/* Notes that this rank is in a collective call, before it does its own part of
 * it, for peers that wonder why it is late. iris_i_meet() ends it. */
void iris_i_meet_begin(iris_t *iris, enum iris_call_kind kind);

/* What the member of rank `rank` posted as payload in the latest meeting of the
 * group; valid until this rank's next meeting. */
const void *iris_i_meet_payload(iris_t *iris, const struct iris_group *group,
                                int rank, size_t *bytes_p);

#endif /* IRIS_SRC_CONTROL_AGREE_H */
