/* SPDX-License-Identifier: MIT
 *
 * SHA-256 and HMAC against their published vectors, and the handshake against
 * other secrets, changed and replayed bytes, and any split of its messages.
 */
#include "config.h"

#include <iris/iris.h>

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/link.h"
#include "support/harness.h"

static void assert_hex(const unsigned char *data, const char *hex)
{
    char text[3];

    for (size_t i = 0; hex[2 * i] != '\0'; i++) {
        snprintf(text, sizeof text, "%02x", data[i]);
        assert_memory_equal(text, hex + 2 * i, 2);
    }
}

/* The examples of FIPS 180-4, and a text that ends on each border of the
 * padding. */
static TEST(sha256_gives_the_published_digests)
{
    static const struct {
        const char *text;
        const char *digest;
    } rows[] = {
        {"",
         "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc",
         "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmn"
         "hijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    static char million[1000000];
    unsigned char digest[IRIS_DIGEST_BYTES];

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        iris_i_sha256(rows[i].text, strlen(rows[i].text), digest);
        assert_hex(digest, rows[i].digest);
    }
    memset(million, 'a', sizeof million);
    iris_i_sha256(million, sizeof million, digest);
    assert_hex(
        digest,
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* RFC 4231, test cases 1 to 4, 6 and 7. */
static TEST(hmac_gives_the_published_codes)
{
    static const char large[] =
        "This is a test using a larger than block-size key and a larger than "
        "block-size data. The key needs to be hashed before being used by the "
        "HMAC algorithm.";
    unsigned char ones[20], counted[25], many[131], dd[50], cd[50];
    const struct {
        const void *key;
        size_t key_bytes;
        const void *data;
        size_t bytes;
        const char *mac;
    } rows[] = {
        {ones, sizeof ones, "Hi There", 8,
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe", 4, "what do ya want for nothing?", 28,
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {many, 20, dd, sizeof dd,
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {counted, sizeof counted, cd, sizeof cd,
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {many, sizeof many,
         "Test Using Larger Than Block-Size Key - Hash Key First", 54,
         "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
        {many, sizeof many, large, sizeof large - 1,
         "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2"},
    };
    unsigned char mac[IRIS_DIGEST_BYTES];

    memset(ones, 0x0b, sizeof ones);
    memset(many, 0xaa, sizeof many);
    memset(dd, 0xdd, sizeof dd);
    memset(cd, 0xcd, sizeof cd);
    for (size_t i = 0; i < sizeof counted; i++) {
        counted[i] = (unsigned char)(i + 1);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        iris_i_hmac_sha256(rows[i].key, rows[i].key_bytes, rows[i].data,
                           rows[i].bytes, mac);
        assert_hex(mac, rows[i].mac);
    }
}

static TEST(derived_keys_differ_by_label_and_secret)
{
    struct iris_secret a, b, one, two, three;
    char name[IRIS_SECRET_NAME_BYTES];

    assert_int_equal(iris_i_secret_random(&a, sizeof a), IRIS_OK);
    assert_int_equal(iris_i_secret_random(&b, sizeof b), IRIS_OK);
    iris_i_secret_derive(&a, "one", &one);
    iris_i_secret_derive(&a, "two", &two);
    iris_i_secret_derive(&b, "one", &three);
    assert_false(iris_i_secret_equal(&a, &b, sizeof a));
    assert_false(iris_i_secret_equal(&one, &two, sizeof one));
    assert_false(iris_i_secret_equal(&one, &three, sizeof one));
    iris_i_secret_derive(&a, "one", &three);
    assert_true(iris_i_secret_equal(&one, &three, sizeof one));
    iris_i_secret_name(&a, "one", name);
    assert_int_equal(strlen(name), IRIS_SECRET_NAME_BYTES - 1);
    assert_hex(one.bytes, name);
}

/* ---- The handshake ---- */

static const struct iris_secret secret = {"the job's secret of 32 bytes...."};
static const struct iris_secret other = {"another job's secret of 32 bytes"};
static const char claims[] = "rank 1 of 2", reply[] = "rank 0";

/* Two sides, with a relay between them that the test controls. */
struct pair {
    struct iris_proof acceptor;
    struct iris_proof connector;
    const char *refusal; /* the acceptor's; NULL: it welcomes */
    int socks[4]; /* acceptor, its relay, the connector's relay, connector */
};

static void open_pair(struct pair *pair, const struct iris_secret *acceptors,
                      const struct iris_secret *connectors)
{
    int *socks = pair->socks;

    pair->refusal = NULL;
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, &socks[0]), 0);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, &socks[2]), 0);
    assert_int_equal(iris_i_proof_begin(&pair->acceptor, IRIS_PROOF_ACCEPTOR,
                                        socks[0], acceptors, NULL, 0, 0),
                     IRIS_OK);
    assert_int_equal(iris_i_proof_begin(&pair->connector, IRIS_PROOF_CONNECTOR,
                                        socks[3], connectors, claims,
                                        sizeof claims, 0),
                     IRIS_OK);
}

static void close_pair(struct pair *pair)
{
    for (int i = 0; i < 4; i++) {
        close(pair->socks[i]);
    }
}

/* One step of the acceptor, with its decision. */
static enum iris_proof_result step_acceptor(struct pair *pair)
{
    enum iris_proof_result result = iris_i_proof_step(&pair->acceptor);

    if (result == IRIS_PROOF_CLAIMED && pair->refusal != NULL) {
        iris_i_proof_refuse(&pair->acceptor, pair->refusal);
        result = iris_i_proof_step(&pair->acceptor);
    } else if (result == IRIS_PROOF_CLAIMED) {
        iris_i_proof_answer(&pair->acceptor, reply, sizeof reply);
        result = iris_i_proof_step(&pair->acceptor);
    }
    return result;
}

/* Moves up to `most` bytes. Byte number `spoil` of this direction is changed.
 * Returns the number of bytes. */
static size_t relay(int from, int to, size_t most, size_t *passed, size_t spoil)
{
    unsigned char data[512];
    ssize_t got = recv(from, data, most, MSG_DONTWAIT);

    if (got <= 0) {
        return 0;
    }
    for (ssize_t i = 0; i < got; i++) {
        data[i] ^= (*passed)++ == spoil;
    }
    assert_int_equal(send(to, data, (size_t)got, 0), got);
    return (size_t)got;
}

/* Runs both sides to the end, with at most `most` bytes at once. `spoil[0]` is
 * the changed byte of the connector's, `spoil[1]` of the acceptor's. */
static void run_pair(struct pair *pair, size_t most, const size_t spoil[2],
                     enum iris_proof_result results[2])
{
    size_t passed[2] = {0, 0}, moved = 1;

    results[0] = results[1] = IRIS_PROOF_PENDING;
    while (moved != 0) {
        results[0] = step_acceptor(pair);
        results[1] = iris_i_proof_step(&pair->connector);
        moved =
            relay(pair->socks[1], pair->socks[2], most, &passed[1], spoil[1]) +
            relay(pair->socks[2], pair->socks[1], most, &passed[0], spoil[0]);
        /* A side that has failed closes its connection. */
        if (results[0] == IRIS_PROOF_FAILED) {
            shutdown(pair->socks[2], SHUT_WR);
        }
        if (results[1] == IRIS_PROOF_FAILED) {
            shutdown(pair->socks[1], SHUT_WR);
        }
    }
}

static const size_t unspoiled[2] = {SIZE_MAX, SIZE_MAX};

static TEST(both_sides_prove_the_secret_and_learn_the_claims)
{
    enum iris_proof_result results[2];
    char theirs[sizeof claims];
    struct pair pair;

    for (size_t most = 1; most < 300; most += most < 8 ? 1 : 97) {
        open_pair(&pair, &secret, &secret);
        run_pair(&pair, most, unspoiled, results);
        assert_int_equal(results[0], IRIS_PROOF_PROVEN);
        assert_int_equal(results[1], IRIS_PROOF_PROVEN);
        assert_true(iris_i_proof_claims(&pair.acceptor, theirs, sizeof claims));
        assert_string_equal(theirs, claims);
        assert_true(iris_i_proof_claims(&pair.connector, theirs, sizeof reply));
        assert_string_equal(theirs, reply);
        assert_false(
            iris_i_proof_claims(&pair.connector, theirs, sizeof reply + 1));
        assert_int_equal(iris_i_proof_step(&pair.acceptor), IRIS_PROOF_PROVEN);
        close_pair(&pair);
    }
}

static TEST(bytes_behind_the_handshake_stay_unread)
{
    struct pair pair;
    char next[8];
    int socks[2];

    open_pair(&pair, &secret, &secret);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, socks), 0);
    pair.acceptor.sock = socks[0];
    pair.connector.sock = socks[1];
    assert_int_equal(step_acceptor(&pair), IRIS_PROOF_PENDING);
    assert_int_equal(iris_i_proof_events(&pair.acceptor), POLLIN);
    assert_int_equal(iris_i_proof_step(&pair.connector), IRIS_PROOF_PENDING);
    assert_int_equal(send(socks[1], "next", 4, 0), 4);
    assert_int_equal(step_acceptor(&pair), IRIS_PROOF_PROVEN);
    assert_int_equal(send(socks[0], "more", 4, 0), 4);
    assert_int_equal(iris_i_proof_step(&pair.connector), IRIS_PROOF_PROVEN);
    assert_int_equal(recv(socks[0], next, sizeof next, 0), 4);
    assert_memory_equal(next, "next", 4);
    assert_int_equal(recv(socks[1], next, sizeof next, 0), 4);
    assert_memory_equal(next, "more", 4);
    close(socks[0]);
    close(socks[1]);
    close_pair(&pair);
}

static TEST(another_secret_fails_on_both_sides)
{
    enum iris_proof_result results[2];
    struct pair pair;

    open_pair(&pair, &secret, &other);
    run_pair(&pair, 512, unspoiled, results);
    assert_int_equal(results[0], IRIS_PROOF_FAILED);
    assert_int_equal(pair.acceptor.why, IRIS_PROOF_WRONG);
    assert_int_equal(results[1], IRIS_PROOF_FAILED);
    assert_int_equal(pair.connector.why, IRIS_PROOF_WRONG);
    assert_int_equal(pair.acceptor.theirs.bytes, 0);
    close_pair(&pair);
}

/* A change of any byte is found by one side at least, and no side believes a
 * claim that the other did not make. */
static TEST(a_changed_byte_proves_nothing)
{
    const size_t bytes[2] = {sizeof(struct iris_proof_claim),
                             sizeof(struct iris_proof_greeting) +
                                 sizeof(struct iris_proof_answer)};
    enum iris_proof_result results[2];
    struct pair pair;

    for (int side = 0; side < 2; side++) {
        for (size_t at = 0; at < bytes[side]; at++) {
            size_t spoil[2] = {SIZE_MAX, SIZE_MAX};

            spoil[side] = at;
            open_pair(&pair, &secret, &secret);
            run_pair(&pair, 512, spoil, results);
            assert_int_equal(results[side], IRIS_PROOF_FAILED);
            assert_int_equal(results[1] == IRIS_PROOF_PROVEN, 0);
            close_pair(&pair);
        }
    }
}

static TEST(a_refusal_is_proven_and_has_a_reason)
{
    enum iris_proof_result results[2];
    struct pair pair;

    open_pair(&pair, &secret, &secret);
    pair.refusal = "rank 1 is here already";
    run_pair(&pair, 512, unspoiled, results);
    assert_int_equal(results[0], IRIS_PROOF_FAILED);
    assert_int_equal(results[1], IRIS_PROOF_FAILED);
    assert_int_equal(pair.connector.why, IRIS_PROOF_REFUSED);
    assert_string_equal(iris_i_proof_reason(&pair.connector), pair.refusal);
    close_pair(&pair);
    open_pair(&pair, &secret, &secret);
    iris_i_proof_tell_full(pair.socks[2]);
    assert_int_equal(iris_i_proof_step(&pair.connector), IRIS_PROOF_FAILED);
    assert_int_equal(pair.connector.why, IRIS_PROOF_FULL);
    close_pair(&pair);
}

/* Sends these bytes to a new acceptor. */
static enum iris_proof_result feed_acceptor(const void *data, size_t bytes,
                                            enum iris_proof_why *why_p)
{
    enum iris_proof_result result;
    struct pair pair;

    open_pair(&pair, &secret, &secret);
    assert_int_equal(send(pair.socks[1], data, bytes, 0), (ssize_t)bytes);
    result = iris_i_proof_step(&pair.acceptor);
    *why_p = pair.acceptor.why;
    close_pair(&pair);
    return result;
}

static TEST(recorded_and_reflected_messages_prove_nothing)
{
    enum iris_proof_result results[2];
    struct iris_proof_claim claim;
    enum iris_proof_why why;
    struct pair pair;

    open_pair(&pair, &secret, &secret);
    run_pair(&pair, 512, unspoiled, results);
    assert_int_equal(feed_acceptor(&pair.connector.claim, sizeof claim, &why),
                     IRIS_PROOF_FAILED);
    assert_int_equal(why, IRIS_PROOF_WRONG);
    /* The acceptor's own answer in place of a claim's code. */
    claim = pair.connector.claim;
    memcpy(claim.mac, pair.acceptor.answer.mac, sizeof claim.mac);
    assert_int_equal(feed_acceptor(&claim, sizeof claim, &why),
                     IRIS_PROOF_FAILED);
    assert_int_equal(why, IRIS_PROOF_WRONG);
    close_pair(&pair);
}

static TEST(garbage_oversized_claims_and_silence_have_reasons)
{
    struct iris_proof_claim claim;
    enum iris_proof_result result;
    enum iris_proof_why why;
    struct pair pair;

    memset(&claim, 'x', sizeof claim);
    assert_int_equal(feed_acceptor(&claim, sizeof claim, &why),
                     IRIS_PROOF_FAILED);
    assert_int_equal(why, IRIS_PROOF_NOT_IRIS);
    open_pair(&pair, &secret, &secret);
    claim = pair.connector.claim;
    claim.claims.bytes = IRIS_PROOF_CLAIMS_MOST + 1;
    assert_int_equal(feed_acceptor(&claim, sizeof claim, &why),
                     IRIS_PROOF_FAILED);
    assert_int_equal(why, IRIS_PROOF_NOT_IRIS);
    close(pair.socks[1]);
    assert_int_equal(iris_i_proof_step(&pair.acceptor), IRIS_PROOF_FAILED);
    assert_int_equal(pair.acceptor.why, IRIS_PROOF_GONE);
    assert_int_equal(iris_i_proof_begin(&pair.connector, IRIS_PROOF_CONNECTOR,
                                        pair.socks[3], &secret, NULL, 0, 1),
                     IRIS_OK);
    do {
        result = iris_i_proof_step(&pair.connector);
    } while (result == IRIS_PROOF_PENDING);
    assert_int_equal(result, IRIS_PROOF_FAILED);
    assert_int_equal(pair.connector.why, IRIS_PROOF_LATE);
    assert_true(strlen(iris_i_proof_reason(&pair.connector)) > 0);
    close_pair(&pair);
}

/* A listener that does not know the secret learns a code over fresh nonces and
 * nothing else. */
static TEST(the_secret_is_not_among_the_bytes_sent)
{
    enum iris_proof_result results[2];
    struct pair pair;

    open_pair(&pair, &secret, &secret);
    run_pair(&pair, 512, unspoiled, results);
    assert_null(memmem(&pair.connector.claim, sizeof pair.connector.claim,
                       secret.bytes, 8));
    assert_null(memmem(&pair.acceptor.answer, sizeof pair.acceptor.answer,
                       secret.bytes, 8));
    close_pair(&pair);
}

TEST_GROUP_WITH(NULL, NULL, unit);
