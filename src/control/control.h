/* SPDX-License-Identifier: MIT
 *
 * The control plane of one rank: how it posts what it calls, sees what others
 * posted, watches them, and sends descriptors. An interface, because ranks that
 * share no memory need another implementation than control_shm.c.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_H
#define IRIS_SRC_CONTROL_CONTROL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>

#include "base/error.h"

/* Groups that can live at once, the group of all ranks included: each has a
 * place where its members post. */
#define IRIS_PLACES 64

/* What one rank can hand to the others in one post. */
#define IRIS_PAYLOAD_BYTES 3840

/* The same with what says which call it is of (agree.c). */
#define IRIS_POST_BYTES 4080

/* Fields of a collective call that its members compare, at most. */
#define IRIS_CALL_FIELDS 8

/* "iris_malloc(bytes, alignment, offset)" */
#define IRIS_SIGNATURE_BYTES 160
#define IRIS_CALL_NAME_WORDS 4

/* Why a rank leaves: 191 characters at most. */
#define IRIS_REASON_WORDS 24
#define IRIS_REASON_BYTES (8 * IRIS_REASON_WORDS)

#define IRIS_RANK_NAME_BYTES 64

/* A rank's life, as its peers see it. Only the rank itself moves it on.
 *   JOINING    from the rendezvous until init is complete
 *   RUNNING    may be waited for
 *   FINALIZED  left with everyone's consent; its last posts stay valid
 *   LEFT       left without: whoever waits for it gets IRIS_ERR_PEER_LOST */
enum iris_rank_state {
    IRIS_RANK_JOINING,
    IRIS_RANK_RUNNING,
    IRIS_RANK_FINALIZED,
    IRIS_RANK_LEFT,
};

/* What one rank shows of itself, as a copy. Only the rank itself changes it. */
struct iris_shown {
    unsigned state;           /* enum iris_rank_state */
    unsigned interrupted;     /* LEFT because of iris_interrupt() */
    unsigned blames;          /* LEFT because of this rank + 1; 0: of itself */
    unsigned busy;            /* in the collective call named below; 0: not */
    unsigned streams;         /* threads that wait for a stream */
    unsigned long long calls; /* collective calls it has begun */
    char name[8 * IRIS_CALL_NAME_WORDS + 1]; /* of the last one */
    uint64_t waits;        /* for whom, in which agreement (circle.c) */
    unsigned long long id; /* rank 0's: of this control plane, its alone on the
                            * machine */
    unsigned long long elsewhere; /* the id of another context that its thread
                                   * is finalizing before this one; 0: none */
    char reason[IRIS_REASON_BYTES + 1]; /* why it leaves; empty: it has not
                                         * said */
};

/* Parts of it that are published and read together. */
enum iris_show {
    IRIS_SHOW_STATE = 1 << 0, /* state, interrupted, blames */
    IRIS_SHOW_BUSY = 1 << 1,
    IRIS_SHOW_CALLS = 1 << 2,
    IRIS_SHOW_STREAMS = 1 << 3, /* only read; published by wait_stream() */
    IRIS_SHOW_WAITS = 1 << 4,
    IRIS_SHOW_ID = 1 << 5,
    IRIS_SHOW_ELSEWHERE = 1 << 6,
    IRIS_SHOW_REASON = 1 << 7,
    IRIS_SHOW_NAME = 1 << 8,
    IRIS_SHOW_ALL = (1 << 9) - 1,
};

/* A post of one rank: in one agreement at one place. A member can only post
 * agreement k+2 once all have posted k+1, so all have read k. */
struct iris_post_id {
    int place;
    int rank;
    uint64_t seq;
};

/* A piece of what is posted. */
struct iris_part {
    const void *data;
    size_t bytes;
};

struct iris_control;

/* Of a message that was taken. */
struct iris_sender {
    int rank; /* -1: there was no message */
    int fd;   /* its descriptor, the caller's, or -1 */
};

/* All slots are filled. All that ranks see of each other are copies, and they
 * may hold anything: trust no index and no length in them. Where it is not said
 * otherwise, one thread at a time calls. */
struct iris_control_ops {
    /* Shows parts of `shown` (enum iris_show) as this rank's. Ordered: who
     * reads one of two publications in different calls finds those before it.
     */
    void (*publish)(struct iris_control *control, unsigned parts,
                    const struct iris_shown *shown);

