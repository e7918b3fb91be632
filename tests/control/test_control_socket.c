/* SPDX-License-Identifier: MIT
 *
 * The control plane over sockets: who is let in, and what becomes of messages
 * that are none.
 */
#include "config.h"

#include "support/harness.h"

#include <poll.h>

#include "control/control.h"
#include "control/internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/leaks.h"

#define RANKS 3
#define CROWD 150

/* Rank 0's side, with nobody there yet. */
struct root {
    struct iris_hello hello;
    struct iris_log log;
    struct iris_hub hub;
};

static void open_root(struct root *root, enum iris_control_kind kind)
{
    struct iris_control_fds fds;

    memset(root, 0, sizeof *root);
    root->log.num_ranks = RANKS;
    assert_int_equal(iris_i_control_socket_listen(kind, &root->hello, &fds),
                     IRIS_OK);
    root->hub.log = &root->log;
    root->hub.num_ranks = RANKS;
    assert_int_equal(iris_i_secret_random(&root->hub.key, sizeof root->hub.key),
                     IRIS_OK);
    assert_int_equal(iris_i_hub_open(&root->hub, &fds, -1), IRIS_OK);
}

static int come(const struct root *root, enum iris_control_kind kind)
{
    const struct timeval patience = {.tv_sec = 20};
    int sock = socket(kind == IRIS_CONTROL_TCP ? AF_INET : AF_UNIX,
                      SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(sock >= 0);
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(
        connect(sock, (const struct sockaddr *)root->hello.control_address.data,
                root->hello.control_address.bytes),
        0);
    return sock;
}

static void say(int sock, const void *data, size_t bytes)
{
    assert_int_equal(send(sock, data, bytes, MSG_NOSIGNAL), bytes);
}

/* Proves `key` and claims with rank 0, and returns how it ended. */
static enum iris_proof_result prove(int sock, const struct iris_secret *key,
                                    const struct iris_rank_claims *claims,
                                    struct iris_proof *proof)
{
    enum iris_proof_result result = IRIS_PROOF_PENDING;

    assert_int_equal(iris_i_proof_begin(proof, IRIS_PROOF_CONNECTOR, sock, key,
                                        claims, sizeof *claims, 20000),
                     IRIS_OK);
    while (result == IRIS_PROOF_PENDING) {
        struct pollfd pollfd = {.fd = sock,
                                .events = iris_i_proof_events(proof)};

        poll(&pollfd, 1, 100);
        result = iris_i_proof_step(proof);
    }
    return result;
}

static void check_refused(const struct root *root, enum iris_control_kind kind,
                          const struct iris_secret *key,
                          struct iris_rank_claims claims, const char *why)
{
    int sock = come(root, kind);
    struct iris_proof proof;
    char byte;

    assert_int_equal(prove(sock, key, &claims, &proof), IRIS_PROOF_FAILED);
    if (strstr(iris_i_proof_reason(&proof), why) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", iris_i_proof_reason(&proof), why);
        fail();
    }
    assert_int_equal(recv(sock, &byte, 1, 0), 0); /* and is closed */
    close(sock);
}

static void check_strangers(struct root *root, enum iris_control_kind kind)
{
    static const struct iris_rank_claims none[] = {
        {RANKS, RANKS, 0}, {0, RANKS, 0}, {-1, RANKS, 0}, {1, 2, 0}};
    struct iris_secret wrong = root->hub.key;

    wrong.bytes[IRIS_SECRET_BYTES - 1] ^= 1;
    check_refused(root, kind, &wrong, (struct iris_rank_claims){1, RANKS, 0},
                  "has another secret");
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        check_refused(root, kind, &root->hub.key, none[i],
                      "is no rank of this job that is to come");
    }
}

/* A rank that has come, and what else claims to be it. */
static int check_rank(struct root *root, enum iris_control_kind kind, int rank)
{
    const struct iris_rank_claims claims = {rank, RANKS, 0};
    int sock = come(root, kind);
    struct iris_proof proof;

    assert_int_equal(prove(sock, &root->hub.key, &claims, &proof),
                     IRIS_PROOF_PROVEN);
    if (rank == 1) {
        check_refused(root, kind, &root->hub.key, claims,
                      "has a rank that has connected already");
    }
    return sock;
}

static void await_end(struct root *root, int rank)
{
    for (int i = 0; i < 20000 && !atomic_load(&root->hub.copy.ended[rank]);
         i++) {
        poll(NULL, 0, 1);
    }
    assert_true(atomic_load(&root->hub.copy.ended[rank]));
}

static void strangers_are_refused_with_the_reason(void **state)
{
    static const enum iris_control_kind kinds[] = {IRIS_CONTROL_UNIX,
                                                   IRIS_CONTROL_TCP};
    struct leaks before;

    (void)state;
    leaks_note(&before);
    for (size_t i = 0; i < 2; i++) {
        struct root root;
        int strangers[CROWD], ranks[2];

        open_root(&root, kinds[i]);
        for (int j = 0; j < CROWD; j++) { /* half of them are silent */
            strangers[j] = come(&root, kinds[i]);
            if (j % 2 == 0) {
                (void)!send(strangers[j], &root, j % 3 == 0 ? 10 : 4000,
                            MSG_NOSIGNAL);
            }
        }
        check_strangers(&root, kinds[i]);
        ranks[0] = check_rank(&root, kinds[i], 1);
        ranks[1] = check_rank(&root, kinds[i], 2);
        for (int j = 0; j < 2; j++) {
            close(ranks[j]);
            await_end(&root, 1 + j);
        }
        for (int j = 0; j < CROWD; j++) {
            close(strangers[j]);
        }
        iris_i_hub_close(&root.hub, 20000);
    }
    assert_int_equal(leaks_found(&before), 0);
}

