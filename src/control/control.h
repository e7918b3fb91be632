/* SPDX-License-Identifier: MIT
 *
 * The interface of src/control: how ranks find, watch and agree with each
 * other; it carries handles of heaps without reading them.
 */
#ifndef IRIS_SRC_CONTROL_CONTROL_H
#define IRIS_SRC_CONTROL_CONTROL_H

#include <iris/status.h>

#include "backend/backend.h"
#include "base/base.h"
#include "base/link.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- control.c ---- */

/* The control plane of one rank: it posts calls, reads the posts of others,
 * watches peers, and sends descriptors. */

/* The most ranks of a job: one payload of the control segment can name them
 * all. */
#define IRIS_RANKS_MAX 1000

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
    uint64_t holds; /* a bit for each place of a group that it holds */
    unsigned ended; /* 1: it shows nothing more */
    unsigned
        cut_by;     /* ended because of the loss of this rank + 1, which led its
                      * node; 0: by itself */
    uint64_t waits; /* the awaited rank and agreement (agree.c) */
    unsigned long long id;        /* id of rank 0's control plane, unique on the
                            * machine */
    unsigned long long elsewhere; /* the id of another context that its thread
                                   * is finalizing before this one; 0: none */
    /* The texts come last, since hubs send them only if they are new. */
    char name[8 * IRIS_CALL_NAME_WORDS + 1]; /* the last call's name */
    char reason[IRIS_REASON_BYTES + 1];      /* its reason for leaving; empty:
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
    IRIS_SHOW_HOLDS = 1 << 9,
    IRIS_SHOW_ENDED = 1 << 10, /* ended, cut_by */
    IRIS_SHOW_ALL = (1 << 11) - 1,
};

/* Parts to which other ranks react. The rest only informs people. */
#define IRIS_SHOW_URGENT                                                      \
    (IRIS_SHOW_STATE | IRIS_SHOW_WAITS | IRIS_SHOW_ID | IRIS_SHOW_ELSEWHERE | \
     IRIS_SHOW_REASON | IRIS_SHOW_HOLDS | IRIS_SHOW_ENDED)

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

/* A bit for each rank that goes on after a loss. */
#define IRIS_SURVIVOR_WORDS ((IRIS_RANKS_MAX + 63) / 64)

static inline int iris_i_has_survived(const uint64_t *survivors, int rank)
{
    return (int)(survivors[rank / 64] >> rank % 64 & 1);
}

struct iris_control;

/* The sender of a received message. */
struct iris_sender {
    int rank; /* -1: there was no message */
    int fd;   /* its descriptor, which the caller closes, or -1 */
};

struct iris_peer;
struct iris_hub;
struct iris_record;
struct iris_table;

struct iris_control {
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
    const char *called;             /* the name in `own`, a string of the
                                   * call's type */
    struct iris_shown own;          /* the state that this rank has published */
    struct iris_endpoint *endpoint; /* NULL: no messages are sent */
    struct iris_peer *peers;        /* the ranks and their processes */
    atomic_uint posts; /* of this rank. The thread that serves another rank's
                        * request loads it (acquire), as it may follow a post */
    int num_nodes;
    struct iris_record *record; /* this rank's flight record; NULL: none */
    struct iris_table *records; /* the table of this node */
    struct iris_hub *hub;       /* of this node; NULL: another rank has it, or
                                   * the job has one node */
};

/* Data of other ranks are copies and may contain anything: check every index and
 * length in them. Unless stated otherwise, one thread at a time calls. */

/* Publishes parts of `shown` (enum iris_show) as this rank's. Ordered: a rank
 * that reads a publication in one call finds all earlier ones in its next
 * call. */
void iris_i_control_publish(struct iris_control *control, unsigned parts,
                            const struct iris_shown *shown);

/* One more thread of this rank (1), or one fewer (-1), waits for a stream.
 * `control` may be NULL. Thread-safe. */
void iris_i_control_wait_stream(struct iris_control *control, int change);

/* Copies these parts of a rank's published state, which may be out of date;
 * leaves the other parts alone. Thread-safe. */
void iris_i_control_read(struct iris_control *control, int rank, unsigned parts,
                         struct iris_shown *shown_p);

/* Posts two parts, together at most IRIS_POST_BYTES, for agreement `seq` at a
 * place of `expected` members. A release of all earlier writes of this rank. */
void iris_i_control_post(struct iris_control *control,
                         const struct iris_post_id *id,
                         const struct iris_part parts[2], int expected);

/* Whether that post has arrived: acquire. */
int iris_i_control_posted(struct iris_control *control,
                          const struct iris_post_id *id);

/* Marks a place as failed, once for all its members. The first mark stays, and
 * is returned; 0 only queries. Wakes the ranks that sleep there. */
unsigned iris_i_control_fail(struct iris_control *control, int place,
                             unsigned mark);

