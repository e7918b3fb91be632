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

#include "base/log.h"

/* Groups that can live at once, the group of all ranks included: each has a
 * place where its members post. */
#define IRIS_PLACES 64

/* What one rank can hand to the others in one post. */
#define IRIS_PAYLOAD_BYTES 3840

/* Fields of a collective call that its members compare, at most. */
#define IRIS_CALL_FIELDS 8

/* "iris_malloc(bytes, alignment, offset)" */
#define IRIS_SIGNATURE_BYTES 160
#define IRIS_CALL_NAME_WORDS 4

/* Why a rank leaves: 191 characters at most. */
#define IRIS_REASON_WORDS 24
#define IRIS_REASON_BYTES (8 * IRIS_REASON_WORDS)

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

/* What one rank shows of itself; written by it alone. */
struct iris_board {
    _Alignas(64) atomic_uint state;
    atomic_uint busy; /* in the collective call named below; 0: since then */
    atomic_uint interrupted; /* LEFT because of iris_interrupt() */
    atomic_uint blames;      /* LEFT because of this rank + 1; 0: of itself */
    atomic_uint waiting;     /* threads that wait for a stream */
    atomic_ullong calls;     /* collective calls it has begun */
    atomic_ullong id; /* rank 0's: of this control plane, its alone on the
                       * machine */
    atomic_ullong elsewhere; /* the id of another context that its thread is
                              * finalizing, before this one; 0: of none */
    _Atomic uint64_t name[IRIS_CALL_NAME_WORDS]; /* text of the last one */
    _Atomic uint64_t reason[IRIS_REASON_WORDS];  /* why it leaves; empty: it
                                                  * has not said */
    _Atomic uint64_t waits; /* for whom, in which agreement (circle.c) */
};

/* What one member posts for one agreement. A member can only post agreement
 * k+2 once all have posted k+1, so all have read k. */
struct iris_post {
    _Alignas(64) atomic_ullong seq; /* agreement this is for; stored last */
    int32_t status;
    uint32_t payload_bytes;
    uint64_t fields[IRIS_CALL_FIELDS];
    char signature[IRIS_SIGNATURE_BYTES];
    unsigned char payload[IRIS_PAYLOAD_BYTES];
};

_Static_assert(sizeof(struct iris_post) == 4096, "a post is a page");

struct iris_control;

/* Of a message that was taken. */
struct iris_sender {
    int rank; /* -1: there was no message */
    int fd;   /* its descriptor, the caller's, or -1 */
};

/* All slots are filled. What is in a post or on a board of another rank may be
 * anything: trust no index and no length in it. */
struct iris_control_ops {
    /* What a rank shows. Never NULL; another rank's may lag behind. */
    struct iris_board *(*board)(struct iris_control *control, int rank);

    /* This rank's post of the next agreement at a place, to be filled in, and
     * its publication, release of all this rank wrote before. `expected`:
     * members of the place. */
    struct iris_post *(*draft)(struct iris_control *control, int place,
                               uint64_t seq);
    void (*post)(struct iris_control *control, int place, uint64_t seq,
                 int expected);

    /* What `rank` has posted for agreement `seq`, acquire; NULL: nothing yet.
     */
    const struct iris_post *(*peek)(struct iris_control *control, int place,
                                    int rank, uint64_t seq);

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

/* Implementations embed it first. */
struct iris_control {
    const struct iris_control_ops *ops;
    const struct iris_log *log;
    int rank;
    int num_ranks;
    int64_t timeout_ms;
    int64_t warn_ms; /* a wait that takes longer says so; 0: none does */
    atomic_int lost; /* the first rank found lost, + 1 */
    atomic_int *interrupted;    /* not 0: nothing waits any more; outlives this.
                                 * NULL: nobody interrupts */
    const int *pids;            /* each rank's process; owned */
    struct iris_record *record; /* this rank's flight record; NULL: none */
    int reports_fd; /* what reports read the records of all ranks from; the
                     * control plane's. -1: nothing */
    _Atomic uint64_t *reported; /* the rank that reports an incident, + 1 */
    _Atomic uint64_t *num_reports;
    _Atomic int64_t *last_report_ns;
};

/* 1 if the rank is one of another process. NULL is fine: 0. */
int iris_i_control_is_remote(const struct iris_control *control, int rank);

struct iris_rendezvous;
struct iris_endpoint;

/* The control plane over shared memory (control_shm.c), from what the
 * rendezvous gave: its reference to the segment goes to the control plane, as
 * does `endpoint` (NULL: nothing will be sent), on success. IRIS_ERR_LIMIT,
 * IRIS_ERR_PEER_LOST (one is gone already), IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_control_shm_open(const struct iris_log *log,
                                      struct iris_rendezvous *rendezvous,
                                      struct iris_endpoint *endpoint,
                                      struct iris_control **control_p);

/* NULL is fine. */
void iris_i_control_close(struct iris_control *control);

#endif /* IRIS_SRC_CONTROL_CONTROL_H */
