/* SPDX-License-Identifier: MIT
 *
 * The messages between proxies of different nodes.
 */
#ifndef IRIS_SRC_TRANSPORT_FAR_MESSAGE_H
#define IRIS_SRC_TRANSPORT_FAR_MESSAGE_H

#include <stdint.h>

/* A request, or the answer to one. They have the same members unless a comment
 * says otherwise. A put's data follows its request, a get's data its answer. */
struct iris_far_message {
    uint8_t op;        /* enum iris_op */
    uint8_t kind;      /* enum iris_d_kind */
    uint8_t answers;   /* 1: this is an answer */
    uint8_t refused;   /* in an answer: the target has refused it; in a
                        * fence's answer: it has refused an earlier put */
    uint16_t bytes;    /* bytes moved or updated */
    uint16_t data;     /* bytes that follow */
    uint64_t ticket;   /* ticket of the request, in its rank's ring */
    uint64_t offset;   /* on the target's heap */
    uint64_t value;    /* in an answer: the value that an atomic read */
    uint64_t expected; /* comparand of a compare-and-swap */
};

#endif /* IRIS_SRC_TRANSPORT_FAR_MESSAGE_H */