/* Prepares the place for a new group if no member holds it: *free_p. Each member
 * then holds it until it releases it. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_control_place_prepare(struct iris_control *control,
                                           int place, int *free_p);
iris_status_t iris_i_control_place_hold(struct iris_control *control, int place,
                                        const int *ranks, int count);
void iris_i_control_place_release(struct iris_control *control, int place);

/* 0 after the process of `rank` has ended; 1 as long as nothing is known of
 * that. Thread-safe. */
int iris_i_control_alive(struct iris_control *control, int rank);

/* The rank that led a node, and with whose death `rank`, which is alive() no
 * more, was cut off; -1: `rank` ended by itself. */
int iris_i_control_find_cut(struct iris_control *control, int rank);

/* 1 if the rank is in another process. `control` may be NULL: 0. */
int iris_i_control_is_remote(struct iris_control *control, int rank);

/* "rank 3 (pid 1234)", for messages. */
void iris_i_control_name(const struct iris_control *control, int rank,
                         char name[IRIS_RANK_NAME_BYTES]);

/* Sends a message to a rank of another process, with a descriptor unless fd is
 * -1. Returns 0 or an errno; after EAGAIN and similar ones, try again. */
int iris_i_control_send(struct iris_control *control, int rank,
                        const void *data, size_t bytes, int fd);

/* Receives one message of a peer within `timeout_ms`. IRIS_ERR_SYSTEM: no
 * message can arrive any more. IRIS_ERR_LIMIT: a descriptor was lost. */
iris_status_t iris_i_control_receive(struct iris_control *control, void *data,
                                     size_t bytes, int timeout_ms,
                                     struct iris_sender *sender_p);

/* `control` may be NULL. */
void iris_i_control_close(struct iris_control *control);

/* ---- shrink.c ---- */

/* Ends all waits of all ranks of this table with IRIS_ERR_REVOKED. Any
 * thread. */
void iris_i_control_revoke(struct iris_control *control);

/* This rank has left, and no work of it is running any more. `control` may be
 * NULL. */
void iris_i_control_show_quiet(struct iris_control *control);

/* Waits until every rank has come here or is gone. All ranks that come get the
 * same survivors, this rank among them, or all fail. From its call on, no work
 * of this rank runs.
 *
 * IRIS_ERR_TIMEOUT, IRIS_ERR_INTERRUPTED, or the status with which another rank
 * gave up */
iris_status_t
iris_i_control_agree_on_survivors(struct iris_control *control,
                                  uint64_t survivors[IRIS_SURVIVOR_WORDS]);

/* Goes on with the survivors, renumbered in their order, in a new table. The
 * control plane is the same, but all groups are gone, and the caller changes the
 * log's numbers. IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT: nothing has changed */
iris_status_t iris_i_control_renew(struct iris_control *control,
                                   const uint64_t *survivors);

/* All ranks have renewed theirs. */
void iris_i_control_drop_old(struct iris_control *control);

/* ---- arrivals.c ---- */

/* The claims of both sides of a connection between nodes or hosts. */
struct iris_rank_claims {
    int32_t rank;
    int32_t num_ranks;
    uint64_t host; /* iris_i_host_id() */
    /* Of a link: */
    uint64_t number;   /* the connector's tries so far */
    uint64_t received; /* bytes of the session */
};

/* One connection. */
struct iris_arrival {
    struct iris_arrival *next; /* the one that came before it */
    int sock;
    int is_far;
    pid_t pid;                      /* from the system; 0: on another host */
    struct iris_rank_claims claims; /* proven; of another host */
    struct iris_socket_message message;
    unsigned char data[]; /* of the message */
};

struct iris_arrivals {
    /* Readable when there is something to take. Without a free descriptor it is
     * the listener, so that ranks can still be told the reason. */
    int poll;
    int listener; /* -1: not open */
    int has_gate;
    size_t bytes; /* size of each first message */
    int most;     /* connections at once; the oldest is dropped */
    int count;
    unsigned num_failed; /* the gate's number that was reported last */
    struct iris_arrival *last;
    struct iris_gate gate;
};

/* Opens it for a local listener and, if far_listener is not -1, for a gate with
 * this key. The caller keeps the listeners. IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_arrivals_open(struct iris_arrivals *arrivals, int listener,
                                   int far_listener,
                                   const struct iris_secret *key, size_t bytes,
                                   int most);

/* Closes it, and all connections that were not taken. Does nothing if it is not
 * open. */
void iris_i_arrivals_close(struct iris_arrivals *arrivals);

/* Takes a connection whose first message has come; never waits. The caller owns
 * its socket and its descriptor, and frees *arrival_p, which is NULL if no
 * connection has sent its message.
 * - IRIS_OK
 * - IRIS_ERR_LIMIT with a connection: its message came without its descriptor
 * - IRIS_ERR_BOOTSTRAP with a connection: its message has another size
 * - IRIS_ERR_LIMIT without one: no descriptor to accept; the connection waits
 * - IRIS_ERR_BOOTSTRAP without one: a connection was turned away; the message has the
 *   reason
 * - IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_arrivals_take(struct iris_arrivals *arrivals,
                                   struct iris_arrival **arrival_p);

/* ---- bootstrap.c ---- */

