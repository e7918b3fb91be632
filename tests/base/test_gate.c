/* SPDX-License-Identifier: MIT
 *
 * The gate at a TCP listener: strangers of all kinds beside one connection that
 * knows the secret.
 */
#include "config.h"

#include <iris/iris.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/link.h"
#include "support/harness.h"

#define MOST 16
#define AT_ONCE 2000

static const struct iris_secret secret = {"the job's secret of 32 bytes...."};
static const struct iris_secret other = {"another job's secret of 32 bytes"};
static struct iris_gate gate;
static struct sockaddr_in address;
static int listener;
static const char *refusal;

static const char *admit(void *arg, const struct iris_proof_claims *theirs,
                         struct iris_proof_claims *own_p)
{
    *own_p = *theirs;
    return refusal;
}

static int setup(void **state)
{
    socklen_t bytes = sizeof address;

    refusal = NULL;
    address = (struct sockaddr_in){.sin_family = AF_INET,
                                   .sin_addr = {htonl(INADDR_LOOPBACK)}};
    listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(
        bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 512), 0);
    getsockname(listener, (struct sockaddr *)&address, &bytes);
    assert_int_equal(iris_i_gate_open(&gate, listener, &secret, MOST), IRIS_OK);
    gate.admit = admit;
    return 0;
}

static int teardown(void **state)
{
    iris_i_gate_close(&gate);
    close(listener);
    return 0;
}

/* A connection from 127.0.0.`host`. */
static int dial(int host)
{
    struct sockaddr_in own = {
        .sin_family = AF_INET,
        .sin_addr = {htonl(0x7f000000u + (unsigned)host)}};
    int sock = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(sock, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(sock, (struct sockaddr *)&address, sizeof address),
                     0);
    return sock;
}

/* Both sides take steps until the connector is done. Returns its result, and
 * the entry. */
static enum iris_proof_result prove(struct iris_proof *proof,
                                    struct iris_gate_entry *entry_p)
{
    struct iris_gate_entry entry = {.sock = -1};
    enum iris_proof_result result = IRIS_PROOF_PENDING;

    entry_p->sock = -1;
    while (result == IRIS_PROOF_PENDING ||
           (result == IRIS_PROOF_PROVEN && entry_p->sock < 0)) {
        assert_int_equal(iris_i_gate_step(&gate, &entry), IRIS_OK);
        if (entry.sock >= 0) {
            *entry_p = entry;
        }
        result = iris_i_proof_step(proof);
    }
    return result;
}

static enum iris_proof_result join(int host, const struct iris_secret *key,
                                   struct iris_proof *proof)
{
    struct iris_gate_entry entry;
    enum iris_proof_result result;
    int sock = dial(host);

    assert_int_equal(
        iris_i_proof_begin(proof, IRIS_PROOF_CONNECTOR, sock, key, "me", 2, 0),
        IRIS_OK);
    result = prove(proof, &entry);
    if (result == IRIS_PROOF_PROVEN) {
        assert_int_equal(entry.claims.bytes, 2);
        assert_memory_equal(entry.claims.data, "me", 2);
        close(entry.sock);
    }
    close(sock);
    return result;
}

/* Whether the other side has closed. */
static int is_closed(int sock)
{
    char data[512];
    ssize_t got;

    do {
        got = recv(sock, data, sizeof data, MSG_DONTWAIT);
    } while (got > 0);
    return got == 0;
}

static TEST(strangers_hold_up_nobody)
{
    static const char garbage[4096] = "GET / HTTP/1.0\r\n\r\n";
    struct iris_gate_entry entry;
    struct iris_proof proof;
    int socks[3 * MOST];

    for (int i = 0; i < 3 * MOST; i++) {
        socks[i] = dial(1);
        if (i % 3 == 1) {
            (void)!write(socks[i], garbage, sizeof garbage);
        } else if (i % 3 == 2) {
            close(socks[i]);
        }
        assert_int_equal(iris_i_gate_step(&gate, &entry), IRIS_OK);
        assert_int_equal(entry.sock, -1);
    }
    assert_int_equal(join(1, &secret, &proof), IRIS_PROOF_PROVEN);
    for (int i = 0; i < 3 * MOST; i++) {
        if (i % 3 != 2) {
            close(socks[i]);
        }
    }
}

static TEST(the_oldest_gives_way)
{
    struct iris_gate_entry entry;
    int socks[MOST + 1];

    for (int i = 0; i <= MOST; i++) {
        assert_false(i > 0 && is_closed(socks[0]));
        socks[i] = dial(1);
        while (gate.num_arrived <= (uint64_t)i) {
            assert_int_equal(iris_i_gate_step(&gate, &entry), IRIS_OK);
        }
    }
    while (!is_closed(socks[0])) {
    }
    assert_false(is_closed(socks[1]));
    for (int i = 0; i <= MOST; i++) {
        close(socks[i]);
    }
}

