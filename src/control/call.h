/* SPDX-License-Identifier: MIT
 *
 * A collective call, and the format in which ranks post it.
 */
#ifndef IRIS_SRC_CONTROL_CALL_H
#define IRIS_SRC_CONTROL_CALL_H

#include "control/control.h"

/* How messages print a field of a call. */
enum iris_field_kind {
    IRIS_FIELD_NUMBER, /* "bytes 4096", signed */
    IRIS_FIELD_TEXT,   /* up to 8 letters in the word: "dtype f32" */
};

/* The type of a collective call: static and const, owned by the module that
 * makes it. Posts contain its description, so that a peer can print a call that
 * it does not know. */
struct iris_call_type {
    const char *name; /* name of the public function */
    struct {
        const char *name; /* NULL: no more fields */
        enum iris_field_kind kind;
    } fields[IRIS_CALL_FIELDS];
};

/* One rank's part in a collective call. */
struct iris_call {
    const struct iris_call_type *type;
    /* The status of this rank's own preparation. If it failed, this thread's
     * message is posted in place of the payload, and the call fails on every
     * member. */
    iris_status_t status;
    uint64_t fields[IRIS_CALL_FIELDS]; /* must be equal on all members */
    const void *payload;
    size_t payload_bytes; /* at most IRIS_PAYLOAD_BYTES */
    /* Called now and then during the wait for members; a status other than
     * IRIS_OK ends the group. May be NULL. */
    iris_status_t (*keep_waiting)(void *arg);
    void *arg;
};

/* The word of a field of kind TEXT: the first 8 letters. */
uint64_t iris_i_call_text(const char *text);

/* The beginning of a post. Then come the fields in the order of the call's
 * type, its signature "iris_malloc(bytes, alignment, offset)", and the
 * payload. */
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

/* A call in the format of a post, without its payload. */
struct iris_draft {
    const struct iris_call_type *type; /* NULL: no draft yet */
    size_t bytes;
    unsigned char data[IRIS_DRAFT_BYTES];
};

/* A posted call, parsed. */
struct iris_posted_call {
    struct iris_call_head head;
    uint64_t fields[IRIS_CALL_FIELDS];
    char signature[IRIS_SIGNATURE_BYTES + 1];
};

/* The drafts of the most recent call types. */
#define IRIS_DRAFTS 4
struct iris_drafts {
    struct iris_draft of[IRIS_DRAFTS];
    unsigned next; /* index of the draft to replace */
};

/* Makes the draft of this call; valid until the next call of this function. */
const struct iris_draft *iris_i_call_draft(struct iris_drafts *drafts,
                                           const struct iris_call *call);

/* Parses the first IRIS_DRAFT_BYTES of a post of `bytes` bytes; returns the
 * offset of its payload. A malformed post becomes a call without a name or
 * payload. */
size_t iris_i_call_take_apart(const void *data, size_t bytes,
                              struct iris_posted_call *call_p);

/* Whether two calls have the same name and fields. */
int iris_i_call_is_same(const struct iris_posted_call *a,
                        const struct iris_posted_call *b);

/* The call as text: "iris_malloc(bytes 64, alignment 256)". */
void iris_i_call_describe(const struct iris_posted_call *call, char *text,
                          size_t bytes);

#endif /* IRIS_SRC_CONTROL_CALL_H */