/* How ranks meet: this rank's number, the number of ranks, the job's name, and
 * a secret that only the job's ranks know. The rendezvous (rendezvous.h) is then the same for
 * every launcher. */

#define IRIS_KEY_BYTES 80

struct iris_bootstrap {
    const char *how; /* "mpi", "env", "spawn": for messages */
    int rank;
    int num_ranks;
    int local_rank;           /* on this node; picks the device */
    char job[IRIS_KEY_BYTES]; /* the job's name, for messages */
    /* Names of local sockets and the keys of connections are derived from it
     * (iris_i_secret_name(), iris_i_rendezvous_key()). It never leaves the
     * process, except that MPI passes it. */
    struct iris_secret secret;
    int is_guessable;         /* the secret is only a hash of the job's name */
    struct iris_address root; /* address at which rank 0 meets ranks of other
                               * hosts; size 0: the job has one host */
    struct iris_address own;  /* this host's address, for connections from
                               * other hosts */
    int listener;             /* rank 0's listener at root; -1: not open */
    /* If a rank fails, its creator notes it here (rank + 1), so that the others
     * do not wait for it. NULL: nobody notes failures. */
    const atomic_int *failed;
};

/* IRIS_ERR_UNSUPPORTED if a job cannot have this number of ranks. */
iris_status_t iris_i_bootstrap_check(int num_ranks);

/* Finds the job as the settings say. "auto" takes the first that applies of
 * IRIS_RANK, MPI, another launcher's variables, and a job of one rank.
 * IRIS_ERR_BOOTSTRAP, IRIS_ERR_CONFIG, IRIS_ERR_UNSUPPORTED (built without MPI,
 * too many ranks) */
iris_status_t iris_i_bootstrap(const struct iris_settings *settings,
                               struct iris_bootstrap *bootstrap_p);

/* 1 if a launcher started this process as one rank of several. Then
 * iris_spawn() must not make ranks. */
int iris_i_bootstrap_launched(const struct iris_settings *settings);

/* A key that nobody can guess, for ranks that this process makes. */
iris_status_t iris_i_bootstrap_random_key(char key[IRIS_KEY_BYTES]);

/* Rank `rank` of num_ranks that this process makes; the secret is a hash of
 * `key`, and all other members are 0. */
void iris_i_bootstrap_thread(const char *key, int rank, int num_ranks,
                             struct iris_bootstrap *bootstrap_p);

/* Ranks identified by environment variables, ours or a launcher's. _applies:
 * whether they are set. */
int iris_i_bootstrap_env_applies(const struct iris_settings *settings);
iris_status_t iris_i_bootstrap_env(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p);

/* ---- control.c: endpoints ---- */

/* One rank's endpoint for messages with descriptors after the rendezvous: a
 * datagram socket with a name that the system chose. It trusts only the
 * sender's identity that the system gives. */

#define IRIS_ENDPOINT_NAME_BYTES 16

struct iris_endpoint {
    int sock;
    char name[IRIS_ENDPOINT_NAME_BYTES];
};

/* Makes this rank's endpoint, whose name the others need. The caller closes it.
 * IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY, IRIS_ERR_SYSTEM */
iris_status_t iris_i_endpoint_open(struct iris_endpoint **endpoint_p);

/* `endpoint` may be NULL. */
void iris_i_endpoint_close(struct iris_endpoint *endpoint);

/* ---- rendezvous.c ---- */

/* The most bytes of a UCX address. */
#define IRIS_FAR_NAME_BYTES 1024

/* A rank's data for the rendezvous. A rank whose own preparation failed comes
 * all the same, so that its peers learn the reason at once instead of waiting
 * for it. */
struct iris_hello {
    uint32_t magic;
    uint32_t version;
    int32_t rank;
    int32_t num_ranks;
    int32_t pid;
    int32_t status;         /* of its preparation; if not OK, `message` has the
                     * reason */
    uint64_t pid_namespace; /* set by iris_i_rendezvous_join() */
    uint64_t host; /* set by it, too: iris_i_host_id(); 0: the job has one
                    * host */
    int32_t part;  /* the part of its host that it simulates as a node */
    int32_t nodes; /* IRIS_NODES; set by it, too */
    int32_t end;   /* on rank 0: 1 + the errno that ended its connection */
    uint64_t heap_bytes;
    uint64_t heap_reserve; /* bytes that its heap may grow to */
    uint64_t heap_id;      /* a word on its heap */
    int32_t check;         /* IRIS_CHECK, as a number */
    int32_t control;       /* enum iris_control_kind */
    char transport[16];    /* IRIS_TRANSPORT; set by iris_i_rendezvous_join() */
    char host_name[32];    /* empty if host is 0 */
    struct iris_address control_address; /* its hub's */
    struct iris_address far_address;     /* for ranks of other nodes; size 0:
                                       * they cannot reach this rank */
    uint64_t far_token; /* unguessable: names it for packets by UCX */
    unsigned char far_name[IRIS_FAR_NAME_BYTES];
    unsigned char control_secret[32]; /* rank 0's random bytes, which
                                       * iris_i_rendezvous_key() takes */
    char backend[16];
    char endpoint[IRIS_ENDPOINT_NAME_BYTES]; /* name of its endpoint; empty:
                                              * none */
    char message[IRIS_MESSAGE_BYTES];        /* if OK: the reason why it uses no
                                       * GPU, or empty */
    struct iris_heap_handle handle; /* its descriptor travels beside it */
};

