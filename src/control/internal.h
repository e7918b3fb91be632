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
    unsigned char data[IRIS_POST_BYTES];
};

_Static_assert(sizeof(struct iris_post) == 4096, "a post is a page");

struct iris_place {
    _Alignas(4096) atomic_uint users; /* ranks that hold the group */
    atomic_uint wakes;                /* futex: bumped when all have posted */
    atomic_uint sleepers;             /* threads asleep on it */
    atomic_ullong num_posts;          /* total so far; an agreement adds
                                       * `expected` */
    atomic_uint failed;               /* set once; 0: not failed */
    struct iris_post posts[];         /* [2 * rank + seq % 2] */
};

/* The calls of iris_i_control_*() for one place. _post: 1 if all `expected` ranks have now posted. */
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
int iris_i_place_prepare(struct iris_place *place);
void iris_i_place_hold(struct iris_place *place, int rank);
void iris_i_place_release(struct iris_place *place);

/* Wakes the ranks that sleep there. */
void iris_i_place_wake(struct iris_place *place);

/* ---- table.c: memory ---- */

/* The control segment: a small piece of shared memory with the records of a
 * node's ranks, followed by the places where they post. */

/* This process's reference to the segment. Threads that are ranks share one, so
 * that they share addresses, too. */
struct iris_segment {
    atomic_int refs;
    int num_ranks;
    int fd; /* -1: private */
    size_t bytes;
    void *base;
    struct iris_records records; /* at its start */
};

/* Makes the segment for a job of num_ranks, with one reference.
 * IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_segment_create(int num_ranks,
                                    struct iris_segment **segment_p);

/* Memory of this rank alone, with the layout of a segment: its copy of the
 * others' published states and posts. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_segment_private(int num_ranks,
                                     struct iris_segment **segment_p);

/* Maps a segment of another process; takes over `fd` on success. */
iris_status_t iris_i_segment_attach(int fd, int num_ranks,
                                    struct iris_segment **segment_p);

void iris_i_segment_retain(struct iris_segment *segment, int refs);

/* Drops a reference; the last one unmaps. `segment` may be NULL. */
void iris_i_segment_release(struct iris_segment *segment);

struct iris_place *iris_i_segment_place(struct iris_segment *segment,
                                        int place);

/* Commits memory to a place; the first place has it from the start.
 * IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_segment_commit_place(struct iris_segment *segment,
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

/* ---- mail.c ---- */

/* The ranks of one machine, and messages with descriptors between them. All
 * control planes share this code. */

struct iris_mail {
    struct iris_endpoint *endpoint; /* NULL: no messages are sent */
    int num_ranks;
    struct iris_mail_rank {
        int pid;
        int is_here;          /* 1: it is on this machine */
        int is_remote;        /* 1: it is in another process */
        int pidfd;            /* its process on this machine; -1: not watched */
        uint64_t start_ticks; /* 0: a pidfd watches it */
        char host[32];        /* empty: the job has one host */
        char name[IRIS_ENDPOINT_NAME_BYTES];
    } * ranks;
};

/* From the ranks' hellos. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_mail_open(struct iris_mail *mail,
                               const struct iris_rendezvous *rendezvous);

/* Watches every other process of this machine by a pidfd. It becomes readable
 * once the process has ended, also as a zombie and also if a child holds its
 * descriptors, and is immune to reuse of the pid. IRIS_ERR_PEER_LOST,
 * IRIS_ERR_LIMIT */
iris_status_t iris_i_mail_watch(struct iris_mail *mail);

/* Closes the endpoint, too. */
void iris_i_mail_close(struct iris_mail *mail);

int iris_i_mail_alive(const struct iris_mail *mail, int rank);

/* A rank of this machine whose process is stopped by a signal or a debugger, for
 * messages; -1: none. `mail` may be NULL. */
int iris_i_mail_find_stopped(const struct iris_mail *mail);
void iris_i_mail_name(const struct iris_mail *mail, int rank,
                      char name[IRIS_RANK_NAME_BYTES]);
int iris_i_mail_send(const struct iris_mail *mail, int rank, const void *data,
                     size_t bytes, int fd);

struct iris_inbox {
    const struct iris_log *log;
    void *data;
    size_t bytes;
    int timeout_ms;
};
iris_status_t iris_i_mail_receive(const struct iris_mail *mail,
                                  const struct iris_inbox *inbox,
                                  struct iris_sender *sender_p);

/* ---- message.c ---- */

/* The messages of the control plane over sockets: a head and a body. They come
 * from other processes, perhaps on other machines, so everything in them is
 * checked before it is used. */

