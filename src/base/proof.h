/* SPDX-License-Identifier: MIT
 *
 * A handshake by which the two sides of a connection prove to each other that
 * they know a secret. The protocol is described in proof.c.
 */
#ifndef IRIS_SRC_BASE_PROOF_H
#define IRIS_SRC_BASE_PROOF_H

#include <stddef.h>
#include <stdint.h>

#include <iris/status.h>

#include "base/secret.h"

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

#endif /* IRIS_SRC_BASE_PROOF_H */
