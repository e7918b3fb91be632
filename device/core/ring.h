/* SPDX-License-Identifier: MIT
 *
 * The ring in which kernels leave requests for their rank's proxy, which
 * carries them to ranks whose heaps are not mapped here. The host shares it.
 *
 * Two parts. struct iris_dev_ring is in memory of the kernels' own device. Only
 * lanes use it, by atomics at agent scope. struct iris_dev_requests is in host
 * memory that the device maps. Each of its words has one writer at a time, and
 * nobody updates it by a read-modify-write: a GPU may lack such atomics on host
 * memory. All of it is accessed at system scope.
 *
 *     word      place    written by     read by
 *     head      kernels  lanes, CAS     lanes
 *     tail_seen kernels  lanes          lanes
 *     told      kernels  lanes, CAS     lanes
 *     request   slot     its lane       proxy
 *     left      slot     its lane       proxy
 *     answer    slot     proxy          its lane
 *     tail, acked, refused, lost        proxy          lanes
 *
 * A request has a ticket t, its slot is t % IRIS_RING_SLOTS. Its states:
 *
 *     free      t < tail + IRIS_RING_SLOTS. A lane may advance `head` from t to
 *               t + 1; the slot then belongs to this lane. A lane that finds no
 *               free slot has no ticket, so it may end at any time.
 *     taken     The lane writes the request, without waiting for anything. The
 *               store of the commit word is the last one and releases.
 *     posted    The commit word has the parity of t's lap. The slot belongs to
 *               the proxy, which takes requests in the order of their tickets.
 *     answered  The proxy stores the result, then releases `answer`, which
 *               names t. Only requests with IRIS_RING_ANSWERED.
 *     left      The lane has read the answer, or has ended and will not: it
 *               releases t + 1 to `left`. It may do so before the answer comes.
 *     done      The proxy needs the slot no longer: the channel has its data,
 *               and if the lane asked for an answer, the slot is both answered
 *               and left. Once all earlier slots are done, too, the proxy
 *               releases `tail`, and the slot is free for the next lap.
 *
 * Slots are never cleared. The slot of a ticket that is not posted has the
 * other parity, of the lap before.
 *
 * Invariants:
 * - tail <= the proxy's next ticket <= head <= tail + IRIS_RING_SLOTS.
 * - Requests below `acked` have reached their targets, or were refused there,
 *   except those whose lanes wait for an answer. `refused` is stored before an
 *   `acked` that covers the refused requests. Requests to lost ranks are never
 *   acked; `lost` says so.
 * - `tail_seen` is a value that `tail` has had.
 *
 * A lane that waits until its rank's earlier requests have reached their targets
 * posts a fence; the fence's ticket is its issue word. It waits until `acked`
 * is greater. A lane whose flush finds more refusals than `told` advances
 * `told` to their number, and if it is the one that does, ends its kernel: each
 * refusal is reported once. Every wait ends by an answer, by `lost`, or as
 * other waits of kernels do.
 */
#ifndef IRIS_DEVICE_RING_H
#define IRIS_DEVICE_RING_H

#include <iris/device/core/compat.h>

/* The number of slots, and the most bytes that one request moves. */
#define IRIS_RING_SLOTS 128u
#define IRIS_RING_BYTES 32768u

/* The commit word: flags, and positions of the request's parts. */
#define IRIS_RING_PARITY ((uint64_t)1)
#define IRIS_RING_ANSWERED ((uint64_t)2) /* the lane waits for an answer */
#define IRIS_RING_RELEASES \
    ((uint64_t)4) /* it comes after all earlier
                                          * requests, to any rank */
enum {
    IRIS_RING_OP_SHIFT = 8,     /* enum iris_op, 8 bits; a fence waits until all
                                 * earlier requests have reached their targets */
    IRIS_RING_KIND_SHIFT = 16,  /* enum iris_d_kind of an atomic, 8 bits */
    IRIS_RING_BYTES_SHIFT = 24, /* bytes that it moves or updates, 24 bits */
    IRIS_RING_RANK_SHIFT = 48,  /* the target, 16 bits */
};

/* The low bits of `answer`. */
enum iris_dev_answer {
    IRIS_ANSWER_HERE = 1,
    IRIS_ANSWER_REFUSED = 2, /* by the target */
    IRIS_ANSWER_LOST = 3,    /* the target is lost */
    IRIS_ANSWER_BITS = 2,    /* the ticket is above them */
};

/* One request and its answer. A lane writes the first two pairs of words with
 * one store each. */
struct iris_dev_slot {
    uint64_t offset;   /* on the target's heap */
    uint64_t expected; /* comparand of a compare-and-swap */
    uint64_t value;    /* an atomic's operand; a put of up to 8 bytes */
    uint64_t commit;
    uint64_t left; /* ticket + 1 */
    uint64_t unused0[3];
    uint64_t answer; /* ticket << IRIS_ANSWER_BITS | enum iris_dev_answer */
    uint64_t result; /* the value that an atomic read; up to 8 bytes of a
                      * get */
    uint64_t unused1[6];
    unsigned char data[IRIS_RING_BYTES]; /* the bytes of a longer put or get */
};

IRIS_STATIC_ASSERT(offsetof(struct iris_dev_slot, value) == 16, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_slot, answer) == 64, "layout");
IRIS_STATIC_ASSERT(offsetof(struct iris_dev_slot, data) == 128, "layout");

/* The part in host memory; all zero at the start. */
struct iris_dev_requests {
    uint64_t tail;    /* slots of lower tickets are free */
    uint64_t acked;   /* requests with lower tickets have reached their
                       * targets */
    uint64_t refused; /* number of fences that learned of refused requests */
    uint64_t lost;    /* a lost rank + 1; 0: none */
    uint64_t unused[12];
    struct iris_dev_slot slots[IRIS_RING_SLOTS];
};

/* All requests of a rank, in the order of their tickets: the part in kernels'
 * memory. With one ring, a workgroup that has seen another workgroup's release
 * has later tickets than the other workgroup's earlier requests. */
struct iris_dev_ring {
    uint64_t head; /* the next ticket */
    uint64_t unused0[15];
    uint64_t tail_seen; /* `tail`, perhaps an earlier value */
    uint64_t told;      /* refusals that lanes have reported */
    struct iris_dev_requests *requests;
    uint64_t unused1[13];
};

#endif /* IRIS_DEVICE_RING_H */
