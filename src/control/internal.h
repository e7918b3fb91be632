/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/control: how ranks find, watch and agree with
 * each other; it carries handles of heaps without reading them.
 */
#ifndef IRIS_SRC_CONTROL_INTERNAL_H
#define IRIS_SRC_CONTROL_INTERNAL_H

#include "base/link.h"
#include "control/control.h"
#include "control/records.h"

#include <pthread.h>

/* ---- table.c: places ---- */

/* A place: the memory in which the members of one group post, private to this
 * process or shared. */

/* The post of one member for one agreement. */
struct iris_post {
    _Alignas(64) atomic_ullong seq; /* number of the agreement; stored last */
    uint32_t bytes;
    uint32_t expected; /* members of the place */
    unsigned char data[IRIS_POST_BYTES];
};

_Static_assert(sizeof(struct iris_post) == 4096, "a post is a page");

struct iris_place {
    _Alignas(4096) atomic_uint wakes; /* futex: bumped when all have posted */
    atomic_uint sleepers;             /* threads asleep on it */
    atomic_ullong num_posts;          /* total so far; an agreement adds
                                       * `expected` */
    atomic_uint failed;               /* set once; 0: not failed */
    atomic_uint generation;           /* counts the groups that it was for */
    struct iris_post posts[];         /* [2 * rank + seq % 2] */
};

/* The calls of iris_i_control_*() for one place. _post: 1 if all `expected` ranks
 * have now posted. _collect: copies up to `bytes` of the post, from byte `at` on;
 * returns the post's length, or 0 if it has not arrived. _wait: sleeps until a
 * post may have arrived, at most `ns`; calls `done` once more at the point from
 * which a new post ends the sleep. */
int iris_i_place_post(struct iris_place *place, const struct iris_post_id *id,
                      const struct iris_part parts[2], int expected);
int iris_i_place_posted(const struct iris_place *place,
                        const struct iris_post_id *id);
size_t iris_i_place_collect(const struct iris_place *place,
                            const struct iris_post_id *id, size_t at, void *to,
                            size_t bytes);
void iris_i_place_wait(struct iris_place *place, int64_t ns,
                       int (*done)(void *arg), void *arg);
unsigned iris_i_place_fail(struct iris_place *place, unsigned mark);
/* Prepares the place for a new group; forgets a rank's posts there. */
void iris_i_place_reset(struct iris_place *place);
void iris_i_place_clear(struct iris_place *place, int rank);

/* A post of a rank, for the hub: the agreement's number in the slot of this
 * parity; 0: none. */
struct iris_post *iris_i_place_slot(struct iris_place *place, int rank,
                                    uint64_t seq);

/* Wakes the ranks that sleep there. */
void iris_i_place_wake(struct iris_place *place);

/* ---- table.c: memory ---- */

/* The control segment: a small piece of shared memory with the records of a
 * node's ranks, followed by the places where they post. */

/* Makes the segment for a job of num_ranks, with one reference.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_segment_create(int num_ranks,
                                    struct iris_table **segment_p);

/* A rank's reference to the next table of a job that shrinks to num_ranks; the
 * memory is the same on all ranks. IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT */
iris_status_t iris_i_segment_follow(const struct iris_table *old, int num_ranks,
                                    struct iris_table **segment_p);

/* Makes it the table that readers find. For its rank 0. Then, once every rank
 * uses it: gives back the memory of the older tables. */
void iris_i_segment_show(const struct iris_table *segment);
void iris_i_segment_drop_old(const struct iris_table *segment);

/* Maps a segment of another process; takes over `fd` on success. */
iris_status_t iris_i_segment_attach(int fd, int num_ranks,
                                    struct iris_table **segment_p);

void iris_i_segment_retain(struct iris_table *segment, int refs);

/* Drops a reference; the last one unmaps. `segment` may be NULL. */
void iris_i_segment_release(struct iris_table *segment);

struct iris_place *iris_i_segment_place(struct iris_table *segment, int place);

/* Commits memory to a place; the first place has it from the start.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_segment_commit_place(struct iris_table *segment,
                                          int place);

/* ---- table.c: boards ---- */

/* A board: the published state of one rank (struct iris_shown), in memory that
 * others read while the rank writes. */