#define IRIS_MESSAGE_MAGIC \
    UINT32_C(0x69726973) /* differs in another byte order */
#define IRIS_MESSAGE_VERSION 4u
#define IRIS_MESSAGE_WHY_BYTES 160

/*   any -> 0     forwarded by 0 to all the others, in the order of each sender:
 *                SHOWN, POST, FAIL, HOLD, RELEASE, QUERY
 *   any -> any   through 0: RECORD, ANSWERED
 *   0 -> all     ENDED: `from` has closed its connection */
enum iris_message_type {
    IRIS_MESSAGE_SHOWN = 1, /* value: parts */
    IRIS_MESSAGE_POST,      /* value: number of the agreement */
    IRIS_MESSAGE_FAIL,      /* value: mark */
    IRIS_MESSAGE_HOLD,
    IRIS_MESSAGE_RELEASE,
    IRIS_MESSAGE_ENDED,
    IRIS_MESSAGE_QUERY,    /* `from` wants other hosts' flight records; value:
                            * number of the query */
    IRIS_MESSAGE_RECORD,   /* value: an offset; body: those bytes of the
                            * record */
    IRIS_MESSAGE_ANSWERED, /* value: number of the query */
    IRIS_MESSAGE_TYPES
};

struct iris_message_head {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint16_t bytes;   /* of the body */
    uint16_t members; /* POST: number of members of its place; RECORD,
                       * ANSWERED: the rank that has asked */
    uint16_t from;    /* a rank */
    uint16_t place;
    uint64_t value;
};

_Static_assert(sizeof(struct iris_message_head) == 24, "no holes");
_Static_assert(IRIS_POST_BYTES <= UINT16_MAX, "a head says how long it is");

/* The end of an answer. Rank 0 may have dropped any part of it. */
struct iris_message_answered {
    int64_t now_ns;
    uint64_t bytes; /* sum of its parts */
};

#define IRIS_MESSAGE_MOST (sizeof(struct iris_message_head) + IRIS_POST_BYTES)

/* The head of a message. */
struct iris_message_head iris_i_message_head(enum iris_message_type type,
                                             int from, int place,
                                             uint64_t value, size_t bytes);

/* Parses the received bytes. Returns the length of the first message, with its
 * head in *head_p; 0: it is not complete yet; -1: it is not one of ours, with
 * the reason. */
int iris_i_message_take(const unsigned char *data, size_t bytes, int num_ranks,
                        struct iris_message_head *head_p,
                        char why[IRIS_MESSAGE_WHY_BYTES]);

/* Packs parts of the published state; returns the bytes, at most
 * IRIS_MESSAGE_SHOWN_BYTES. Unpacks them; 0: wrong length. */
#define IRIS_MESSAGE_SHOWN_BYTES sizeof(struct iris_shown)
size_t iris_i_message_pack(unsigned parts, const struct iris_shown *shown,
                           unsigned char *data);
int iris_i_message_unpack(unsigned parts, const unsigned char *data,
                          size_t bytes, struct iris_shown *shown_p);

/* ---- hub_copy.c ---- */

struct iris_hub_copy {
    struct iris_segment *segment;
    atomic_uchar *ended; /* by rank: its connection has ended */
    int rank;            /* this one */
    /* The records of this host, in which readers find the states of the marked
     * ranks, which are on other hosts. NULL: they are not used. */
    const struct iris_records *records;
    const unsigned char *elsewhere;
    int writes_boards; /* 1: this rank writes their states; 0: another one does,
                        * except for the last state */
    const struct iris_mail *mail; /* the ranks' processes and hosts */
};

/* The caller closes it even if this fails. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_hub_copy_open(struct iris_hub_copy *copy, int num_ranks);
void iris_i_hub_copy_close(struct iris_hub_copy *copy);

struct iris_board *iris_i_hub_board(const struct iris_hub_copy *copy, int rank);
struct iris_place *iris_i_hub_place(const struct iris_hub_copy *copy,
                                    int place);

/* Parts to which other ranks react. The rest only informs people. */
#define IRIS_SHOW_URGENT                                                      \
    (IRIS_SHOW_STATE | IRIS_SHOW_WAITS | IRIS_SHOW_ID | IRIS_SHOW_ELSEWHERE | \
     IRIS_SHOW_REASON)

/* Writes parts of a rank's published state to the copy, and for readers of this
 * host if the rank is on another one. */
void iris_i_hub_write(struct iris_hub_copy *copy, int rank, unsigned parts,
                      const struct iris_shown *shown);