/* Whether two ranks are on the same host, on the same node (IRIS_NODES
 * simulates several on a host), or threads of the same process. */
static inline int iris_i_hello_same_host(const struct iris_hello *a,
                                         const struct iris_hello *b)
{
    return a->host == b->host;
}

static inline int iris_i_hello_same_node(const struct iris_hello *a,
                                         const struct iris_hello *b)
{
    return a->host == b->host && a->part == b->part;
}

static inline int iris_i_hello_same_process(const struct iris_hello *a,
                                            const struct iris_hello *b)
{
    return a->host == b->host && a->pid == b->pid;
}

/* One rank's view of the rendezvous: the hello of every rank, the control
 * segment, and the sockets. A handle's descriptor is open here. It is -1 if it
 * belongs to a thread of this process, which needs none. */
struct iris_rendezvous {
    const struct iris_bootstrap *bootstrap;
    const struct iris_settings *settings;
    int rank;
    int num_ranks;
    int num_expected; /* rank 0: processes that may come; more than num_ranks
                       * if some assume a larger job */
    struct iris_waiter waiter; /* for all its waits: one deadline, one
                                * warning */
    int64_t begin;
    int64_t deadline;
    int64_t warn_at;
    unsigned num_turned_away; /* rank 0: number of other users' connections */
    int sock;     /* rank 0: the listener; others: the connection to rank 0;
                   * -1: alone */
    int far_sock; /* rank 0: the listener for ranks of other hosts; -1 */
    int is_far;   /* others: rank 0 is on another host */
    int end;      /* others: 1 + the errno that ended `sock`, or 0 */
    int spare; /* rank 0: a reserved descriptor, to tell peers that no others are left */
    struct iris_arrivals arrivals; /* rank 0: connections without a hello */
    int *socks; /* rank 0: connections to the peers, or -1; others: NULL */
    iris_status_t announced; /* rank 0: whether it could tell every peer */
    char announced_message[IRIS_MESSAGE_BYTES];
    struct iris_hello *hellos;  /* magic 0: that rank has not come; NULL:
                                   * not received yet */
    int has_shared_hellos;      /* they belong to rank 0, a thread of this
                                   * process, which keeps them until all have
                                   * sent their final status */
    struct iris_table *segment; /* one reference, owned by the caller */
};

/* Acquires everything that the rendezvous needs, before anything else: a rank
 * that later runs out of a resource can still tell the others. `bootstrap`,
 * `settings` and `log` outlive the rendezvous. iris_i_rendezvous_join() must follow.
 * IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY, IRIS_ERR_BOOTSTRAP (key taken) */
iris_status_t iris_i_rendezvous_open(const struct iris_bootstrap *bootstrap,
                                     const struct iris_settings *settings,
                                     const struct iris_log *log,
                                     struct iris_rendezvous *rendezvous_p);

/* Joins the rendezvous. `hello` is this rank's; this closes its descriptor.
 * Blocks until all have come, one has failed or the deadline passes, and gives
 * every rank the same answer. On success iris_i_rendezvous_agree() must follow;
 * on failure the rendezvous is closed.
 *
 * IRIS_ERR_TIMEOUT, IRIS_ERR_PEER_LOST, IRIS_ERR_BOOTSTRAP (rank taken or out
 * of range, stranger), IRIS_ERR_MISMATCH (ranks differ), IRIS_ERR_LIMIT, or the
 * status of the rank that failed. */
iris_status_t iris_i_rendezvous_join(struct iris_rendezvous *rendezvous,
                                     struct iris_hello *hello);

/* Tells all whether this rank could use the results (`status`, with this
 * thread's message). Returns IRIS_OK only if all could. Then closes sockets and
 * descriptors and frees the hellos; the control segment stays. */
iris_status_t iris_i_rendezvous_agree(struct iris_rendezvous *rendezvous,
                                      iris_status_t status);

/* Drops the reference to the segment if the control plane has not taken it. */
void iris_i_rendezvous_drop(struct iris_rendezvous *rendezvous);

/* ---- peers.c ---- */

/* IRIS_OK while `rank` can still do its part; IRIS_ERR_PEER_LOST if its process
 * has ended or it has left. The message names the rank that was lost first: a
 * rank that left after the loss of a peer refers to that peer. Thread-safe. */
iris_status_t iris_i_peers_check(struct iris_control *control, int rank);

/* Whether to go on waiting: iris_i_peers_check() for all ranks, except that a
 * rank that finalized is not lost; IRIS_ERR_INTERRUPTED; or IRIS_ERR_REVOKED.
 * `control` may be NULL: IRIS_OK. */
iris_status_t iris_i_peers_check_all(struct iris_control *control);