/* What a rank says that makes no sense ends its connection, and nothing else.
 */
static void a_rank_that_talks_nonsense_has_ended(void **state)
{
    struct root root;
    struct iris_message_head head;
    int ranks[2];

    (void)state;
    open_root(&root, IRIS_CONTROL_UNIX);
    ranks[0] = check_rank(&root, IRIS_CONTROL_UNIX, 1);
    ranks[1] = check_rank(&root, IRIS_CONTROL_UNIX, 2);
    head = iris_i_message_head(IRIS_MESSAGE_HOLD, 2, 1, 0, 0); /* another's */
    say(ranks[0], &head, sizeof head);
    await_end(&root, 1);
    assert_int_equal(atomic_load(&iris_i_hub_place(&root.hub.copy, 1)->users),
                     0);
    assert_false(atomic_load(&root.hub.copy.ended[2]));
    head = iris_i_message_head(IRIS_MESSAGE_SHOWN, 2, 0, IRIS_SHOW_STATE, 0);
    say(ranks[1], &head, sizeof head); /* too short for what it claims */
    await_end(&root, 2);
    iris_i_hub_close(&root.hub, 20000);
    close(ranks[0]);
    close(ranks[1]);
}

static struct iris_message_head post_of(int rank, uint64_t seq, size_t bytes)
{
    struct iris_message_head head =
        iris_i_message_head(IRIS_MESSAGE_POST, rank, 0, seq, bytes);

    head.members = RANKS;
    return head;
}

/* Rank 0 passes posts on together, once the last has come. */
static void the_last_post_of_an_agreement_is_urgent(void **state)
{
    struct iris_hub_copy copy = {.segment = NULL};

    (void)state;
    assert_int_equal(iris_i_hub_copy_open(&copy, RANKS), IRIS_OK);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        for (int rank = 0; rank < RANKS; rank++) {
            struct iris_message_head head = post_of(rank, seq, 0);

            assert_int_equal(iris_i_hub_apply(&copy, &head, NULL),
                             rank == RANKS - 1 ? IRIS_HUB_URGENT
                                               : IRIS_HUB_PATIENT);
        }
    }
    iris_i_hub_copy_close(&copy);
}

static void close_all(struct root *root, const int ranks[2])
{
    close(ranks[0]);
    close(ranks[1]);
    iris_i_hub_close(&root->hub, 20000);
}

/* Others want to know who has come while they wait for the rest. */
static void a_post_is_passed_on_though_others_are_late(void **state)
{
    struct iris_message_head head = post_of(1, 1, 0);
    char body[IRIS_MESSAGE_MOST];
    struct root root;
    int ranks[2];

    (void)state;
    open_root(&root, IRIS_CONTROL_UNIX);
    ranks[0] = check_rank(&root, IRIS_CONTROL_UNIX, 1);
    ranks[1] = check_rank(&root, IRIS_CONTROL_UNIX, 2);
    say(ranks[0], &head, sizeof head);
    do { /* and what the others show */
        assert_int_equal(recv(ranks[1], &head, sizeof head, MSG_WAITALL),
                         sizeof head);
        if (head.bytes != 0) {
            assert_int_equal(recv(ranks[1], body, head.bytes, MSG_WAITALL),
                             head.bytes);
        }
    } while (head.type == IRIS_MESSAGE_SHOWN);
    assert_int_equal(head.type, IRIS_MESSAGE_POST);
    close_all(&root, ranks);
}

/* Takes all there is to read. */
static void drain(int sock)
{
    static unsigned char data[1 << 16];

    while (recv(sock, data, sizeof data, MSG_DONTWAIT) > 0) {
    }
}

/* It may be a process that was stopped. All learn which rank it is. */
static void a_rank_that_does_not_read_is_cut_off(void **state)
{
    static const unsigned char data[IRIS_POST_BYTES];
    const struct iris_part parts[2] = {{data, sizeof data}, {NULL, 0}};
    struct iris_shown shown;
    struct root root;
    int ranks[2];

    (void)state;
    open_root(&root, IRIS_CONTROL_UNIX);
    ranks[0] = check_rank(&root, IRIS_CONTROL_UNIX, 1);
    ranks[1] = check_rank(&root, IRIS_CONTROL_UNIX, 2);
    for (uint64_t i = 1; i <= 2 * IRIS_LINK_MOST / sizeof data; i++) {
        struct iris_message_head head = post_of(0, i, sizeof data);

        iris_i_hub_say(&root.hub, &head, parts);
        drain(ranks[1]);
    }
    await_end(&root, 1);
    iris_i_board_read(iris_i_hub_board(&root.hub.copy, 1), IRIS_SHOW_ALL,
                      &shown);
    assert_int_equal(shown.state, IRIS_RANK_LEFT);
    assert_non_null(strstr(shown.reason, "it has left 64 MiB of messages"));
    assert_false(atomic_load(&root.hub.copy.ended[2]));
    close_all(&root, ranks);
}

static void a_listener_without_descriptors_says_so(void **state)
{
    struct iris_control_fds fds;
    struct iris_hello hello;
    struct rlimit limit, few;
    int next = dup(STDOUT_FILENO);

    (void)state;
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    few.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(
        iris_i_control_socket_listen(IRIS_CONTROL_UNIX, &hello, &fds),
        IRIS_ERR_LIMIT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static int TEST_FILE(unit)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_are_refused_with_the_reason),
        cmocka_unit_test(a_rank_that_talks_nonsense_has_ended),
        cmocka_unit_test(the_last_post_of_an_agreement_is_urgent),
        cmocka_unit_test(a_post_is_passed_on_though_others_are_late),
        cmocka_unit_test(a_rank_that_does_not_read_is_cut_off),
        cmocka_unit_test(a_listener_without_descriptors_says_so),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