enum iris_hub_applied {
    IRIS_HUB_NONSENSE, /* not applied */
    IRIS_HUB_PATIENT,  /* no rank waits for it: it may be sent together with
                        * the next message */
    IRIS_HUB_URGENT,
};

/* Applies a message. */
enum iris_hub_applied iris_i_hub_apply(struct iris_hub_copy *copy,
                                       const struct iris_message_head *head,
                                       const unsigned char *body);

/* The connection of `rank` has ended. */
void iris_i_hub_end(struct iris_hub_copy *copy, int rank);

/* ---- link.c ---- */

/* One connection of the control plane over sockets. It never blocks, keeps data
 * that cannot be sent yet, and collects received data until a message is
 * complete. */

/* The most bytes that one connection keeps for the other side. */
#define IRIS_LINK_MOST ((size_t)64 << 20)

struct iris_link {
    int sock;   /* -1: closed */
    int rank;   /* the other side's rank */
    int polled; /* its index among the polled descriptors; 0: not
                          * polled */
    size_t in_bytes;
    unsigned char in[2 * IRIS_MESSAGE_MOST];
    unsigned char *out; /* bytes to be sent: [out_at, out_bytes) */
    size_t out_at;
    size_t out_bytes;
    size_t out_room;
    int is_full;  /* the socket did not take all of it */
    int is_stuck; /* more data was pending than can be kept */
    int is_cut;   /* the other host does not answer */
    struct iris_stream_check check;
};

/* Takes over a socket. */
void iris_i_link_open(struct iris_link *link, int sock, int rank);
void iris_i_link_close(struct iris_link *link);

/* Adds a message for the next flush. IRIS_ERR_LIMIT: the other side has left
 * IRIS_LINK_MOST bytes unread. IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_link_put(struct iris_link *link,
                              const struct iris_message_head *head,
                              const struct iris_part parts[2]);

/* Sends the pending messages. -1: the connection has ended. */
int iris_i_link_flush(struct iris_link *link);

/* Reads the received data. -1: the other side has closed. */
int iris_i_link_fill(struct iris_link *link);

/* Removes a processed message from the front of `in`. */
void iris_i_link_drop(struct iris_link *link, size_t bytes);

/* ---- hub.c ---- */

/* The connections of one rank's control plane over sockets, and the thread that
 * serves them. Rank 0 is connected to all others, each other rank to rank 0.
 * The thread keeps this rank's copy of the others' published states and posts. */

struct iris_hub {
    const struct iris_log *log;
    int rank;
    int num_ranks;
    int num_links;
    int listener;           /* rank 0's, until all have connected; then -1 */
    struct iris_secret key; /* with which ranks prove themselves there */
    struct iris_gate gate;  /* at the listener */
    int spare; /* rank 0's: a reserved descriptor, to tell a rank that no others are left; -1 */
    int wake;  /* eventfd: there is a message to send, or the thread has
                   * to end */
    int num_here; /* rank 0: number of connected ranks */
    atomic_int closing;
    atomic_int lost; /* other ranks: the connection to rank 0 has ended */
    int64_t close_by_ns;
    int64_t flush_by_ns;       /* latest time for sending the pending
                                * messages */
    atomic_uint dirty;         /* published parts that were not sent yet */
    unsigned char *elsewhere;  /* by rank: whether it is on another host */
    struct iris_hub_copy copy; /* the others' published states and posts */
    pthread_mutex_t lock;      /* protects the links' sockets and pending
                                * messages */
    pthread_t thread;
    struct pollfd *polled;
    struct iris_link *links; /* rank 0: to all ranks; others: one link */
};

/* Takes over `fds` (rank 0), or `sock`, the connection to rank 0 (other ranks).
 * Starts the thread. IRIS_ERR_NO_MEMORY, IRIS_ERR_LIMIT; then the caller still
 * owns the descriptors. */
iris_status_t iris_i_hub_open(struct iris_hub *hub,
                              const struct iris_control_fds *fds, int sock);

/* Sends all pending messages and closes. Rank 0 first waits until the others
 * have closed, at most for `stay_ms`. */
void iris_i_hub_close(struct iris_hub *hub, int stay_ms);

/* Sends a message to all other ranks, in order. */
void iris_i_hub_say(struct iris_hub *hub, const struct iris_message_head *head,
                    const struct iris_part parts[2]);

/* Parts of this rank's board in the copy have changed: sends urgent parts now,
 * the others within a short time. */
void iris_i_hub_show(struct iris_hub *hub, unsigned parts);

/* ---- mirror.c ---- */

/* Copies of the flight records of other hosts' ranks, for reports of this host.
 * A reader asks (iris_i_records_ask()). One rank of its host asks the others by
 * the control plane, and writes their answers to its host's file of records. */

