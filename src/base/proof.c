/* SPDX-License-Identifier: MIT
 *
 * The handshake, a challenge and response with HMAC-SHA256. Its three messages
 * have fixed sizes and consist of bytes:
 *
 *   acceptor:  greeting = magic, nonce A
 *   connector: claim    = magic, nonce C, claims, HMAC(secret, "connector",
 *                         nonce A, nonce C, claims)
 *   acceptor:  answer   = verdict, claims, HMAC(secret, "acceptor", nonce A,
 *                         nonce C, the connector's claims, verdict, claims)
 *              or, if the claim's HMAC is wrong: zeros
 *
 * - An acceptor without descriptors sends another magic and closes.
 * - The magic contains the version of the protocol.
 * - The secret is not sent. The acceptor sends nothing that depends on it
 *   before the connector has proven that it knows it.
 * - Each side chooses a new nonce, so a recorded message proves nothing later.
 * - The two roles have different labels, so no side can be made to answer its
 *   own challenge.
 * - A proof covers the claims of its sender. Claims of both sides thus belong
 *   to this connection.
 *
 * The handshake does not protect the bytes after it. An attacker on the way can
 * change packets and so take over a proven connection.
 *
 * Stages. The acceptor sends the greeting, receives the claim, waits for
 * iris_i_proof_answer() and sends the answer. The connector receives, sends and
 * receives. Every stage has one message, of which `done` bytes have passed.
 */
#include "config.h"

#include "base/base.h"

#include "base/link.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#define CLAIMS_BYTES sizeof(struct iris_proof_claims)

static const unsigned char magic[IRIS_PROOF_MAGIC_BYTES] = "irisprf1";
static const unsigned char full[IRIS_PROOF_MAGIC_BYTES] = "irisfull";

enum { WRONG, WELCOME, REFUSED };

enum { GREETING, CLAIM, DECIDING, ANSWER, ENDED };

/* The HMAC of a role. The acceptor's covers the claims of both. */
static void make_mac(const struct iris_proof *proof, enum iris_proof_role role,
                     unsigned char mac[IRIS_DIGEST_BYTES])
{
    static const char label[2][10] = {[IRIS_PROOF_ACCEPTOR] = "acceptor",
                                      [IRIS_PROOF_CONNECTOR] = "connector"};
    unsigned char data[sizeof label[0] + 2 * IRIS_PROOF_NONCE_BYTES +
                       2 * CLAIMS_BYTES + sizeof proof->answer.verdict];
    const struct {
        const void *data;
        size_t bytes;
    } parts[] = {
        {label[role], sizeof label[role]},
        {proof->greeting.nonce, IRIS_PROOF_NONCE_BYTES},
        {proof->claim.greeting.nonce, IRIS_PROOF_NONCE_BYTES},
        {&proof->claim.claims, CLAIMS_BYTES},
        {&proof->answer, role == IRIS_PROOF_ACCEPTOR
                             ? CLAIMS_BYTES + sizeof proof->answer.verdict
                             : 0},
    };
    size_t bytes = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        memcpy(data + bytes, parts[i].data, parts[i].bytes);
        bytes += parts[i].bytes;
    }
    iris_i_hmac_sha256(proof->secret.bytes, sizeof proof->secret.bytes, data,
                       bytes, mac);
}

static int is_mac(const struct iris_proof *proof, enum iris_proof_role role,
                  const unsigned char mac[IRIS_DIGEST_BYTES])
{
    unsigned char right[IRIS_DIGEST_BYTES];

    make_mac(proof, role, right);
    return iris_i_secret_equal(right, mac, sizeof right);
}

static void set_claims(struct iris_proof_claims *claims, const void *data,
                       size_t bytes)
{
    bytes = bytes < IRIS_PROOF_CLAIMS_MOST ? bytes : IRIS_PROOF_CLAIMS_MOST;
    memset(claims, 0, sizeof *claims);
    claims->bytes = (unsigned char)bytes;
    if (bytes != 0) {
        memcpy(claims->data, data, bytes);
    }
}

static int is_greeting(const struct iris_proof_greeting *greeting)
{
    return memcmp(greeting->magic, magic, sizeof magic) == 0;
}

static int is_full(const struct iris_proof_greeting *greeting)
{
    return memcmp(greeting->magic, full, sizeof full) == 0;
}