/* Whether this rank was interrupted. */
int iris_i_peers_interrupted(const struct iris_control *control);

/* The first rank found lost, followed to the origin; -1: none. `control` may be
 * NULL. */
int iris_i_peers_lost(const struct iris_control *control);

/* This rank cannot reach `rank` any more, or has lost data for it. All waits of
 * this rank end with IRIS_ERR_PEER_LOST and `why`, and this rank leaves the job,
 * so that the waits of the others end, too. Has no effect if `rank` has
 * finalized. `control` may be NULL. One thread at a time. */
void iris_i_peers_lose(struct iris_control *control, int rank, const char *why);

/* Adds to this thread's message of a timeout that a rank is stopped, or does not
 * answer from another node, if one is and the message does not say it. */
void iris_i_peers_name_stopped(struct iris_control *control);

/* IRIS_ERR_PEER_LOST: a rank has ended after finalizing, so it will not make a
 * call for which others wait. */
iris_status_t iris_i_peers_fail_ended(struct iris_control *control, int rank);

/* Whether a rank has revoked the job. */
int iris_i_peers_are_revoked(const struct iris_control *control);

/* The reason for which `rank` leaves, in printable characters; empty if it has
 * given none. */
void iris_i_peers_read_reason(struct iris_control *control, int rank,
                              char reason[IRIS_REASON_BYTES + 1]);

/* IRIS_ERR_PEER_LOST: `rank` does not make this rank's `call`, and has
 * published its reason for leaving. */
iris_status_t iris_i_peers_check_leaving(struct iris_control *control, int rank,
                                         const char *call);

/* Publishes this rank's reason for leaving. `control` may be NULL. */
void iris_i_peers_write_reason(struct iris_control *control,
                               const char *reason);

/* Publishes that this rank leaves, and why, unless it has given a reason: a
 * message, whose "[rank/num_ranks] " is left out. `control` may be NULL. */
void iris_i_peers_leave(struct iris_control *control, const char *message);

/* Publishes this rank's state. `control` may be NULL. */
void iris_i_peers_set_state(struct iris_control *control,
                            enum iris_rank_state state);

/* This rank as a waiter. Its waits end when any rank is lost, this rank is
 * interrupted, or the control plane's deadline passes. `control` may be NULL:
 * then none of these ends a wait. */
struct iris_waiter iris_i_peers_waiter(struct iris_control *control);

/* ---- rendezvous_root.c: both sides ---- */

/* A status that is not a verdict yet: rank 0 has heard this rank's hello. */
#define IRIS_VERDICT_HEARD 1

/* Neither: rank 0 cannot go on, for the reason in the message, and awaits this
 * rank's status. */
#define IRIS_VERDICT_ENDING 2

/* A result: from rank 0 to all, and at the end from each rank to rank 0. */
struct iris_verdict {
    int32_t status;
    int32_t pid;      /* rank 0's process */
    uint64_t control; /* address of its struct iris_table, for threads of
                       * that process */
    uint64_t hellos;  /* address of its hellos, if iris_spawn() has made all
                       * ranks as threads; they then get none by the socket */
    int32_t stopped;  /* from a rank: 1 + a rank that it sees stopped, or 0 */
    char message[IRIS_MESSAGE_BYTES];
};

/* Makes `status`, with this thread's message, the verdict, unless the verdict
 * is an error already. */
void iris_i_rendezvous_judge(struct iris_verdict *verdict,
                             iris_status_t status);

/* Returns the verdict's status, and sets this thread's message to the
 * verdict's. */
iris_status_t iris_i_rendezvous_accept(const struct iris_verdict *verdict);

/* Sends it, with a descriptor unless that is -1. A peer that is gone is noticed
 * later. */
void iris_i_rendezvous_send(int sock, const struct iris_verdict *verdict,
                            int fd);

/* IRIS_ERR_PEER_LOST: the creator of the ranks has noted that one failed. */
iris_status_t
iris_i_rendezvous_check_failed(const struct iris_rendezvous *rendezvous);

/* Around a wait for other ranks. The `arg` of its type is the rendezvous. */
void iris_i_rendezvous_wait_begin(struct iris_rendezvous *rendezvous,
                                  const struct iris_wait_type *type,
                                  struct iris_wait *wait);
void iris_i_rendezvous_wait_end(struct iris_rendezvous *rendezvous,
                                struct iris_wait *wait, iris_status_t status);

/* A rank of this host that a signal or a debugger has stopped; -1: this rank
 * sees no such process. */
int iris_i_rendezvous_find_stopped(const struct iris_rendezvous *rendezvous);

/* After iris_i_rendezvous_join(): the key for one purpose, such as "control".
 * It is derived from the job's secret and from rank 0's random bytes. The latter
 * protect a job of one host with a guessable secret, since they pass a local
 * socket there. */
void iris_i_rendezvous_key(const struct iris_rendezvous *rendezvous,
                           const char *label, struct iris_secret *key_p);

/* ---- agree.c ---- */

/* The type of a collective call: static and const, owned by the module that
 * makes it. Posts contain its description, so that a peer can print a call that
 * it does not know. */