/* Sends one message of an answer. */
struct iris_mirror_way {
    void (*send)(void *arg, const struct iris_message_head *head,
                 const struct iris_part parts[2]);
    void *arg;
};

/* Sends the used parts of this rank's record to the rank that has sent `query`:
 * about 10 KiB. Sends nothing if the rank has no record. */
void iris_i_mirror_answer(const struct iris_records *records, int rank,
                          const struct iris_message_head *query,
                          const struct iris_mirror_way *way);

/* Writes a message of an answer to the copy. Ignores a malformed one. */
void iris_i_mirror_take(const struct iris_records *records,
                        const struct iris_message_head *head,
                        const unsigned char *body);

/* A rank of another host has closed its connection. `host` is its name. */
void iris_i_mirror_end(const struct iris_records *records, int rank, int pid,
                       const char *host);

/* No answer of this rank can arrive any more. */
void iris_i_mirror_lose(const struct iris_records *records, int rank);

/* ---- rendezvous_hosts.c ---- */

/* The rendezvous of ranks on several hosts. Ranks of other hosts meet rank 0 by
 * TCP, and pass descriptors among themselves by local sockets. */

/* Rank 0: listens at *root_p. If it is no address of an interface of this host
 * (containers, names of the loopback), listens at its port on all of them. If
 * the port is 0, the system chooses it, and *root_p gets it. The caller closes
 * *sock_p. IRIS_ERR_BOOTSTRAP: the port is taken. */
iris_status_t iris_i_rendezvous_far_listen(struct iris_address *root_p,
                                           int *sock_p);

/* Connects rendezvous->sock to rank 0; both sides prove the job's secret, and
 * this rank its claims. Tries again until rank 0 listens and has proven itself,
 * or the wait has to end. IRIS_ERR_BOOTSTRAP: another job, or no Iris, listens
 * there. */
iris_status_t iris_i_rendezvous_far_connect(struct iris_rendezvous *rendezvous,
                                            struct iris_wait *wait);

/* Rank 0: opens rendezvous->arrivals at its listeners. */
iris_status_t
iris_i_rendezvous_open_arrivals(struct iris_rendezvous *rendezvous);

/* For ranks of a host without rank 0. The lowest of them makes the host's
 * control segment, and sends each of the others its descriptor and those of
 * their heaps. `fd` is that of this rank's heap, or -1. The status of the wait;
 * IRIS_ERR_PEER_LOST, IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_rendezvous_meet_host(struct iris_rendezvous *rendezvous,
                                          int fd);

/* ---- agree.c ---- */

/* This rank waits for `absent` in the members' current agreement; its board
 * shows that from now on. IRIS_ERR_MISMATCH: that rank waits for this one,
 * directly or through others. No group in the circle can go on, and all their
 * members are told. */
iris_status_t iris_i_circle_check(const struct iris_members *members,
                                  const char *call, int absent);

/* ---- hub_accept.c ---- */

/* Opens the gate at hub->listener. IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_hub_open_gate(struct iris_hub *hub);

/* Serves the connections of strangers and of ranks that have not proven
 * themselves, and welcomes those that have. If there are no descriptors, a rank
 * is told so. */
void iris_i_hub_accept(struct iris_hub *hub);

/* No more ranks will connect. */
void iris_i_hub_close_listener(struct iris_hub *hub);

/* ---- hub_query.c ---- */

/* Queries for flight records: this rank's answers, and rank 0's passing on of
 * other ranks' answers. */

/* Answers a rank of another host; ignores one of this host. The caller
 * flushes. */
void iris_i_hub_answer(struct iris_hub *hub,
                       const struct iris_message_head *query);

/* Rank 0: whether a message goes to one rank only, and passing it on. The
 * caller holds the lock. */
int iris_i_hub_is_answer(const struct iris_message_head *head);
void iris_i_hub_pass_on(struct iris_hub *hub,
                        const struct iris_message_head *head,
                        const struct iris_part parts[2]);

/* ---- rendezvous_hello.c ---- */

/* Whether a hello belongs to this job and is the first of its rank, compared
 * with rank 0's own. */
iris_status_t
iris_i_rendezvous_check_hello(const struct iris_rendezvous *rendezvous,
                              const struct iris_hello *hello);

/* Whether its rank is prepared, with the same settings as rank 0. */
iris_status_t
iris_i_rendezvous_compare(const struct iris_rendezvous *rendezvous,
                          const struct iris_hello *hello);

#endif /* IRIS_SRC_CONTROL_INTERNAL_H */
