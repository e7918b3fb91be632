/* SPDX-License-Identifier: MIT
 *
 * The messages of the control plane over sockets: a head and a body. They come
 * from other processes, perhaps on other machines, so everything in them is
 * checked before it is used.
 */
#ifndef IRIS_SRC_CONTROL_MESSAGE_H
#define IRIS_SRC_CONTROL_MESSAGE_H

#include "control/control.h"

#define IRIS_MESSAGE_MAGIC \
    UINT32_C(0x69726973) /* differs in another byte order */
#define IRIS_MESSAGE_VERSION 4u
#define IRIS_MESSAGE_WHY_BYTES 160

/*   any -> 0     forwarded by 0 to all the others, in the order of each sender:
 *                SHOWN, POST, FAIL, HOLD, RELEASE, QUERY
 *   any -> any   through 0: RECORD, ANSWERED
 *   0 -> all     ENDED: `from` has closed its connection */
enum iris_message_type {
    IRIS_MESSAGE_SHOWN = 1, /* value: parts */
    IRIS_MESSAGE_POST,      /* value: number of the agreement */
    IRIS_MESSAGE_FAIL,      /* value: mark */
    IRIS_MESSAGE_HOLD,
    IRIS_MESSAGE_RELEASE,
    IRIS_MESSAGE_ENDED,
    IRIS_MESSAGE_QUERY,    /* `from` wants other hosts' flight records; value:
                            * number of the query */
    IRIS_MESSAGE_RECORD,   /* value: an offset; body: those bytes of the
                            * record */
    IRIS_MESSAGE_ANSWERED, /* value: number of the query */
    IRIS_MESSAGE_TYPES
};

struct iris_message_head {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint16_t bytes;   /* of the body */
    uint16_t members; /* POST: number of members of its place; RECORD,
                       * ANSWERED: the rank that has asked */
    uint16_t from;    /* a rank */
    uint16_t place;
    uint64_t value;
};

_Static_assert(sizeof(struct iris_message_head) == 24, "no holes");
_Static_assert(IRIS_POST_BYTES <= UINT16_MAX, "a head says how long it is");

/* The end of an answer. Rank 0 may have dropped any part of it. */
struct iris_message_answered {
    int64_t now_ns;
    uint64_t bytes; /* sum of its parts */
};

#define IRIS_MESSAGE_MOST (sizeof(struct iris_message_head) + IRIS_POST_BYTES)

/* The head of a message. */
struct iris_message_head iris_i_message_head(enum iris_message_type type,
                                             int from, int place,
                                             uint64_t value, size_t bytes);

/* Parses the received bytes. Returns the length of the first message, with its
 * head in *head_p; 0: it is not complete yet; -1: it is not one of ours, with
 * the reason. */
int iris_i_message_take(const unsigned char *data, size_t bytes, int num_ranks,
                        struct iris_message_head *head_p,
                        char why[IRIS_MESSAGE_WHY_BYTES]);

/* Packs parts of the published state; returns the bytes, at most
 * IRIS_MESSAGE_SHOWN_BYTES. Unpacks them; 0: wrong length. */
#define IRIS_MESSAGE_SHOWN_BYTES sizeof(struct iris_shown)
size_t iris_i_message_pack(unsigned parts, const struct iris_shown *shown,
                           unsigned char *data);
int iris_i_message_unpack(unsigned parts, const unsigned char *data,
                          size_t bytes, struct iris_shown *shown_p);

#endif /* IRIS_SRC_CONTROL_MESSAGE_H */