struct iris_call_type {
    const char *name; /* name of the public function */
    struct {
        const char *name; /* NULL: no more fields */
    } fields[IRIS_CALL_FIELDS];
};

/* One rank's part in a collective call. */
struct iris_call {
    const struct iris_call_type *type;
    /* The status of this rank's own preparation. If it failed, this thread's
     * message is posted in place of the payload, and the call fails on every
     * member. */
    iris_status_t status;
    uint64_t fields[IRIS_CALL_FIELDS]; /* must be equal on all members */
    const void *payload;
    size_t payload_bytes; /* at most IRIS_PAYLOAD_BYTES */
    /* Called now and then during the wait for members; a status other than
     * IRIS_OK ends the group. May be NULL. */
    iris_status_t (*keep_waiting)(void *arg);
    void *arg;
};

/* The beginning of a post. Then come the fields in the order of the call's
 * type, its signature "iris_malloc(bytes, alignment, offset)", and the
 * payload. */
struct iris_call_head {
    int32_t status;
    uint16_t num_fields;
    uint16_t signature_bytes;
};

_Static_assert(sizeof(struct iris_call_head) == 8, "fields are aligned");

#define IRIS_DRAFT_BYTES                                                   \
    (sizeof(struct iris_call_head) + IRIS_CALL_FIELDS * sizeof(uint64_t) + \
     IRIS_SIGNATURE_BYTES)
_Static_assert(IRIS_DRAFT_BYTES + IRIS_PAYLOAD_BYTES <= IRIS_POST_BYTES,
               "a post has room for both");

/* A call in the format of a post, without its payload. */
struct iris_draft {
    const struct iris_call_type *type; /* NULL: no draft yet */
    size_t bytes;
    unsigned char data[IRIS_DRAFT_BYTES];
};

/* A posted call, parsed. */
struct iris_posted_call {
    struct iris_call_head head;
    uint64_t fields[IRIS_CALL_FIELDS];
    char signature[IRIS_SIGNATURE_BYTES + 1];
};

/* The drafts of the most recent call types. */
#define IRIS_DRAFTS 4
struct iris_drafts {
    struct iris_draft of[IRIS_DRAFTS];
    unsigned next; /* index of the draft to replace */
};

/* The members of a group, as agreements use them. Part of a struct of the
 * user. */
struct iris_members {
    struct iris_control *control;
    const int *ranks; /* in group order */
    int count;
    int place;
    uint64_t seq; /* number of agreements so far */
    struct iris_drafts drafts;
    const struct iris_draft *draft; /* the latest call's; NULL: none */
};

/* Copies up to `bytes` of the payload that the member with rank `rank` posted
 * in the latest agreement; returns the payload's length. Valid until this
 * rank's next agreement. */
size_t iris_i_agree_payload(const struct iris_members *members, int rank,
                            void *to, size_t bytes);

/* 1 if all members made the same call in the latest agreement, even with
 * different fields. Then all of them can go on to another agreement of that
 * call, with any result of this one. The same on all members. */
int iris_i_agree_all_called(const struct iris_members *members);

/* Agreement, the primitive under every collective host call: a rank posts its
 * call, waits until all members have posted, and compares. */

/* Blocks until every member has posted its call, and gives all members the same
 * verdict:
 * - IRIS_OK;
 * - the failing member's status (on that member with its own message, on the
 *   others with one that names it);
 * - IRIS_ERR_MISMATCH, with each member's call in the message. Earlier writes
 *   of all members are visible afterwards. IRIS_ERR_PEER_LOST,
 *   IRIS_ERR_TIMEOUT, IRIS_ERR_INTERRUPTED and a status of keep_waiting() end
 *   the group: later agreements fail the same way. A long wait logs one line
 *   that names the missing ranks. */
iris_status_t iris_i_agree(struct iris_members *members,
                           const struct iris_call *call);

/* Shows peers that this rank is in a collective call, before it does its own
 * part of it. Peers whose wait is long read this. iris_i_agree() ends it. */
void iris_i_agree_begin(struct iris_control *control,
                        const struct iris_call_type *type);

/* Resets the count of calls that peers see, which includes those of init. */
void iris_i_agree_reset(struct iris_control *control);

/* ---- links.c ---- */

/* How ranks connect: not at all in a job of one node; by local sockets if nodes
 * are simulated on one host; else by TCP. */
enum iris_control_kind {
    IRIS_CONTROL_SHM,
    IRIS_CONTROL_UNIX,
    IRIS_CONTROL_TCP
};

/* A socket for this address, or -1 with errno. An address of size 0 stands for
 * the loopback; local sockets ignore it. A TCP connection, including one that such a
 * socket accepts, ends within IRIS_CUT_MS once the other host is
 * unreachable. */
int iris_i_stream_socket(enum iris_control_kind kind,
                         const struct iris_address *address);

/* Listens at *address_p. If its size is 0, listens at a local socket or on the
 * loopback. If the port is 0, the system chooses one, and *address_p gets it.
 * IRIS_ERR_SYSTEM */
