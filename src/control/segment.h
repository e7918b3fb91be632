/* SPDX-License-Identifier: MIT
 *
 * The control segment: a small piece of shared memory through which the ranks
 * of a node watch each other and compare collective calls.
 */
#ifndef IRIS_SRC_CONTROL_SEGMENT_H
#define IRIS_SRC_CONTROL_SEGMENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>

/* Groups that can live at once, the group of all ranks included. */
#define IRIS_GROUP_SLOTS 64

/* What one rank can hand to the others in one meeting. */
#define IRIS_PAYLOAD_BYTES 4032

/* A rank's life, as its peers see it. Only the rank itself moves it on.
 *   JOINING    from the meeting until init is complete
 *   RUNNING    may be waited for
 *   FINALIZED  left with everyone's consent; its last posts stay valid
 *   LEFT       left without: whoever waits for it gets IRIS_ERR_PEER_LOST */
enum iris_rank_state {
    IRIS_RANK_JOINING,
    IRIS_RANK_RUNNING,
    IRIS_RANK_FINALIZED,
    IRIS_RANK_LEFT,
};

/* One rank, written by it alone. */
struct iris_control_rank {
    _Alignas(64) atomic_uint state;
    atomic_uint doing;   /* enum iris_call_kind it is in, 0: none */
    atomic_uint last;    /* the last it was in */
    atomic_uint blames;  /* LEFT because of this rank + 1; 0: of itself */
    atomic_uint waiting; /* threads that wait for a stream */
    atomic_ullong calls; /* collective calls it has begun */
};

/* What one member posts for one meeting. Two of them alternate: a member can
 * only post meeting k+2 once all have posted k+1, so all have read k. */
struct iris_control_slot {
    _Alignas(64) atomic_ullong seq; /* meeting this is for; stored last */
    uint32_t kind;
    int32_t status;
    uint64_t args[3];
    uint32_t payload_bytes;
    unsigned char payload[IRIS_PAYLOAD_BYTES];
};

_Static_assert(sizeof(struct iris_control_slot) == 4096, "a slot is a page");

/* One group's meeting place. */
struct iris_control_group {
    _Alignas(4096) atomic_uint users; /* ranks that hold the group */
    atomic_uint wakes;                /* futex: bumped when all have posted */
    atomic_uint sleepers;             /* ranks asleep on it */
    atomic_ullong posts;              /* so far; each meeting adds `count` */
    /* Set once, by the first member that gave up: the rank it gave up on, + 1,
     * in the low half, its status (negated) in the high half. Later meetings
     * cannot agree. */
    atomic_uint gave_up;
    struct iris_control_slot slots[]; /* [2 * rank + seq % 2] */
};

/* This process's hold on the segment; rank threads share one, so that they
 * share addresses too. */
struct iris_control {
    atomic_int refs;
    int num_ranks;
    int fd;
    size_t bytes;
    void *base;
};

/* Makes the segment for a job of num_ranks, with one reference.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_control_create(int num_ranks,
                                    struct iris_control **control_p);

/* Maps a segment another process made; takes over `fd` on success. */
iris_status_t iris_i_control_attach(int fd, int num_ranks,
                                    struct iris_control **control_p);

void iris_i_control_retain(struct iris_control *control, int refs);

/* Drops a reference; the last one unmaps. NULL is fine. */
void iris_i_control_release(struct iris_control *control);

struct iris_control_rank *iris_i_control_rank(struct iris_control *control,
                                              int rank);
struct iris_control_group *iris_i_control_group(struct iris_control *control,
                                                int slot);

/* Puts memory behind a group's pages; slot 0 has it from the start.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_control_back_group(struct iris_control *control, int slot);

#endif /* IRIS_SRC_CONTROL_SEGMENT_H */