struct iris_board {
    _Alignas(64) atomic_uint state;
    atomic_uint busy;
    atomic_uint interrupted;
    atomic_uint blames;
    atomic_uint streams;
    atomic_ullong calls;
    atomic_ullong id;
    atomic_ullong elsewhere;
    _Atomic uint64_t name[IRIS_CALL_NAME_WORDS];
    _Atomic uint64_t reason[IRIS_REASON_WORDS];
    _Atomic uint64_t waits;
    _Atomic uint64_t holds;
    atomic_uint ended;
    atomic_uint cut_by;
    /* For a job that shrinks (shrink.c): */
    atomic_uint quiet; /* 1: it has left, and no work of it runs */
    atomic_uint came;
    uint64_t proposed[IRIS_SURVIVOR_WORDS]; /* written once */
    /* Changes that the hub has not sent, if it is a rank of this node. */
    atomic_uint new_parts;
    _Atomic uint64_t new_posts; /* a bit for each place */
};

/* The offset of a rank's board. */
size_t iris_i_board_at(int rank);

/* Writes parts (enum iris_show) of the rank's state. The state itself is stored
 * last, as a release of the parts that belong to it. The waits are stored with
 * release, too. */
void iris_i_board_write(struct iris_board *board, unsigned parts,
                        const struct iris_shown *shown);

/* Copies parts of it. Each number is read atomically. */
void iris_i_board_read(const struct iris_board *board, unsigned parts,
                       struct iris_shown *shown_p);

/* ---- control.c ---- */

/* A rank of the job, seen from this one. */
struct iris_peer {
    int pid;
    int is_here;          /* 1: it is on this machine */
    int is_far;           /* 1: it is on another node */
    int leader;           /* the lowest rank of its node */
    int is_remote;        /* 1: it is in another process */
    int pidfd;            /* its process on this machine; -1: not watched */
    uint64_t start_ticks; /* 0: a pidfd watches it */
    char host[32];        /* empty: the job has one host */
    char name[IRIS_ENDPOINT_NAME_BYTES];
};

/* 0 after the process of a rank of this machine has ended. */
int iris_i_control_has_process(const struct iris_control *control, int rank);

/* A rank of this machine whose process is stopped by a signal or a debugger, for
 * messages; -1: none. */
int iris_i_control_find_stopped(const struct iris_control *control);

/* ---- peers.c ---- */

/* A rank of this machine that is stopped, or one that does not answer from another
 * node, with the words that follow its name; -1: none. */
int iris_i_peers_find_stopped(const struct iris_control *control,
                              const char **why_p);

/* ---- rows.c: messages ---- */

/* The messages between hubs: a head and a body. They come
 * from other processes, perhaps on other machines, so everything in them is
 * checked before it is used. */

enum iris_message_type {
    IRIS_MESSAGE_SHOWN = 1, /* value: parts; body: a struct iris_shown, up to
                             * the texts that are among the parts */
    IRIS_MESSAGE_POST,      /* value: number of the agreement */
    IRIS_MESSAGE_FAIL,      /* value: mark */
    IRIS_MESSAGE_ROW,       /* value: an offset; body: those bytes of the
                             * flight record */
    IRIS_MESSAGE_ROW_END,
    IRIS_MESSAGE_TYPES
};

struct iris_message_head {
    uint32_t type;
    uint32_t bytes;   /* of the body */
    uint16_t members; /* POST: number of members of its place */
    uint16_t from;    /* a rank of the sending hub's node */
    uint32_t place;
    uint64_t value;
};

_Static_assert(sizeof(struct iris_message_head) == 24, "no holes");

/* The end of a row. */
struct iris_message_row_end {
    int64_t now_ns;
    uint64_t bytes; /* sum of its parts; 0: the row has not changed */
};

#define IRIS_MESSAGE_MOST (sizeof(struct iris_message_head) + IRIS_POST_BYTES)

/* The head of a message. */
struct iris_message_head iris_i_message_head(enum iris_message_type type,
                                             int from, int place,
                                             uint64_t value, size_t bytes);

/* The length of the message at the begin of the received bytes, and its head; 0:
 * there is no message. */
size_t iris_i_message_take(const unsigned char *data, size_t bytes,
                           int num_ranks, struct iris_message_head *head_p);

/* ---- hub.c ---- */

/* The most bytes that one connection keeps for the other side. */
#define IRIS_LINK_MOST ((size_t)64 << 20)

