/* SPDX-License-Identifier: MIT
 *
 * A collective call, and the form in which ranks post it.
 */
#ifndef IRIS_SRC_CONTROL_CALL_H
#define IRIS_SRC_CONTROL_CALL_H

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

/* The word of a field of kind TEXT: the first 8 letters. */
uint64_t iris_i_call_text(const char *text);

/* What a post begins with; the fields that the call's type names follow, then
 * its signature, "iris_malloc(bytes, alignment, offset)", then its payload. */
struct iris_call_head {
    int32_t status;
    uint16_t num_fields;
    uint16_t signature_bytes;
};

_Static_assert(sizeof(struct iris_call_head) == 8, "fields are aligned");

#define IRIS_DRAFT_BYTES                                                   \
    (sizeof(struct iris_call_head) + IRIS_CALL_FIELDS * sizeof(uint64_t) + \
     IRIS_SIGNATURE_BYTES)
_Static_assert(IRIS_DRAFT_BYTES + IRIS_PAYLOAD_BYTES <= IRIS_POST_BYTES,
               "a post has room for both");

/* A call as it is posted, ahead of its payload. */
struct iris_draft {
    const struct iris_call_type *type; /* NULL: nothing was drafted yet */
    size_t bytes;
    unsigned char data[IRIS_DRAFT_BYTES];
};

/* A posted call, taken apart. */
struct iris_posted_call {
    struct iris_call_head head;
    uint64_t fields[IRIS_CALL_FIELDS];
    char signature[IRIS_SIGNATURE_BYTES + 1];
};

/* The drafts of the call types used last. */
#define IRIS_DRAFTS 4
struct iris_drafts {
    struct iris_draft of[IRIS_DRAFTS];
    unsigned next; /* to be replaced */
};

/* Makes the draft of this call; valid until the next one. */
const struct iris_draft *iris_i_call_draft(struct iris_drafts *drafts,
                                           const struct iris_call *call);

/* Takes the first IRIS_DRAFT_BYTES of a post apart, all of which is `bytes`
 * long; returns where its payload begins. A post that has no such form becomes
 * a call without a name or payload. */
size_t iris_i_call_take_apart(const void *data, size_t bytes,
                              struct iris_posted_call *call_p);

/* Whether two have the same name and fields. */
int iris_i_call_is_same(const struct iris_posted_call *a,
                        const struct iris_posted_call *b);

/* As people read it: "iris_malloc(bytes 64, alignment 256)". */
void iris_i_call_describe(const struct iris_posted_call *call, char *text,
                          size_t bytes);

#endif /* IRIS_SRC_CONTROL_CALL_H */