static enum iris_proof_result fail_proof(struct iris_proof *proof,
                                         enum iris_proof_why why)
{
    proof->why = why;
    proof->stage = ENDED;
    return IRIS_PROOF_FAILED;
}

/* Whether this side sends the stage's message. */
static int is_sender(const struct iris_proof *proof)
{
    return (proof->stage == CLAIM) == (proof->role == IRIS_PROOF_CONNECTOR);
}

static void *stage_message(struct iris_proof *proof, size_t *bytes_p)
{
    switch (proof->stage) {
    case GREETING:
        *bytes_p = sizeof proof->greeting;
        return &proof->greeting;
    case CLAIM:
        *bytes_p = sizeof proof->claim;
        return &proof->claim;
    default:
        *bytes_p = sizeof proof->answer;
        return &proof->answer;
    }
}

/* Moves the stage's message. IRIS_PROOF_PROVEN: all of it has passed. */
static enum iris_proof_result move_message(struct iris_proof *proof)
{
    int sends = is_sender(proof);
    size_t bytes;
    unsigned char *data = stage_message(proof, &bytes);

    while (proof->done < bytes) {
        unsigned char *at = data + proof->done;
        size_t left = bytes - proof->done;
        ssize_t moved =
            sends ? send(proof->sock, at, left, MSG_DONTWAIT | MSG_NOSIGNAL)
                  : recv(proof->sock, at, left, MSG_DONTWAIT);

        if (moved < 0 && errno == EINTR) {
            continue;
        }
        if (moved < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return IRIS_PROOF_PENDING;
        }
        if (moved <= 0) {
            return fail_proof(proof, IRIS_PROOF_GONE);
        }
        proof->done += (size_t)moved;
    }
    proof->done = 0;
    return IRIS_PROOF_PROVEN;
}

/* Tells the connector that its secret is another one. The message fits into the
 * socket's buffer unless the connector misbehaves. */
static enum iris_proof_result refuse(struct iris_proof *proof)
{
    memset(&proof->answer, 0, sizeof proof->answer);
    proof->stage = ANSWER;
    (void)move_message(proof);
    return fail_proof(proof, IRIS_PROOF_WRONG);
}

static enum iris_proof_result check_claim(struct iris_proof *proof)
{
    if (!is_greeting(&proof->claim.greeting) ||
        proof->claim.claims.bytes > IRIS_PROOF_CLAIMS_MOST) {
        return fail_proof(proof, IRIS_PROOF_NOT_IRIS);
    }
    if (!is_mac(proof, IRIS_PROOF_CONNECTOR, proof->claim.mac)) {
        return refuse(proof);
    }
    proof->theirs = proof->claim.claims;
    proof->stage = DECIDING;
    return IRIS_PROOF_CLAIMED;
}

/* Both sides have the answer. */
static enum iris_proof_result end_answer(struct iris_proof *proof)
{
    if (proof->answer.verdict == REFUSED) {
        return fail_proof(proof, IRIS_PROOF_REFUSED);
    }
    proof->stage = ENDED;
    return IRIS_PROOF_PROVEN;
}

static enum iris_proof_result check_answer(struct iris_proof *proof)
{
    if (proof->answer.verdict > REFUSED ||
        proof->answer.claims.bytes > IRIS_PROOF_CLAIMS_MOST) {
        return fail_proof(proof, IRIS_PROOF_NOT_IRIS);
    }
    if (proof->answer.verdict == WRONG ||
        !is_mac(proof, IRIS_PROOF_ACCEPTOR, proof->answer.mac)) {
        return fail_proof(proof, IRIS_PROOF_WRONG);
    }
    proof->theirs = proof->answer.claims;
    return end_answer(proof);
}

/* A stage's message has passed. PENDING: the next stage follows. */
static enum iris_proof_result end_stage(struct iris_proof *proof)
{
    int accepts = proof->role == IRIS_PROOF_ACCEPTOR;

