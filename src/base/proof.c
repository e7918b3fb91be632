/* SPDX-License-Identifier: MIT
 *
 * Secrets, and the handshake by which two sides of a connection prove one.
 *
 * The handshake is a challenge and response with HMAC-SHA256. Its three messages
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

#include "base/link.h"

#include "base/base.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

/* SHA-256 as in FIPS 180-4 and HMAC as in RFC 2104. The tests compare them with
 * the published vectors. */

#define BLOCK_BYTES 64

/* ---- SHA-256 ---- */

struct sha256 {
    uint32_t state[8];
    uint64_t bytes; /* hashed so far */
    unsigned char block[BLOCK_BYTES];
};

/* The first 32 bits of the fractional parts of the cube roots of the first 64
 * primes (FIPS 180-4, 4.2.2). */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1,
    0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3,
    0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786,
    0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13,
    0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
    0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a,
    0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static void begin_hash(struct sha256 *hash)
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372,
                                        0xa54ff53a, 0x510e527f, 0x9b05688c,
                                        0x1f83d9ab, 0x5be0cd19};

    memcpy(hash->state, initial, sizeof initial);
    hash->bytes = 0;
}

static uint32_t rotate_right(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static void expand_block(const unsigned char *block, uint32_t words[64])
{
    for (int i = 0; i < 16; i++) {
        words[i] = (uint32_t)block[4 * i] << 24 |
                   (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t a = words[i - 15], b = words[i - 2];

        words[i] = words[i - 16] + words[i - 7] +
                   (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) +
                   (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
}

/* The compression function. The working variables a to h of the standard are
 * v[0] to v[7]. */
static void hash_block(struct sha256 *hash)
{
    uint32_t words[64], v[8];

    expand_block(hash->block, words);
    memcpy(v, hash->state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t one = v[7] +
                       (rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^
                        rotate_right(v[4], 25)) +
                       ((v[4] & v[5]) ^ (~v[4] & v[6])) + round_constants[i] +
                       words[i];
        uint32_t two = (rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^
                        rotate_right(v[0], 22)) +
                       ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));

        memmove(&v[1], &v[0], 7 * sizeof v[0]);
        v[4] += one;
        v[0] = one + two;
    }
    for (int i = 0; i < 8; i++) {
        hash->state[i] += v[i];
    }
}

static void hash_bytes(struct sha256 *hash, const void *data, size_t bytes)
{
    const unsigned char *at = data;

    while (bytes > 0) {
        size_t filled = hash->bytes % BLOCK_BYTES, room = BLOCK_BYTES - filled;
        size_t part = bytes < room ? bytes : room;

        memcpy(hash->block + filled, at, part);
        hash->bytes += part;
        at += part;
        bytes -= part;
        if (part == room) {
            hash_block(hash);
        }
    }
}

/* Appends a bit of 1, zeros, and the number of bits. */
static void end_hash(struct sha256 *hash,
                     unsigned char digest[IRIS_DIGEST_BYTES])
{
    unsigned char padding[BLOCK_BYTES] = {0x80}, length[8];
    uint64_t bits = 8 * hash->bytes;
    size_t filled = hash->bytes % BLOCK_BYTES;

    for (int i = 0; i < 8; i++) {
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    }
    hash_bytes(hash, padding, (filled < 56 ? 56 : 120) - filled);
    hash_bytes(hash, length, sizeof length);
    for (int i = 0; i < IRIS_DIGEST_BYTES; i++) {
        digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void iris_i_sha256(const void *data, size_t bytes,
                   unsigned char digest[IRIS_DIGEST_BYTES])
{
    struct sha256 hash;

    begin_hash(&hash);
    hash_bytes(&hash, data, bytes);
    end_hash(&hash, digest);
}

/* ---- HMAC ---- */

/* Begins a hash with the key's block, of which each byte is changed by
 * `pad`. */
static void begin_keyed(struct sha256 *hash,
                        const unsigned char block[BLOCK_BYTES],
                        unsigned char pad)
{
    unsigned char padded[BLOCK_BYTES];

    for (int i = 0; i < BLOCK_BYTES; i++) {
        padded[i] = block[i] ^ pad;
    }
    begin_hash(hash);
    hash_bytes(hash, padded, sizeof padded);
}

void iris_i_hmac_sha256(const void *key, size_t key_bytes, const void *data,
                        size_t bytes, unsigned char mac[IRIS_DIGEST_BYTES])
{
    unsigned char block[BLOCK_BYTES] = {0}, inner[IRIS_DIGEST_BYTES];
    struct sha256 hash;

    if (key_bytes > sizeof block) {
        iris_i_sha256(key, key_bytes, block);
    } else {
        memcpy(block, key, key_bytes);
    }
    begin_keyed(&hash, block, 0x36);
    hash_bytes(&hash, data, bytes);
    end_hash(&hash, inner);
    begin_keyed(&hash, block, 0x5c);
    hash_bytes(&hash, inner, sizeof inner);
    end_hash(&hash, mac);
}

/* ---- Secrets ---- */

iris_status_t iris_i_secret_random(void *data, size_t bytes)
{
    unsigned char *at = data;

    while (bytes > 0) {
        ssize_t got = getrandom(at, bytes, 0);

        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                     "the system gives no random bytes");
        }
        at += got;
        bytes -= (size_t)got;
    }
    return IRIS_OK;
}

void iris_i_secret_derive(const struct iris_secret *secret, const char *label,
                          struct iris_secret *derived_p)
{
    struct iris_secret derived;

    iris_i_hmac_sha256(secret->bytes, sizeof secret->bytes, label,
                       strlen(label), derived.bytes);
    *derived_p = derived;
}

void iris_i_secret_name(const struct iris_secret *secret, const char *label,
                        char name[IRIS_SECRET_NAME_BYTES])
{
    struct iris_secret derived;

    iris_i_secret_derive(secret, label, &derived);
    for (int i = 0; i < (IRIS_SECRET_NAME_BYTES - 1) / 2; i++) {
        snprintf(name + 2 * i, 3, "%02x", derived.bytes[i]);
    }
}

int iris_i_secret_equal(const void *a, const void *b, size_t bytes)
{
    const volatile unsigned char *left = a, *right = b;
    unsigned difference = 0;

    for (size_t i = 0; i < bytes; i++) {
        difference |= (unsigned)(left[i] ^ right[i]);
    }
    return difference == 0;
}

/* ---- The handshake ---- */

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
            proof->error = moved < 0 ? errno : 0;
            return fail_proof(proof, IRIS_PROOF_GONE);
        }
        proof->done += (size_t)moved;
    }
    proof->done = 0;
    return IRIS_PROOF_PROVEN;
}

/* Tells the connector that its secret is another one. The message fits into the
 * socket's buffer unless the connector misbehaves. */
static enum iris_proof_result refuse_claim(struct iris_proof *proof)
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
        return refuse_claim(proof);
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

static void decide_verdict(struct iris_proof *proof, unsigned char verdict,
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
    decide_verdict(proof, WELCOME, claims, bytes);
}

void iris_i_proof_refuse(struct iris_proof *proof, const char *reason)
{
    decide_verdict(proof, REFUSED, reason,
                   strnlen(reason, IRIS_PROOF_CLAIMS_MOST - 1));
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
