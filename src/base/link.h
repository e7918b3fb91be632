/* SPDX-License-Identifier: MIT
 *
 * Sockets of the rendezvous; proofs, sessions and listeners of connections between
 * processes. They know no ranks.
 */
#ifndef IRIS_SRC_BASE_LINK_H
#define IRIS_SRC_BASE_LINK_H

#include <iris/status.h>

#include "base/base.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* ---- proof.c ---- */

#define IRIS_SECRET_BYTES 32
#define IRIS_DIGEST_BYTES 32
#define IRIS_SECRET_NAME_BYTES 33

struct iris_secret {
    unsigned char bytes[IRIS_SECRET_BYTES];
};

void iris_i_sha256(const void *data, size_t bytes,
                   unsigned char digest[IRIS_DIGEST_BYTES]);
void iris_i_hmac_sha256(const void *key, size_t key_bytes, const void *data,
                        size_t bytes, unsigned char mac[IRIS_DIGEST_BYTES]);

/* Random bytes from the system. IRIS_ERR_SYSTEM */
iris_status_t iris_i_secret_random(void *data, size_t bytes);

/* A key for one purpose, which the label names. The derived key reveals neither
 * the secret nor the key of another label. */
void iris_i_secret_derive(const struct iris_secret *secret, const char *label,
                          struct iris_secret *derived_p);

/* A name for one purpose, as 32 hexadecimal digits. Other users may see it. */
void iris_i_secret_name(const struct iris_secret *secret, const char *label,
                        char name[IRIS_SECRET_NAME_BYTES]);

/* Whether the bytes are equal. The time does not depend on them. */
int iris_i_secret_equal(const void *a, const void *b, size_t bytes);

#define IRIS_PROOF_CLAIMS_MOST 64
#define IRIS_PROOF_MAGIC_BYTES 8
#define IRIS_PROOF_NONCE_BYTES 32

enum iris_proof_role { IRIS_PROOF_ACCEPTOR, IRIS_PROOF_CONNECTOR };

enum iris_proof_result {
    IRIS_PROOF_FAILED = -1, /* `why` has the reason; close the socket */
    IRIS_PROOF_PENDING = 0, /* call again once the socket is ready */
    IRIS_PROOF_PROVEN = 1,  /* both sides; `theirs` has the other's claims */
    IRIS_PROOF_CLAIMED = 2, /* acceptor: `theirs` has the connector's proven
                              * claims; call iris_i_proof_answer() or
                             * iris_i_proof_refuse(), then
                             * iris_i_proof_step() again */
};

enum iris_proof_why {
    IRIS_PROOF_NO_REASON,
    IRIS_PROOF_LATE, /* the deadline has passed */
    IRIS_PROOF_GONE, /* the other side has closed, or the connection broke */
    IRIS_PROOF_NOT_IRIS, /* the other side does not speak this protocol */
    IRIS_PROOF_WRONG,    /* the other side has another secret */
    IRIS_PROOF_FULL,     /* the acceptor's process has no descriptor left */
    IRIS_PROOF_REFUSED,  /* the acceptor knows the secret but does not want this
                         * connection; `theirs` has its reason, as text */
};

/* Opaque bytes that a side asserts about itself. */
struct iris_proof_claims {
    unsigned char bytes; /* in use */
    unsigned char data[IRIS_PROOF_CLAIMS_MOST];
};

/* The messages, as they are sent. */
struct iris_proof_greeting {
    unsigned char magic[IRIS_PROOF_MAGIC_BYTES];
    unsigned char nonce[IRIS_PROOF_NONCE_BYTES];
};
struct iris_proof_claim {
    struct iris_proof_greeting greeting;
    struct iris_proof_claims claims;
    unsigned char mac[IRIS_DIGEST_BYTES];
};
struct iris_proof_answer {
    unsigned char verdict; /* 0: the connector has another secret; 1: welcome;
                            * 2: refused, and the claims are the reason */
    struct iris_proof_claims claims;
    unsigned char mac[IRIS_DIGEST_BYTES];
};