/* The last post of a rank at a place that was sent, and the generation of the
 * place, which restarts the numbers. */
struct iris_hub_sent {
    uint64_t seq;
    unsigned generation;
};

/* The hub of this node (hub.c has its protocol). */
struct iris_hub {
    const struct iris_log *log;
    int rank; /* this one, which leads its node */
    int num_ranks;
    struct iris_control *control;
    struct iris_table *table;
    struct iris_links links; /* to the other nodes' leaders */
    int wake; /* eventfd: there are pending bytes, or the thread has to end */
    atomic_int num_here;  /* leaders that have connected, so far */
    iris_status_t failed; /* IRIS_OK, or the first loss of a link, if it is no
                           * rank's death */
    int failed_rank;      /* the leader behind it */
    char why[IRIS_REASON_BYTES];
    atomic_int closing;
    atomic_int drained;         /* nothing more will be put into the links */
    int64_t close_by_ns;        /* set before `closing` */
    int64_t next_turn_ns;       /* time of the links' next turn */
    int64_t next_row_ns;        /* time of the next copy of all records */
    uint64_t committed;         /* a bit for each place that may be written */
    struct iris_hub_sent *sent; /* by rank and place */
    uint64_t *hashes;           /* by rank: its last row's */
    uint64_t *rows;             /* by rank: rows that have come */
    int has_dropped;            /* a piece of the row that is being sent */
    pthread_mutex_t lock;       /* the links */
    pthread_t sender;
    pthread_t receiver;
    struct pollfd *polled;
};

/* Opens the hub of a leader, connects it to the other leaders, and starts its
 * threads. Takes over the parts of a hub on success. IRIS_ERR_NO_MEMORY,
 * IRIS_ERR_LIMIT, IRIS_ERR_PEER_LOST, IRIS_ERR_BOOTSTRAP (refused),
 * IRIS_ERR_TIMEOUT */
iris_status_t iris_i_hub_open(struct iris_control *control,
                              struct iris_rendezvous *rendezvous,
                              struct iris_control_parts *parts,
                              struct iris_hub **hub_p);

/* Waits until the other ranks of this node have ended, at most for `stay_ms`;
 * then sends the rest, and closes. */
void iris_i_hub_close(struct iris_hub *hub, int stay_ms);

/* Applies a message of the link's other side. 0: it makes no sense. */
int iris_i_hub_apply(struct iris_hub *hub, int leader,
                     const struct iris_message_head *head,
                     const unsigned char *body);

/* Frees the memory of a hub that is not running. */
iris_status_t iris_i_hub_make(struct iris_hub *hub);
void iris_i_hub_free(struct iris_hub *hub);

/* ---- rows.c ---- */

/* Sends the record of a rank of this node, or only its end if the record has the
 * same hash as before. Sends nothing if the rank has no record. */
void iris_i_row_send(const struct iris_table *records, int rank,
                     uint64_t *hash_p,
                     void (*put_piece)(void *arg,
                                       const struct iris_message_head *head,
                                       const void *body),
                     void *arg);

/* Writes a piece of a row of a far rank to this node's table. Ignores a malformed
 * one. *count: the rows of this rank that have come. */
void iris_i_row_take(const struct iris_table *records,
                     const struct iris_message_head *head,
                     const unsigned char *body, uint64_t *count);

/* Nothing more will come of that rank, which had this process. */
void iris_i_row_end(const struct iris_table *records, int rank, int pid,
                    const char *host);

/* ---- rendezvous.c ---- */

/* Rank 0: listens at *root_p. If it is no address of an interface of this host
 * (containers, names of the loopback), listens at its port on all of them. If
 * the port is 0, the system chooses it, and *root_p gets it. The caller closes
 * *sock_p. IRIS_ERR_BOOTSTRAP: the port is taken. */
iris_status_t iris_i_rendezvous_far_listen(struct iris_address *root_p,
                                           int *sock_p);

/* ---- agree.c ---- */

/* This rank waits for `absent` in the members' current agreement; its board
 * shows that from now on. IRIS_ERR_MISMATCH: that rank waits for this one,
 * directly or through others. No group in the cycle can go on, and all their
 * members are told. */
iris_status_t iris_i_cycle_check(const struct iris_members *members,
                                 const char *call, int absent);

#endif /* IRIS_SRC_CONTROL_INTERNAL_H */