iris_status_t iris_i_stream_listen(int sock, enum iris_control_kind kind,
                                   struct iris_address *address_p);

/* A connection that is being made, and then proven, without waiting. */
struct iris_dial {
    int sock; /* -1: none; the caller closes it */
    int is_connected;
    int error;        /* the errno that ended it; 0: the proof has a reason */
    int64_t since_ns; /* begin of the connection, then of the proof */
    struct iris_proof proof;
};

/* Begins a connection. 0, or an errno; then the caller closes the socket, too.
 * ECONNREFUSED: nothing listens there. EAGAIN: a local listener's backlog is
 * full. */
int iris_i_dial_begin(struct iris_dial *dial, enum iris_control_kind kind,
                      const struct iris_address *address);

/* Goes on as far as possible. An attempt to connect fails after
 * IRIS_CONNECT_MS; a proof may take any time. */
enum iris_proof_result iris_i_dial_step(struct iris_dial *dial,
                                        const struct iris_secret *key,
                                        const void *claims, size_t bytes);

/* Whether the other host has not answered the last packet yet. */
int iris_i_stream_is_silent(int sock);

/* This side's knowledge of a connection's other host. Begins as {0}. */
struct iris_stream_check {
    int64_t next_ns;   /* time of the next look */
    int64_t silent_ns; /* time since which it leaves packets unanswered */
};

/* links.c describes the states and the protocol. */
enum iris_link_state {
    IRIS_LINK_CUT,
    IRIS_LINK_JOINED,
    IRIS_LINK_ENDED,
    IRIS_LINK_LOST
};

enum iris_link_loss {
    IRIS_LINK_SILENT,   /* its host does not answer */
    IRIS_LINK_GONE,     /* nothing listens at its address */
    IRIS_LINK_REFUSED,  /* it, or another process there, refuses this rank */
    IRIS_LINK_FULL,     /* its process has no descriptor left */
    IRIS_LINK_NONSENSE, /* the session cannot go on */
};

struct iris_link {
    int rank; /* the other side's */
    enum iris_link_state state;
    int has_come;    /* it has been joined */
    int has_end;     /* JOINED: the other side's last record was taken, and this
                      * side's is not sent yet */
    int errno_value; /* JOINED: a send has failed, so the link is cut once all
                      * data that has arrived is read; 0: none has. CUT: the
                      * reason; 0: the other side has closed it */
    int64_t cut_ns;  /* time of the cut; 0: it has never been cut */
    struct iris_stream_check check;
    struct iris_session session; /* sock -1: not JOINED */

    /* For the owner. */
    int watched;
    int is_full;
    int is_dead;

    /* The way to the rank. */
    int is_sought;
    int num_refused;     /* tries in a row that found no listener */
    uint64_t number;     /* the last try's, or 1 + the last one accepted */
    int64_t next_ns;     /* time of the next try */
    int64_t deadline_ns; /* the host has to answer until then */
    struct iris_address address;
    struct iris_dial dial;
};

/* The owner of links. The functions must not wait. */
struct iris_links_owner {
    /* The link is JOINED. */
    void (*joined)(void *arg, struct iris_link *link);

    /* It will be JOINED no more; its socket is still open. */
    void (*left)(void *arg, struct iris_link *link);

    /* It is going to be LOST. `why` completes "cannot reach rank 3: ". */
    void (*lost)(void *arg, struct iris_link *link, enum iris_link_loss loss,
                 const char *why);

    /* Another module knows of the ranks' deaths, so only a silent host ends the
     * search of a way. */
    int is_patient;
    void *arg;
};

struct iris_links {
    const struct iris_log *log;
    struct iris_links_owner owner;
    enum iris_control_kind kind;
    int count;
    struct iris_link *all; /* in the order of ranks */
    atomic_int num_cut;
    int poll;  /* readable when iris_i_links_turn() has something to do */
    int spare; /* reserved, to tell a rank that no others are left */
    struct iris_gate gate;
};

struct iris_links_params {
    const struct iris_log *log;
    const struct iris_rendezvous *rendezvous; /* with all hellos */
    const char *label;                        /* of the key */
    size_t address_at;                        /* in struct iris_hello */
    size_t record_bytes;                      /* the largest record's */
    int listener;                             /* taken over, also on failure */

    /* Whether there is a link to the rank; its argument is the owner's. */
    int (*is_linked)(void *arg, int rank);
};

/* Begins to connect. *links stays where it is. IRIS_ERR_LIMIT,
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_links_open(const struct iris_links_params *params,
                                const struct iris_links_owner *owner,
                                struct iris_links *links);

/* The owner sends the last records before. Does nothing to {0}. */
void iris_i_links_close(struct iris_links *links);

/* Accepts, connects, proves and finds silent hosts. Call it soon again while a
 * link is CUT. */
void iris_i_links_turn(struct iris_links *links);

/* Closes the connection if there is one. ENDED, LOST: abandons the session. */
void iris_i_link_leave(struct iris_links *links, struct iris_link *link,
                       enum iris_link_state next);