/* One side of a handshake. The fields above the line are for the caller. */
struct iris_proof {
    enum iris_proof_why why;
    int error; /* with IRIS_PROOF_GONE: the system's error, or 0 */
    struct iris_proof_claims theirs;
    /* ---- */
    enum iris_proof_role role;
    int sock;
    int stage;
    size_t done; /* bytes of the stage's message */
    int64_t deadline_ns;
    struct iris_secret secret;
    struct iris_proof_greeting greeting;
    struct iris_proof_claim claim;
    struct iris_proof_answer answer;
};

/* Prepares one side. The caller keeps the socket: a connected stream socket,
 * blocking or not. `claims` are the connector's; the acceptor passes none here.
 * IRIS_ERR_SYSTEM: no random bytes. */
iris_status_t iris_i_proof_begin(struct iris_proof *proof,
                                 enum iris_proof_role role, int sock,
                                 const struct iris_secret *secret,
                                 const void *claims, size_t bytes,
                                 int patience_ms);

/* Sends and receives as much as is possible without blocking. It reads no byte
 * behind the handshake. */
enum iris_proof_result iris_i_proof_step(struct iris_proof *proof);

/* Acceptor: sets its own claims, after IRIS_PROOF_CLAIMED. */
void iris_i_proof_answer(struct iris_proof *proof, const void *claims,
                         size_t bytes);

/* Acceptor: refuses instead, with a reason of at most IRIS_PROOF_CLAIMS_MOST - 1
 * characters. The step then ends with IRIS_PROOF_FAILED. */
void iris_i_proof_refuse(struct iris_proof *proof, const char *reason);

/* Acceptor without a free descriptor: tells a connection so. The other side
 * fails with IRIS_PROOF_FULL. */
void iris_i_proof_tell_full(int sock);

/* The events of poll() for which the handshake waits. */
short iris_i_proof_events(const struct iris_proof *proof);

/* The other side's claims, if they have exactly this size. Returns whether. */
int iris_i_proof_claims(const struct iris_proof *proof, void *claims,
                        size_t bytes);

/* A text for `why` that completes "the other side ...". */
const char *iris_i_proof_reason(const struct iris_proof *proof);

/* ---- gate.c ---- */

/* Addresses whose failed proofs are remembered. */
#define IRIS_GATE_SOURCES 64

/* A connection without a proof, or a free slot. */
struct iris_gate_visitor {
    int sock; /* -1: free */
    int is_held;
    uint64_t number; /* of its arrival */
    uint64_t source; /* of its address; 0: a local socket */
    struct iris_proof proof;
};

/* An address from which a wrong proof came. */
struct iris_gate_source {
    uint64_t source;
    int64_t until_ns; /* time of its next check */
};

struct iris_gate {
    int listener;
    int poll; /* readable when iris_i_gate_step() has something to do */
    struct iris_secret secret;

    /* Decides about a connection that has proven the secret: fills `own` and
     * returns NULL, or returns the reason to refuse it. */
    const char *(*admit)(void *arg, const struct iris_proof_claims *theirs,
                         struct iris_proof_claims *own_p);
    void *arg;

    int num_visitors; /* most at once */
    int num_held;
    uint64_t num_arrived;
    unsigned num_failed; /* connections that were refused or did not prove the
                          * secret, except those that left without a word */
    char why[128];       /* the reason of the last one */
    struct iris_gate_visitor *visitors;
    struct iris_gate_source sources[IRIS_GATE_SOURCES];
};

/* A proven connection: a blocking socket that the caller closes. -1: none. */
struct iris_gate_entry {
    int sock;
    struct iris_proof_claims claims;
};

/* Opens a gate at a listener, which it makes non-blocking and does not close.
 * The caller sets `admit` and `arg` before the first step. With more than
 * `most` connections at once, the oldest is dropped; the other side may try
 * again. IRIS_ERR_LIMIT, IRIS_ERR_NO_MEMORY */
iris_status_t iris_i_gate_open(struct iris_gate *gate, int listener,
                               const struct iris_secret *secret, int most);

/* Drops all connections that the caller has not got. */
void iris_i_gate_close(struct iris_gate *gate);

/* Does all that is possible without blocking. Call again while it returns an
 * entry. IRIS_ERR_LIMIT: the process has no descriptor for a connection, even
 * though the gate holds none; the connection keeps waiting. */
iris_status_t iris_i_gate_step(struct iris_gate *gate,
                               struct iris_gate_entry *entry_p);

/* After IRIS_ERR_LIMIT, and after the caller has closed a reserved descriptor:
 * tells one waiting connection that there are no descriptors. */
