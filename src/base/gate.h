/* SPDX-License-Identifier: MIT
 *
 * A listener whose connections have to prove a secret (proof.h) before the
 * caller gets them. It serves all of them at once and never blocks.
 */
#ifndef IRIS_SRC_BASE_GATE_H
#define IRIS_SRC_BASE_GATE_H

#include <stdint.h>

#include "base/proof.h"

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
    unsigned num_failed; /* connections that did not prove the secret */
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

#endif /* IRIS_SRC_BASE_GATE_H */