    /* One more thread of this rank (1) or one less (-1) waits for a stream.
     * Thread-safe. */
    void (*wait_stream)(struct iris_control *control, int change);

    /* Copies these parts of what a rank shows, which may lag behind; leaves the
     * others alone. Thread-safe. */
    void (*read)(struct iris_control *control, int rank, unsigned parts,
                 struct iris_shown *shown_p);

    /* Posts two parts, at most IRIS_POST_BYTES together, for agreement `seq` at
     * a place of `expected` members; release of all this rank wrote before. */
    void (*post)(struct iris_control *control, const struct iris_post_id *id,
                 const struct iris_part parts[2], int expected);

    /* Whether that has been posted: acquire. */
    int (*posted)(struct iris_control *control, const struct iris_post_id *id);

    /* Copies up to `bytes` of it, from byte `at` on; returns how long all of it
     * is, 0 if it has not been posted. */
    size_t (*collect)(struct iris_control *control,
                      const struct iris_post_id *id, size_t at, void *to,
                      size_t bytes);

    /* Sleeps until something may have been posted at the place, `ns` at most.
     * `done` is asked once more when a post could no longer be missed. */
    void (*wait)(struct iris_control *control, int place, int64_t ns,
                 int (*done)(void *arg), void *arg);

    /* Marks a place as failed, once for all its members: the first mark stays,
     * and is returned; 0 only asks. Wakes who waits there. */
    unsigned (*fail)(struct iris_control *control, int place, unsigned mark);

    /* Makes the place ready for a new group if nobody holds it: *free_p. Then
     * each member holds it until it releases it. IRIS_ERR_NO_MEMORY */
    iris_status_t (*place_prepare)(struct iris_control *control, int place,
                                   int *free_p);
    void (*place_hold)(struct iris_control *control, int place);
    void (*place_release)(struct iris_control *control, int place);

    /* 0 once the process of `rank` has ended; 1: as far as is known it has
     * not. Thread-safe. */
    int (*alive)(struct iris_control *control, int rank);

    /* Whether `rank` is one of another process. */
    int (*is_remote)(struct iris_control *control, int rank);

    /* "rank 3 (pid 1234)", for messages. */
    void (*name)(struct iris_control *control, int rank,
                 char name[IRIS_RANK_NAME_BYTES]);

    /* Sends a message to a rank of another process, with a descriptor unless
     * fd is -1. 0, or the errno that says why not; EAGAIN and the like: try
     * again. */
    int (*send)(struct iris_control *control, int rank, const void *data,
                size_t bytes, int fd);

    /* Takes one message of a peer within `timeout_ms`. IRIS_ERR_SYSTEM: no
     * message can come any more. IRIS_ERR_LIMIT: a descriptor was lost. */
    iris_status_t (*receive)(struct iris_control *control, void *data,
                             size_t bytes, int timeout_ms,
                             struct iris_sender *sender_p);

    void (*close)(struct iris_control *control);
};

struct iris_record;
struct iris_records;

/* Implementations embed it first. */
struct iris_control {
    const struct iris_control_ops *ops;
    const struct iris_log *log;
    int rank;
    int num_ranks;
    int64_t timeout_ms;
    int64_t warn_ms; /* a wait that takes longer says so; 0: none does */
    atomic_int lost; /* the first rank found lost, + 1 */
    atomic_int *interrupted; /* not 0: nothing waits any more; outlives this.
                                 * NULL: nobody interrupts */
    int serves; /* ranks of other processes reach each other through this one,
                 * which has to stay until they have let go */
    const char *called;           /* the name in `own`, as its type has it */
    struct iris_shown own;        /* what this rank has published */
    struct iris_record *record;   /* this rank's flight record; NULL: none */
    struct iris_records *records; /* those of all ranks of this machine; the
                                   * control plane's. NULL: none */
};

/* 1 if the rank is one of another process. NULL is fine: 0. */
int iris_i_control_is_remote(struct iris_control *control, int rank);

/* One more thread waits for a stream (1), or one less (-1). NULL is fine. */
void iris_i_control_wait_stream(struct iris_control *control, int change);

/* For implementations: a new id of a control plane, by which ranks can tell
 * which of their contexts is which of a peer's; and this rank's record. */
uint64_t iris_i_control_next_id(void);
void iris_i_control_open_record(struct iris_control *control,
                                struct iris_records *records);

/* NULL is fine. */
void iris_i_control_close(struct iris_control *control);

#endif /* IRIS_SRC_CONTROL_CONTROL_H */