    if (proof->stage == GREETING && !accepts) {
        if (!is_greeting(&proof->greeting)) {
            return fail_proof(proof, is_full(&proof->greeting)
                                         ? IRIS_PROOF_FULL
                                         : IRIS_PROOF_NOT_IRIS);
        }
        make_mac(proof, IRIS_PROOF_CONNECTOR, proof->claim.mac);
    }
    if (proof->stage == CLAIM && accepts) {
        return check_claim(proof);
    }
    if (proof->stage == ANSWER) {
        return accepts ? end_answer(proof) : check_answer(proof);
    }
    proof->stage = proof->stage == GREETING ? CLAIM : ANSWER;
    return IRIS_PROOF_PENDING;
}

enum iris_proof_result iris_i_proof_step(struct iris_proof *proof)
{
    enum iris_proof_result result = IRIS_PROOF_PROVEN;

    if (proof->stage == ENDED) {
        return proof->why == IRIS_PROOF_NO_REASON ? IRIS_PROOF_PROVEN
                                                  : IRIS_PROOF_FAILED;
    }
    if (proof->stage == DECIDING) {
        return IRIS_PROOF_CLAIMED;
    }
    do {
        result = move_message(proof);
        if (result != IRIS_PROOF_PROVEN) {
            break;
        }
        result = end_stage(proof);
    } while (result == IRIS_PROOF_PENDING);
    if (result == IRIS_PROOF_PENDING && iris_i_now_ns() >= proof->deadline_ns) {
        return fail_proof(proof, IRIS_PROOF_LATE);
    }
    return result;
}

iris_status_t iris_i_proof_begin(struct iris_proof *proof,
                                 enum iris_proof_role role, int sock,
                                 const struct iris_secret *secret,
                                 const void *claims, size_t bytes,
                                 int patience_ms)
{
    struct iris_proof_greeting *own =
        role == IRIS_PROOF_ACCEPTOR ? &proof->greeting : &proof->claim.greeting;

    memset(proof, 0, sizeof *proof);
    proof->role = role;
    proof->sock = sock;
    proof->stage = GREETING;
    proof->deadline_ns = iris_i_deadline(patience_ms);
    proof->secret = *secret;
    set_claims(&proof->claim.claims, claims, bytes);
    memcpy(own->magic, magic, sizeof magic);
    return iris_i_secret_random(own->nonce, sizeof own->nonce);
}

static void decide(struct iris_proof *proof, unsigned char verdict,
                   const void *claims, size_t bytes)
{
    proof->answer.verdict = verdict;
    set_claims(&proof->answer.claims, claims, bytes);
    make_mac(proof, IRIS_PROOF_ACCEPTOR, proof->answer.mac);
    proof->stage = ANSWER;
}

void iris_i_proof_answer(struct iris_proof *proof, const void *claims,
                         size_t bytes)
{
    decide(proof, WELCOME, claims, bytes);
}

void iris_i_proof_refuse(struct iris_proof *proof, const char *reason)
{
    decide(proof, REFUSED, reason, strnlen(reason, IRIS_PROOF_CLAIMS_MOST - 1));
}

void iris_i_proof_tell_full(int sock)
{
    struct iris_proof_greeting greeting = {{0}, {0}};

    memcpy(greeting.magic, full, sizeof full);
    (void)send(sock, &greeting, sizeof greeting, MSG_DONTWAIT | MSG_NOSIGNAL);
}

short iris_i_proof_events(const struct iris_proof *proof)
{
    return is_sender(proof) ? POLLOUT : POLLIN;
}

int iris_i_proof_claims(const struct iris_proof *proof, void *claims,
                        size_t bytes)
{
    if (proof->theirs.bytes != bytes) {
        return 0;
    }
    memcpy(claims, proof->theirs.data, bytes);
    return 1;
}

const char *iris_i_proof_reason(const struct iris_proof *proof)
{
    switch (proof->why) {
    case IRIS_PROOF_LATE:
        return "did not prove in time that it knows the job's secret";
    case IRIS_PROOF_GONE:
        return "closed the connection";
    case IRIS_PROOF_NOT_IRIS:
        return "is not a process of Iris, or of another version of it";
    case IRIS_PROOF_FULL:
        return "has no file descriptor left";
    case IRIS_PROOF_REFUSED: /* zeros follow the text */
        return (const char *)proof->theirs.data;
    case IRIS_PROOF_WRONG:
        return "has another secret: it belongs to another job, or its "
               "IRIS_JOB_SECRET or IRIS_JOB_ID differs";
    default:
        return "has proven that it knows the job's secret";
    }
}
