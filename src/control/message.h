/* SPDX-License-Identifier: MIT
 *
 * The messages of the control plane over sockets: a head and a body. They come
 * from other processes, maybe other machines: nothing in them is believed
 * before it was checked.
 */
#ifndef IRIS_SRC_CONTROL_MESSAGE_H
#define IRIS_SRC_CONTROL_MESSAGE_H

#include "control/control.h"

#define IRIS_MESSAGE_MAGIC \
    UINT32_C(0x69726973) /* other in another byte order */
#define IRIS_MESSAGE_VERSION 2u
#define IRIS_SECRET_BYTES 32
#define IRIS_MESSAGE_WHY_BYTES 160

/*   peer -> 0    HELLO: secret, and how many ranks
 *   0 -> peer    WELCOME, or REFUSED: a text
 *   any -> 0     and from there to all the others, in the order of each sender:
 *                SHOWN, POST, FAIL, HOLD, RELEASE
 *   0 -> all     ENDED: `from` has closed its connection */
enum iris_message_type {
    IRIS_MESSAGE_HELLO = 1,
    IRIS_MESSAGE_WELCOME,
    IRIS_MESSAGE_REFUSED, /* value: minus the status; body: why */
    IRIS_MESSAGE_SHOWN,   /* value: parts */
    IRIS_MESSAGE_POST,    /* value: number of the agreement */
    IRIS_MESSAGE_FAIL,    /* value: mark */
    IRIS_MESSAGE_HOLD,
    IRIS_MESSAGE_RELEASE,
    IRIS_MESSAGE_ENDED,
    IRIS_MESSAGE_TYPES
};

struct iris_message_head {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint16_t bytes;   /* of the body */
    uint16_t members; /* POST: of its place */
    uint16_t from;    /* a rank */
    uint16_t place;
    uint64_t value;
};

_Static_assert(sizeof(struct iris_message_head) == 24, "no holes");
_Static_assert(IRIS_POST_BYTES <= UINT16_MAX, "a head says how long it is");

struct iris_message_hello {
    uint32_t num_ranks;
    unsigned char secret[IRIS_SECRET_BYTES];
};

#define IRIS_MESSAGE_MOST (sizeof(struct iris_message_head) + IRIS_POST_BYTES)

/* The head of a message. */
struct iris_message_head iris_i_message_head(enum iris_message_type type,
                                             int from, int place,
                                             uint64_t value, size_t bytes);

/* Looks at what has come. Returns how long the first message is, its head in
 * *head_p; 0: it is not all there yet; -1: it is none of ours, and why. */
int iris_i_message_take(const unsigned char *data, size_t bytes, int num_ranks,
                        struct iris_message_head *head_p,
                        char why[IRIS_MESSAGE_WHY_BYTES]);

/* Packs parts of what is shown; returns the bytes, IRIS_MESSAGE_SHOWN_BYTES at
 * most. Unpacks them; 0: it is of another length. */
#define IRIS_MESSAGE_SHOWN_BYTES sizeof(struct iris_shown)
size_t iris_i_message_pack(unsigned parts, const struct iris_shown *shown,
                           unsigned char *data);
int iris_i_message_unpack(unsigned parts, const unsigned char *data,
                          size_t bytes, struct iris_shown *shown_p);

#endif /* IRIS_SRC_CONTROL_MESSAGE_H */