void iris_i_gate_turn_away(struct iris_gate *gate);

/* The longest time until the next step, or -1: until `poll` is readable. */
int64_t iris_i_gate_patience_ns(const struct iris_gate *gate);

/* ---- session.c ---- */

/* The most pieces of data that a session has on loan. */
#define IRIS_SESSION_LENT 64

/* Lent data: the bytes of the stream from `at` to `end`. */
struct iris_session_lent {
    uint64_t at;
    uint64_t end;
    const unsigned char *data;
    unsigned char *copy; /* after a recall(); then it is `data` */
};

struct iris_session {
    int sock;    /* the connection, which the caller closes; -1: none */
    size_t most; /* payload of the largest record */

    unsigned char *in; /* received bytes: from in_at to in_end */
    size_t in_at;
    size_t in_end;
    uint64_t received; /* bytes of all connections */
    uint64_t applied;  /* bytes of the records that take() returned */
    uint64_t told;     /* value of `applied` in the last record put here */

    unsigned char *out; /* a ring of the copied bytes from `acked` to `end` */
    size_t out_room;    /* its size, a power of two */
    uint64_t copied;    /* bytes that were put into this ring */
    uint64_t acked;     /* bytes that the other side has applied */
    uint64_t sent;      /* bytes passed to the connection */
    uint64_t high;      /* the highest `sent` of all connections */
    uint64_t end;       /* bytes put */
    int is_stuck;       /* the connection did not take all of them */
    int is_last;        /* the last record was put */

    int num_lent;
    struct iris_session_lent lent[IRIS_SESSION_LENT]; /* as in the stream */
};

/* Prepares a session without a connection. 0: no memory. The caller closes it
 * in both cases. */
int iris_i_session_open(struct iris_session *session, size_t most);
void iris_i_session_close(struct iris_session *session);

/* Adds a record of two pieces and keeps it until the other side has applied it.
 * Sends nothing. 0: no memory; the session is unchanged. */
int iris_i_session_put(struct iris_session *session, const void *head,
                       size_t head_bytes, const void *data, size_t bytes);

/* Like put(), but leaves `data` in place. The caller may change it only after
 * returned() or recall() has returned it. 0: no memory, or IRIS_SESSION_LENT
 * pieces are lent. */
int iris_i_session_lend(struct iris_session *session, const void *head,
                        size_t head_bytes, const void *data, size_t bytes);

/* The first lent data that the other side has applied; NULL: none. */
const void *iris_i_session_returned(struct iris_session *session);

/* Copies the first lent data that is not copied yet, and returns it early. NULL:
 * none is lent. 0: no memory. */
int iris_i_session_recall(struct iris_session *session, const void **data_p);

/* The other side will acknowledge no more: returned() returns all lent data. */
void iris_i_session_abandon(struct iris_session *session);

/* Adds the last record: this side will send and read no more. 0: no memory. */
int iris_i_session_put_end(struct iris_session *session);

/* Adds an acknowledgement if the other side needs one, and none behind the last
 * record. 0: no memory. */
int iris_i_session_tell(struct iris_session *session);

/* Bytes that the other side has not acknowledged. */
static inline size_t iris_i_session_pending(const struct iris_session *session)
{
    return (size_t)(session->end - session->acked);
}

/* Sends and receives without waiting. 1: some bytes; 0: none; -1: the
 * connection has ended, with errno (0: the other side has closed it). */
int iris_i_session_send(struct iris_session *session);
int iris_i_session_receive(struct iris_session *session);

enum iris_session_taken {
    IRIS_SESSION_NONE,     /* no complete record has arrived */
    IRIS_SESSION_RECORD,   /* valid until the next receive() */
    IRIS_SESSION_END,      /* the other side sends and reads no more */
    IRIS_SESSION_NONSENSE, /* the session cannot go on */
};

enum iris_session_taken iris_i_session_take(struct iris_session *session,
                                            const void **data_p,
                                            size_t *bytes_p);

/* Goes on with a new connection to the other side, which has received `theirs`
 * bytes. 0: no session has these; then nothing is changed. */
int iris_i_session_resume(struct iris_session *session, int sock,
                          uint64_t theirs);