/* Sends pending data. 1: some, or the connection has failed; 0: none. */
int iris_i_link_send(struct iris_links *links, struct iris_link *link);

/* The session has given the other side's last record: sends this side's. The
 * link has ENDED when all is sent. */
void iris_i_link_end(struct iris_links *links, struct iris_link *link);

/* 1: some bytes have come, which the session has; 0: none; -1: the link is now
 * CUT or ENDED, and the session may have records to take. */
int iris_i_link_receive(struct iris_links *links, struct iris_link *link);

/* ---- bootstrap_mpi.c ---- */

/* Whether the program has initialised MPI, or mpirun started us. */
int iris_i_bootstrap_mpi_applies(void);

/* All ranks get rank 0's random secret. IRIS_ERR_BOOTSTRAP, IRIS_ERR_TIMEOUT,
 * IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_bootstrap_mpi(const struct iris_settings *settings,
                                   struct iris_bootstrap *bootstrap_p);

/* Call these around every call of MPI after bootstrap, from any thread. */
void iris_i_mpi_enter(void);
void iris_i_mpi_leave(void);

/* Whether MPI can be called: it is initialised, and not finalized. */
int iris_i_mpi_is_up(void);

/* Whether the library's threads may call MPI, and the job's ranks are those of
 * MPI_COMM_WORLD. IRIS_ERR_UNSUPPORTED */
iris_status_t iris_i_mpi_check_calls(int rank, int num_ranks);

/* ---- exchange.c ---- */

/* Memory of this rank's heap. */
struct iris_offer {
    size_t offset; /* offset from the heap's base */
    size_t bytes;
    struct iris_heap_handle handle; /* owned by the caller */
};

/* One exchange, on this rank. */
struct iris_exchange {
    struct iris_control *control;
    uint64_t seq; /* number of the preceding agreement, the same on all ranks */
    const struct iris_offer *offers;
    size_t num_offers;
    const unsigned char *reachable; /* for each rank; NULL: all are reachable */

    /* Takes an offer of `rank`; the handle's descriptor is closed
     * afterwards. */
    iris_status_t (*take)(void *arg, int rank, const struct iris_offer *offer);
    void *arg;
};

/* Collective, between two agreements of all ranks: sends this rank's offers to
 * every reachable rank of another process, and takes each of theirs. All ranks
 * have the same number of offers, at the same offsets in the same order. A rank
 * whose own preparation failed (`status`, with this thread's message) takes
 * part all the same; no rank then takes its offers. Returns the first error on
 * this rank alone. The agreement that follows must report it to the others.
 *
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT, IRIS_ERR_MISMATCH (other offsets),
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM (a socket is broken), `status`, or the status
 * of take(). */
iris_status_t iris_i_exchange(const struct iris_exchange *exchange,
                              iris_status_t status);

/* ---- rendezvous_root.c ---- */

/* Rank 0 cannot listen: tells `status`, with this thread's message, to the
 * ranks that come soon, and returns it. */
iris_status_t
iris_i_rendezvous_root_refuse(const struct iris_rendezvous *rendezvous,
                              iris_status_t status);

/* Rank 0's side of iris_i_rendezvous_join() and iris_i_rendezvous_agree(). */
iris_status_t iris_i_rendezvous_root_join(struct iris_rendezvous *rendezvous);
iris_status_t iris_i_rendezvous_root_agree(struct iris_rendezvous *rendezvous,
                                           iris_status_t status);

/* IRIS_ERR_PEER_LOST: a rank has died since all came. For rank 0, until
 * iris_i_rendezvous_agree(). */
iris_status_t
iris_i_rendezvous_root_check(const struct iris_rendezvous *rendezvous);

/* The same for the other ranks, by a message of rank 0. `arg` is the
 * rendezvous. */
iris_status_t iris_i_rendezvous_hear(void *arg);

/* ---- control.c: opening ---- */

/* The parts that a rank opens before the rendezvous, because its hello
 * announces them; NULL and -1: none. In a job of several nodes every rank opens
 * those of a hub, so that all ranks learn of a failure. */
struct iris_control_parts {
    struct iris_endpoint *endpoint; /* for messages */
    int listener;                   /* of a hub */
    int wake;                       /* an eventfd of a hub */
};

/* Listens if there are other nodes; *hello_p announces that to them.
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_control_prepare(enum iris_control_kind kind,
                                     struct iris_hello *hello_p,
                                     struct iris_control_parts *parts);

/* Opens it with the results of the rendezvous. On success it takes over the
 * parts and the reference to the segment. On failure it closes the parts, so
 * that no other rank waits for them. IRIS_ERR_LIMIT, IRIS_ERR_PEER_LOST,
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_BOOTSTRAP */
iris_status_t iris_i_control_open(const struct iris_log *log,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts,
                                  struct iris_control **control_p);

#define IRIS_CONTROL_NO_PARTS      \
    {                              \
        .listener = -1, .wake = -1 \
    }

/* Closes parts that no control plane took over. */
void iris_i_control_parts_close(struct iris_control_parts *parts);

#endif /* IRIS_SRC_CONTROL_CONTROL_H */