static TEST(a_refusal_tells_its_reason)
{
    struct iris_proof proof;

    refusal = "rank 1 is here already";
    assert_int_equal(join(1, &secret, &proof), IRIS_PROOF_FAILED);
    assert_string_equal(iris_i_proof_reason(&proof), refusal);
    assert_int_equal(gate.num_failed, 1);
    assert_string_equal(gate.why, refusal);
}

/* The time of the next check is set by hand, so that the test needs no time. */
static TEST(guesses_from_an_address_wait_and_others_do_not)
{
    struct iris_proof proof, waiting;
    struct iris_gate_entry entry;
    int sock;

    assert_int_equal(join(2, &other, &proof), IRIS_PROOF_FAILED);
    assert_int_equal(proof.why, IRIS_PROOF_WRONG);
    assert_true(gate.sources[0].until_ns > 0);
    gate.sources[0].until_ns = INT64_MAX;
    sock = dial(2);
    assert_int_equal(iris_i_proof_begin(&waiting, IRIS_PROOF_CONNECTOR, sock,
                                        &secret, "me", 2, 0),
                     IRIS_OK);
    while (gate.num_held == 0) {
        assert_int_equal(iris_i_gate_step(&gate, &entry), IRIS_OK);
        assert_int_equal(iris_i_proof_step(&waiting), IRIS_PROOF_PENDING);
    }
    assert_true(iris_i_gate_patience_ns(&gate) > 0);
    assert_int_equal(join(3, &secret, &proof), IRIS_PROOF_PROVEN);
    assert_int_equal(gate.num_held, 1);
    gate.sources[0].until_ns = 0;
    assert_int_equal(prove(&waiting, &entry), IRIS_PROOF_PROVEN);
    assert_int_equal(gate.num_held, 0);
    close(entry.sock);
    close(sock);
}

/* Another thread, which may answer before the gate has taken its next look. */
static void *join_often(void *arg)
{
    struct iris_proof proof;

    for (int i = 0; i < AT_ONCE; i++) {
        int sock = dial(1);

        assert_int_equal(iris_i_proof_begin(&proof, IRIS_PROOF_CONNECTOR, sock,
                                            &secret, "me", 2, 0),
                         IRIS_OK);
        while (iris_i_proof_step(&proof) == IRIS_PROOF_PENDING) {
        }
        close(sock);
    }
    return NULL;
}

static TEST(no_connection_is_lost_that_answers_at_once)
{
    struct iris_gate_entry entry;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, join_often, NULL), 0);
    for (int i = 0; i < AT_ONCE; i += entry.sock >= 0) {
        assert_int_equal(iris_i_gate_step(&gate, &entry), IRIS_OK);
        if (entry.sock >= 0) {
            close(entry.sock);
        }
    }
    pthread_join(thread, NULL);
    assert_int_equal(gate.num_failed, 0);
}

static TEST(without_descriptors_strangers_give_way_first)
{
    struct rlimit before, none;
    struct iris_gate_entry entry;
    struct iris_proof proof;
    int silent = dial(1), sock, spare;

    while (gate.num_arrived == 0) {
        assert_int_equal(iris_i_gate_step(&gate, &entry), IRIS_OK);
    }
    sock = dial(1);
    assert_int_equal(iris_i_proof_begin(&proof, IRIS_PROOF_CONNECTOR, sock,
                                        &secret, "me", 2, 0),
                     IRIS_OK);
    spare = fcntl(listener, F_DUPFD, 0);
    getrlimit(RLIMIT_NOFILE, &before);
    none = before;
    none.rlim_cur = (rlim_t)spare; /* no more than there are now */
    setrlimit(RLIMIT_NOFILE, &none);
    assert_int_equal(prove(&proof, &entry), IRIS_PROOF_PROVEN);
    setrlimit(RLIMIT_NOFILE, &before);
    close(silent);
    silent = dial(1);
    none.rlim_cur = (rlim_t)spare + 1;
    setrlimit(RLIMIT_NOFILE, &none);
    while (iris_i_gate_step(&gate, &entry) == IRIS_OK) {
    }
    close(spare);
    iris_i_gate_turn_away(&gate);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(iris_i_proof_begin(&proof, IRIS_PROOF_CONNECTOR, silent,
                                        &secret, "me", 2, 0),
                     IRIS_OK);
    while (iris_i_proof_step(&proof) == IRIS_PROOF_PENDING) {
    }
    assert_int_equal(proof.why, IRIS_PROOF_FULL);
    close(entry.sock);
    close(sock);
    close(silent);
}

TEST_GROUP_WITH(setup, teardown, unit);
