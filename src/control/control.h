/* SPDX-License-Identifier: MIT
 *
 * The control plane of one rank: it posts calls, reads the posts of others,
 * watches peers, and sends descriptors. It is an interface, because ranks
 * without shared memory need another implementation than control_shm.c.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_H
#define IRIS_SRC_CONTROL_CONTROL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>

#include "base/error.h"

/* The most groups that can exist at once, including the group of all ranks.
 * Each has a place where its members post. */
#define IRIS_PLACES 64

/* The most bytes that one rank can pass to the others in one post. */
#define IRIS_PAYLOAD_BYTES 3840

/* The same, including the description of the call (agree.c). */
#define IRIS_POST_BYTES 4080

/* Fields of a collective call that its members compare, at most. */
#define IRIS_CALL_FIELDS 8

/* "iris_malloc(bytes, alignment, offset)" */
#define IRIS_SIGNATURE_BYTES 160
#define IRIS_CALL_NAME_WORDS 4

/* A rank's reason for leaving: at most 191 characters. */
#define IRIS_REASON_WORDS 24
#define IRIS_REASON_BYTES (8 * IRIS_REASON_WORDS)

#define IRIS_RANK_NAME_BYTES 64

/* The state of a rank, as its peers see it. Only the rank itself changes it.
 *
 *   JOINING    from the rendezvous until init is complete
 *   RUNNING    peers may wait for it
 *   FINALIZED  left after an agreement; its last posts stay valid
 *   LEFT       left without: ranks that wait for it get IRIS_ERR_PEER_LOST */
enum iris_rank_state {
    IRIS_RANK_JOINING,
    IRIS_RANK_RUNNING,
    IRIS_RANK_FINALIZED,
    IRIS_RANK_LEFT,
};

/* The published state of one rank, as a copy. Only the rank itself changes the
 * original. */
struct iris_shown {
    unsigned state;           /* enum iris_rank_state */
    unsigned interrupted;     /* LEFT because of iris_interrupt() */
    unsigned blames;          /* LEFT because of the loss of this rank + 1;
                               * 0: for its own reasons */
    unsigned busy;            /* 1: in the collective call named below */
    unsigned streams;         /* threads that wait for a stream */
    unsigned long long calls; /* collective calls it has begun */
    char name[8 * IRIS_CALL_NAME_WORDS + 1]; /* name of the last one */
    uint64_t waits;        /* the awaited rank and agreement (circle.c) */
    unsigned long long id; /* id of rank 0's control plane, unique on the
                            * machine */
    unsigned long long elsewhere; /* the id of another context that its thread
                                   * is finalizing before this one; 0: none */
    char reason[IRIS_REASON_BYTES + 1]; /* its reason for leaving; empty:
                                         * none given */
};

/* Groups of members that are published and read together. */
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

/* Identifies a post of one rank: place and agreement. A member can only post
 * agreement k+2 after all have posted k+1, so all have read k. */
struct iris_post_id {
    int place;
    int rank;
    uint64_t seq;
};

/* A piece of a post. */
struct iris_part {
    const void *data;
    size_t bytes;
};

struct iris_control;

/* The sender of a received message. */
struct iris_sender {
    int rank; /* -1: there was no message */
    int fd;   /* its descriptor, which the caller closes, or -1 */
};

/* All slots are filled. Data of other ranks are copies and may contain
 * anything: check every index and length in them. Unless stated otherwise, one
 * thread at a time calls. */
struct iris_control_ops {
    /* Publishes parts of `shown` (enum iris_show) as this rank's. Ordered: a
     * rank that reads a publication in one call finds all earlier ones in its
     * next call. */
    void (*publish)(struct iris_control *control, unsigned parts,
                    const struct iris_shown *shown);

    /* One more thread of this rank (1), or one fewer (-1), waits for a stream.
     * Thread-safe. */
    void (*wait_stream)(struct iris_control *control, int change);

    /* Copies these parts of a rank's published state, which may be out of date;
     * leaves the other parts alone. Thread-safe. */
    void (*read)(struct iris_control *control, int rank, unsigned parts,
                 struct iris_shown *shown_p);

    /* Posts two parts, together at most IRIS_POST_BYTES, for agreement `seq` at
     * a place of `expected` members. A release of all earlier writes of this
     * rank. */
    void (*post)(struct iris_control *control, const struct iris_post_id *id,
                 const struct iris_part parts[2], int expected);

