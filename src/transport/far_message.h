/* SPDX-License-Identifier: MIT
 *
 * What proxies of different nodes send each other.
 */
#ifndef IRIS_SRC_TRANSPORT_FAR_MESSAGE_H
#define IRIS_SRC_TRANSPORT_FAR_MESSAGE_H

#include <stdint.h>

/* A request, or the answer to one: the same but for the fields that say
 * otherwise. A put's data follows a request, a get's its answer. */
struct iris_far_message {
    uint16_t op;       /* enum iris_op */
    uint16_t kind;     /* enum iris_d_kind */
    uint16_t answers;  /* 1: this is an answer */
    uint16_t refused;  /* answers: the target has refused it, a fence's: any put
                        * before it */
    uint32_t bytes;    /* that are moved or updated */
    uint32_t data;     /* bytes that follow */
    uint64_t ticket;   /* of the request, in its rank's ring */
    uint64_t offset;   /* on the target's heap */
    uint64_t value;    /* answers: what an atomic read */
    uint64_t expected; /* by a compare-and-swap */
};

#endif /* IRIS_SRC_TRANSPORT_FAR_MESSAGE_H */
