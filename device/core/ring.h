/* SPDX-License-Identifier: MIT
 *
 * The ring in which kernels leave requests for this rank's proxy, which carries
 * them to ranks whose heaps are not mapped here. The host shares it.
 */
#ifndef IRIS_DEVICE_RING_H
#define IRIS_DEVICE_RING_H

#include <iris/device/core/compat.h>

/* The number of slots, and the most bytes that one request moves. */
#define IRIS_RING_SLOTS 128u
#define IRIS_RING_BYTES 32768u

/* State of a slot's answer.
 *
 *   WAITING  the lane waits for it; the slot belongs to the proxy
 *   HERE     the lane reads it, then frees the slot
 *   REFUSED  like HERE; the target refused the request
 *   LEFT     the lane has ended; the proxy frees the slot once the answer
 * comes */
enum iris_dev_answer {
    IRIS_ANSWER_WAITING,
    IRIS_ANSWER_HERE,
    IRIS_ANSWER_REFUSED,
    IRIS_ANSWER_LEFT,
};

/* One request. `turn` names the owner of the slot:
 * - ticket t, if `turn` is t;
 * - the proxy, if it is t + 1;
 * - nobody (free for the next lap), if it is t + IRIS_RING_SLOTS. A lane may
 *   take the slot only in the last case, so there are no other credits.
 */
struct iris_dev_slot {
    uint64_t turn;
    uint32_t answer;   /* enum iris_dev_answer */
    uint32_t answered; /* 1: a lane waits for an answer */
    uint16_t op;       /* enum iris_op; a fence waits until all earlier
                        * requests have reached their targets */
    uint16_t kind;     /* enum iris_d_kind of an atomic */
    int32_t rank;      /* the target */
    uint32_t bytes;    /* bytes that it moves or updates */
    uint32_t releases; /* 1: comes after all earlier requests, to any rank */
    uint64_t offset;   /* on the target's heap */
    uint64_t value;    /* an atomic's operand, then its answer */
    uint64_t expected; /* comparand of a compare-and-swap */
    uint64_t unused;
    unsigned char data[IRIS_RING_BYTES]; /* the bytes of a put, or the answer
                                          * of a get */
};

IRIS_STATIC_ASSERT(offsetof(struct iris_dev_slot, data) == 64, "layout");

/* All requests of a rank, in the order of their tickets. With one ring, a
 * workgroup that has seen another workgroup's release has later tickets than
 * the other workgroup's earlier requests. */
struct iris_dev_ring {
    uint64_t head; /* the next ticket; lanes take them */
    uint64_t unused0[15];
    uint64_t done; /* requests with lower tickets have reached their targets */
    uint64_t unused1[15];
    struct iris_dev_slot slots[IRIS_RING_SLOTS];
};

#endif /* IRIS_DEVICE_RING_H */