    /* Whether that post has arrived: acquire. */
    int (*posted)(struct iris_control *control, const struct iris_post_id *id);

    /* Copies up to `bytes` of the post, from byte `at` on. Returns the post's
     * length; 0 if it has not arrived. */
    size_t (*collect)(struct iris_control *control,
                      const struct iris_post_id *id, size_t at, void *to,
                      size_t bytes);

    /* Sleeps until a post may have arrived at the place, at most `ns`. Calls
     * `done` once more at the point from which a new post ends the sleep. */
    void (*wait)(struct iris_control *control, int place, int64_t ns,
                 int (*done)(void *arg), void *arg);

    /* Marks a place as failed, once for all its members. The first mark stays,
     * and is returned; 0 only queries. Wakes the ranks that sleep there. */
    unsigned (*fail)(struct iris_control *control, int place, unsigned mark);

    /* Prepares the place for a new group if no member holds it: *free_p. Each
     * member then holds it until it releases it. IRIS_ERR_NO_MEMORY */
    iris_status_t (*place_prepare)(struct iris_control *control, int place,
                                   int *free_p);
    void (*place_hold)(struct iris_control *control, int place);
    void (*place_release)(struct iris_control *control, int place);

    /* 0 after the process of `rank` has ended; 1 as long as nothing is known of
     * that. Thread-safe. */
    int (*alive)(struct iris_control *control, int rank);

    /* Whether `rank` is in another process. */
    int (*is_remote)(struct iris_control *control, int rank);

    /* "rank 3 (pid 1234)", for messages. */
    void (*name)(struct iris_control *control, int rank,
                 char name[IRIS_RANK_NAME_BYTES]);

    /* Sends a message to a rank of another process, with a descriptor unless fd
     * is -1. Returns 0 or an errno; after EAGAIN and similar ones, try
     * again. */
    int (*send)(struct iris_control *control, int rank, const void *data,
                size_t bytes, int fd);

    /* Receives one message of a peer within `timeout_ms`. IRIS_ERR_SYSTEM: no
     * message can arrive any more. IRIS_ERR_LIMIT: a descriptor was lost. */
    iris_status_t (*receive)(struct iris_control *control, void *data,
                             size_t bytes, int timeout_ms,
                             struct iris_sender *sender_p);

    void (*close)(struct iris_control *control);
};

struct iris_mail;
struct iris_record;
struct iris_records;

/* The base of all implementations, and their first member. */
struct iris_control {
    const struct iris_control_ops *ops;
    const struct iris_log *log;
    int rank;
    int num_ranks;
    int64_t timeout_ms;
    int64_t by_ns;           /* the start or the end of the context has to be
                              * over by then; 0: it does neither */
    int64_t warn_ms;         /* a longer wait logs a warning; 0: never */
    atomic_int lost;         /* the first rank found lost, + 1 */
    atomic_int cut;          /* a rank that this one cannot reach, + 1 */
    char cut_why[128];       /* set before that */
    atomic_int *interrupted; /* Not 0: all waits end. Outlives this struct.
                              * NULL: there are no interrupts */
    int serves; /* ranks of other processes reach each other through this
                 * one, so it has to stay until they have closed */
    const char *called;           /* the name in `own`, a string of the
                                   * call's type */
    struct iris_shown own;        /* the state that this rank has published */
    const struct iris_mail *mail; /* the processes that the mail watches */
    struct iris_record *record;   /* this rank's flight record; NULL: none */
    struct iris_records *records; /* the records of all ranks of this
                                   * machine, owned by the control plane;
                                   * NULL: none */
};

/* 1 if the rank is in another process. `control` may be NULL: 0. */
int iris_i_control_is_remote(struct iris_control *control, int rank);

/* One more thread (1), or one fewer (-1), waits for a stream. `control` may be
 * NULL. */
void iris_i_control_wait_stream(struct iris_control *control, int change);

/* For implementations: a new id of a control plane, by which ranks match their
 * own contexts with a peer's; and this rank's record. */
uint64_t iris_i_control_next_id(void);
void iris_i_control_open_record(struct iris_control *control,
                                struct iris_records *records);

/* `control` may be NULL. */
void iris_i_control_close(struct iris_control *control);

#endif /* IRIS_SRC_CONTROL_CONTROL_H */
