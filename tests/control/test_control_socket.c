/* SPDX-License-Identifier: MIT
 *
 * The control plane over sockets: who is let in, and what becomes of messages
 * that are none.
 */
#include "config.h"

#include "support/harness.h"

#include <poll.h>

#include "control/board.h"
#include "control/control_socket.h"
#include "control/hub.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "support/leaks.h"

#define RANKS 3

/* Rank 0's side, with nobody there yet. */
struct root {
    struct iris_hello hello;
    struct iris_log log;
    struct iris_hub hub;
};

/* A hello as it should be, and what is changed in it. */
struct __attribute__((packed)) greeting {
    struct iris_message_head head;
    struct iris_message_hello hello;
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
    root->hub.hello.num_ranks = RANKS;
    memcpy(root->hub.hello.secret, root->hello.control_secret,
           IRIS_SECRET_BYTES);
    assert_int_equal(iris_i_hub_open(&root->hub, &fds, -1), IRIS_OK);
}

static struct greeting greet(const struct root *root, int rank)
{
    struct greeting greeting = {.hello = root->hub.hello};

    greeting.head = iris_i_message_head(IRIS_MESSAGE_HELLO, rank, 0, 0,
                                        sizeof greeting.hello);
    return greeting;
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

/* Rank 0's answer, and what it says. */
static int hear(int sock, char text[IRIS_MESSAGE_WHY_BYTES + 1])
{
    struct iris_message_head head;

    memset(text, 0, IRIS_MESSAGE_WHY_BYTES + 1);
    assert_int_equal(recv(sock, &head, sizeof head, MSG_WAITALL), sizeof head);
    if (head.type == IRIS_MESSAGE_REFUSED) {
        assert_true(head.bytes <= IRIS_MESSAGE_WHY_BYTES);
        assert_int_equal(recv(sock, text, head.bytes, MSG_WAITALL), head.bytes);
    }
    return head.type;
}

static void check_refused(const struct root *root, enum iris_control_kind kind,
                          const struct greeting *greeting, const char *why)
{
    char text[IRIS_MESSAGE_WHY_BYTES + 1];
    int sock = come(root, kind);

    say(sock, greeting, sizeof *greeting);
    assert_int_equal(hear(sock, text), IRIS_MESSAGE_REFUSED);
    if (strstr(text, why) == NULL) {
        print_error("\"%s\" lacks \"%s\"\n", text, why);
        fail();
    }
    assert_int_equal(recv(sock, text, 1, 0), 0); /* and is closed */
    close(sock);
}

static void check_strangers(struct root *root, enum iris_control_kind kind)
{
    struct greeting greeting = greet(root, 1);

    greeting.hello.secret[IRIS_SECRET_BYTES - 1] ^= 1;
    check_refused(root, kind, &greeting, "does not know the job's key");
    greeting = greet(root, 1);
    greeting.head.version++;
    check_refused(root, kind, &greeting, "its messages have version 4");
    greeting = greet(root, 1);
    greeting.head.magic++;
    check_refused(root, kind, &greeting, "does not speak the protocol");
    greeting = greet(root, 1);
    greeting.head.bytes = UINT16_MAX;
    check_refused(root, kind, &greeting, "has 65535 bytes");
    greeting = greet(root, 1);
    greeting.head.bytes--;
    check_refused(root, kind, &greeting, "has 35 bytes; 36 to 36 are allowed");
    greeting = greet(root, RANKS);
    check_refused(root, kind, &greeting, "a message names rank 3 of 3");
    greeting = greet(root, 0);
    check_refused(root, kind, &greeting, "the job has ranks 1 to 2 to come");
    greeting = greet(root, 1);
    greeting.hello.num_ranks = 2;
    check_refused(root, kind, &greeting, "it is rank 1 of 2");
    greeting = greet(root, 1);
    greeting.head.type = IRIS_MESSAGE_HOLD;
    greeting.head.bytes = 0;
    check_refused(root, kind, &greeting, "not a hello");
    greeting.head.type = IRIS_MESSAGE_POST;
    check_refused(root, kind, &greeting, "is for 0 members of 3 ranks");
    greeting.head.members = RANKS + 1;
    check_refused(root, kind, &greeting, "is for 4 members of 3 ranks");
}

/* A rank that has come, and what else claims to be it. */
static int check_rank(struct root *root, enum iris_control_kind kind, int rank)
{
    struct greeting greeting = greet(root, rank);
    char text[IRIS_MESSAGE_WHY_BYTES + 1];
    int sock = come(root, kind);

    say(sock, &greeting, 7); /* in pieces */
    say(sock, (const char *)&greeting + 7, sizeof greeting - 7);
    assert_int_equal(hear(sock, text), IRIS_MESSAGE_WELCOME);
    if (rank == 1) {
        check_refused(root, kind, &greeting, "rank 1 has connected already");
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
        int silent, half, ranks[2];

        open_root(&root, kinds[i]);
        silent = come(&root, kinds[i]);
        half = come(&root, kinds[i]);
        say(half, &root.hub.hello, 10);
        check_strangers(&root, kinds[i]);
        ranks[0] = check_rank(&root, kinds[i], 1);
        ranks[1] = check_rank(&root, kinds[i], 2);
        for (int j = 0; j < 2; j++) {
            close(ranks[j]);
            await_end(&root, 1 + j);
        }
        close(silent);
        close(half);
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

int main(void)
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