/* ---- socket.c ----
 *
 * Sockets for the rendezvous, local or TCP: messages with at most one file
 * descriptor each, and deadlines. The functions distinguish a dead peer from a
 * silent one. */

/* Listens under a name in the abstract namespace (no file). Other users see the
 * name, so it is no secret. The caller closes *sock_p. IRIS_ERR_BOOTSTRAP: the
 * name is in use; the message names the owner. */
iris_status_t iris_i_socket_listen(const char *name, int backlog, int *sock_p);

/* Sets a limit, so that no connect() or send() on the socket blocks forever. */
void iris_i_socket_bound_sends(int sock);

/* Makes a socket for iris_i_socket_connect(); the caller closes it.
 * IRIS_ERR_LIMIT, IRIS_ERR_SYSTEM */
iris_status_t iris_i_socket_make(int *sock_p);

/* One attempt to connect `sock` to the listener of that name. IRIS_ERR_STATE, with
 * no message: nobody listens. IRIS_ERR_BOOTSTRAP: the listener is another
 * user's. */
iris_status_t iris_i_socket_try_connect(int sock, const char *name);

/* Repeats iris_i_socket_try_connect() until there is a listener or the wait has
 * to end. */
iris_status_t iris_i_socket_connect(int sock, const char *name,
                                    struct iris_wait *wait);

/* Accepts a waiting connection of this user. *pid_p is the other side's
 * process.
 * - IRIS_ERR_BOOTSTRAP: another user's connection, which was refused; the
 *   caller may go on.
 * - IRIS_ERR_STATE: the connection is gone; the caller may go on.
 * - IRIS_ERR_LIMIT: no descriptors; the connection keeps waiting. */
iris_status_t iris_i_socket_accept(int listener, int *sock_p, pid_t *pid_p);

/* Space for a descriptor that travels with a message. */
union iris_socket_control {
    struct cmsghdr header;
    char space[CMSG_SPACE(sizeof(int))];
};

/* Adds a descriptor to the message, unless fd is -1. The descriptor and
 * `control` must live until the message is sent. */
void iris_i_socket_attach(struct msghdr *message,
                          union iris_socket_control *control, int fd);

/* Sends one message, with a descriptor unless fd is -1.
 * IRIS_ERR_PEER_LOST, IRIS_ERR_TIMEOUT (the other side has not read for
 * IRIS_SOCKET_PATIENCE_MS), IRIS_ERR_SYSTEM */
iris_status_t iris_i_socket_send(int sock, const void *data, size_t bytes,
                                 int fd);

/* 1 if there is something to receive, or to accept; never waits. */
int iris_i_socket_is_readable(int sock);

/* A message that is being received, with a descriptor or -1. */
struct iris_socket_message {
    void *data;
    size_t bytes;
    size_t done; /* bytes that have come */
    int fd;      /* begins as -1; the caller closes it */
    int is_lost; /* the process had no room for the descriptor */
    int is_long; /* it has more bytes */
    int error;   /* the errno that ended the connection, or 0 */
};

/* Receives as much of one message of exactly `bytes` as is there, and never
 * waits. IRIS_ERR_STATE, without a message: call again later. The other results
 * are those of iris_i_socket_receive(). */
iris_status_t iris_i_socket_take(int sock, struct iris_socket_message *message);

/* 1 if the other side has closed the connection and everything was received.
 * errno tells how, as after iris_i_socket_receive(). */
int iris_i_socket_has_ended(int sock);

/* Whether it was the network that ended the connection. */
int iris_i_socket_is_cut(int error);

/* The end of a rank's connection, in words that follow the rank's name: "died",
 * or its host does not answer. */
const char *iris_i_socket_end(int error);

/* Receives one message of exactly `bytes`, and waits for it. *fd_p gets its
 * descriptor or -1; the caller closes it. Returns the wait's status,
 * IRIS_ERR_PEER_LOST (closed; errno is the system's error, or 0), IRIS_ERR_LIMIT (the process had no room for the
 * descriptor; the data was received), or IRIS_ERR_BOOTSTRAP (not one of our
 * messages). */
iris_status_t iris_i_socket_receive(int sock, void *data, size_t bytes,
                                    struct iris_wait *wait, int *fd_p);

/* The process on the other side of a local socket; 0: it is not known. */
pid_t iris_i_socket_peer(int sock);

#endif /* IRIS_SRC_BASE_LINK_H */
