/* SPDX-License-Identifier: MIT
 *
 * The hub of a node: who is let in, and what becomes of messages that are none.
 */
#include "config.h"

#include "support/harness.h"

#include <fcntl.h>
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

/* The hub of one rank, a process; the test plays the others, which are on nodes of
 * their own. */
struct root {
    int listeners[RANKS]; /* of the ranks that the test plays; -1: none */
    struct iris_hello hellos[RANKS];
    struct iris_log log;
    struct iris_bootstrap bootstrap;
    struct iris_rendezvous rendezvous;
    struct iris_control_parts parts;
    struct iris_control *control;
    struct iris_secret key;
    pthread_t opener;
    iris_status_t status;
};

static void *open_control(void *arg)
{
    struct root *root = arg;

    root->status = iris_i_control_open(&root->log, &root->rendezvous,
                                       &root->parts, &root->control);
    return NULL;
}

/* The hub of `own`. It opens once all leaders have come. With `listens`, the other
 * ranks listen, so they are not gone without a connection. */
static struct root *open_hub(enum iris_control_kind kind, int own, int listens)
{
    struct root *root = calloc(1, sizeof *root);

    assert_non_null(root);
    root->log.rank = own;
    root->log.num_ranks = RANKS;
    atomic_init(&root->log.level, IRIS_LOG_OFF);
    root->parts = (struct iris_control_parts)IRIS_CONTROL_NO_PARTS;
    for (int rank = 0; rank < RANKS; rank++) {
        struct iris_hello *hello = &root->hellos[rank];

        *hello = (struct iris_hello){.magic = 1,
                                     .rank = rank,
                                     .pid = getpid(),
                                     .part = rank,
                                     .control = (int32_t)kind};
        root->listeners[rank] = -1;
        if (listens && rank != own) {
            root->listeners[rank] =
                iris_i_stream_socket(kind, &hello->control_address);
            assert_int_equal(iris_i_stream_listen(root->listeners[rank], kind,
                                                  &hello->control_address),
                             IRIS_OK);
        }
    }
    assert_int_equal(
        iris_i_control_prepare(kind, &root->hellos[own], &root->parts),
        IRIS_OK);
    root->rendezvous =
        (struct iris_rendezvous){.bootstrap = &root->bootstrap,
                                 .rank = own,
                                 .num_ranks = RANKS,
                                 .begin = iris_i_now_ns(),
                                 .deadline = iris_i_deadline(60000),
                                 .sock = -1,
                                 .hellos = root->hellos};
    assert_int_equal(iris_i_segment_create(RANKS, &root->rendezvous.segment),
                     IRIS_OK);
    iris_i_rendezvous_key(&root->rendezvous, "control", &root->key);
    assert_int_equal(pthread_create(&root->opener, NULL, open_control, root),
                     0);
    return root;
}

static struct root *open_root(enum iris_control_kind kind)
{
    return open_hub(kind, 0, 0);
}

static void close_listener(struct root *root, int rank)
{
    if (root->listeners[rank] >= 0) {
        close(root->listeners[rank]);
        root->listeners[rank] = -1;
    }
}

static void close_root(struct root *root)
{
    iris_i_control_close(root->control);
    for (int rank = 0; rank < RANKS; rank++) {
        close_listener(root, rank);
    }
    free(root);
}

static int come(const struct root *root, enum iris_control_kind kind)
{
    const struct timeval patience = {.tv_sec = 20};
    int sock = socket(kind == IRIS_CONTROL_TCP ? AF_INET : AF_UNIX,
                      SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(sock >= 0);
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(
        connect(sock,
                (const struct sockaddr *)root->hellos[0].control_address.data,
                root->hellos[0].control_address.bytes),
        0);
    return sock;
}

/* Sends a record of a session. */
static void say(int sock, const void *data, size_t bytes)
{
    struct iris_session session;

    assert_true(iris_i_session_open(&session, IRIS_MESSAGE_MOST));
    assert_true(iris_i_session_put(&session, data, bytes, NULL, 0));
    session.sock = sock;
    assert_int_equal(iris_i_session_send(&session), 1);
    iris_i_session_close(&session);
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
        {.rank = RANKS, .num_ranks = RANKS},
        {.rank = 0, .num_ranks = RANKS},
        {.rank = -1, .num_ranks = RANKS},
        {.rank = 1, .num_ranks = 2}};
    struct iris_secret wrong = root->key;

    wrong.bytes[IRIS_SECRET_BYTES - 1] ^= 1;
    check_refused(root, kind, &wrong,
                  (struct iris_rank_claims){.rank = 1, .num_ranks = RANKS},
                  "has another secret");
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        check_refused(root, kind, &root->key, none[i],
                      "is no rank of this job that is to come");
    }
}

/* A rank that has come, and what else claims to be it. */
static int check_rank(struct root *root, enum iris_control_kind kind, int rank)
{
    const struct iris_rank_claims claims = {.rank = rank, .num_ranks = RANKS};
    int sock = come(root, kind);
    struct iris_proof proof;

    assert_int_equal(prove(sock, &root->key, &claims, &proof),
                     IRIS_PROOF_PROVEN);
    if (rank == 1) {
        check_refused(root, kind, &root->key, claims,
                      "has a rank that has connected already");
    }
    return sock;
}

static unsigned has_ended(const struct root *root, int rank)
{
    struct iris_shown shown;

    iris_i_control_read(root->control, rank, IRIS_SHOW_ENDED, &shown);
    return shown.ended;
}

static void await_end(const struct root *root, int rank)
{
    for (int i = 0; i < 20000 && !has_ended(root, rank); i++) {
        poll(NULL, 0, 1);
    }
    assert_true(has_ended(root, rank));
}

/* Both other leaders come. */
static void come_all(struct root *root, enum iris_control_kind kind,
                     int socks[2])
{
    socks[0] = check_rank(root, kind, 1);
    socks[1] = check_rank(root, kind, 2);
    pthread_join(root->opener, NULL);
    assert_int_equal(root->status, IRIS_OK);
}

static TEST(strangers_are_refused_with_the_reason)
{
    static const enum iris_control_kind kinds[] = {IRIS_CONTROL_UNIX,
                                                   IRIS_CONTROL_TCP};
    struct leaks before;

    leaks_note(&before);
    for (size_t i = 0; i < 2; i++) {
        struct root *root = open_root(kinds[i]);
        int strangers[CROWD], socks[2];

        for (int j = 0; j < CROWD; j++) { /* half of them are silent */
            strangers[j] = come(root, kinds[i]);
            if (j % 2 == 0) {
                (void)!send(strangers[j], root, j % 3 == 0 ? 10 : 4000,
                            MSG_NOSIGNAL);
            }
        }
        check_strangers(root, kinds[i]);
        come_all(root, kinds[i], socks);
        for (int j = 0; j < 2; j++) {
            close(socks[j]);
            await_end(root, 1 + j);
        }
        for (int j = 0; j < CROWD; j++) {
            close(strangers[j]);
        }
        close_root(root);
    }
    assert_int_equal(leaks_found(&before), 0);
}

/* A message that makes no sense ends its connection, and nothing else. */
static TEST(a_rank_that_talks_nonsense_has_ended)
{
    struct root *root = open_root(IRIS_CONTROL_UNIX);
    struct iris_message_head head;
    struct iris_shown shown;
    int socks[2];

    come_all(root, IRIS_CONTROL_UNIX, socks);
    head = iris_i_message_head(IRIS_MESSAGE_SHOWN, 2, 0, 0, 0); /* another's */
    say(socks[0], &head, sizeof head);
    await_end(root, 1);
    assert_false(has_ended(root, 2));
    head = iris_i_message_head(IRIS_MESSAGE_SHOWN, 2, 0, IRIS_SHOW_STATE, 0);
    say(socks[1], &head, sizeof head); /* too short for its parts */
    await_end(root, 2);
    iris_i_control_read(root->control, 2, IRIS_SHOW_STATE, &shown);
    assert_int_equal(shown.state, IRIS_RANK_JOINING);
    close(socks[0]);
    close(socks[1]);
    close_root(root);
}

/* The next message, except rows and published states. */
static struct iris_message_head next_message(struct iris_session *session)
{
    struct iris_message_head head;
    const void *data;
    size_t bytes;

    do {
        while (iris_i_session_take(session, &data, &bytes) ==
               IRIS_SESSION_NONE) {
            assert_true(iris_i_session_receive(session) >= 0);
        }
        memcpy(&head, data, sizeof head);
    } while (head.type == IRIS_MESSAGE_SHOWN || head.type == IRIS_MESSAGE_ROW ||
             head.type == IRIS_MESSAGE_ROW_END);
    return head;
}

/* A member may post again before the hub has sent its last post. */
static TEST(posts_arrive_in_order)
{
    const struct iris_part parts[2] = {{"call", 4}, {NULL, 0}};
    struct root *root = open_root(IRIS_CONTROL_UNIX);
    struct iris_session session;
    int socks[2];

    come_all(root, IRIS_CONTROL_UNIX, socks);
    assert_true(iris_i_session_open(&session, IRIS_MESSAGE_MOST));
    session.sock = socks[1];
    for (uint64_t seq = 1; seq <= 2; seq++) {
        const struct iris_post_id id = {0, 0, seq};

        iris_i_control_post(root->control, &id, parts, RANKS);
    }
    for (uint64_t seq = 1; seq <= 2; seq++) {
        struct iris_message_head head = next_message(&session);

        assert_int_equal(head.type, IRIS_MESSAGE_POST);
        assert_int_equal(head.value, seq);
        assert_int_equal(head.members, RANKS);
    }
    iris_i_session_close(&session);
    close(socks[0]);
    close(socks[1]);
    close_root(root);
}

/* Nothing is lost with a connection, and nothing comes twice. */
static TEST(a_link_that_is_cut_is_resumed)
{
    const struct iris_part parts[2] = {{"call", 4}, {NULL, 0}};
    struct root *root = open_hub(IRIS_CONTROL_TCP, 0, 1);
    struct iris_rank_claims claims = {.rank = 1, .num_ranks = RANKS}, theirs;
    struct iris_session session;
    struct iris_proof proof;
    int socks[2];

    come_all(root, IRIS_CONTROL_TCP, socks);
    assert_true(iris_i_session_open(&session, IRIS_MESSAGE_MOST));
    session.sock = socks[0];
    for (uint64_t seq = 1; seq <= 20; seq++) {
        const struct iris_post_id id = {0, 0, seq};

        iris_i_control_post(root->control, &id, parts, RANKS);
        if (seq % 4 == 0) { /* the post may be on its way, or not sent yet */
            close(session.sock);
            session.sock = come(root, IRIS_CONTROL_TCP);
            claims.number++;
            claims.received = session.received;
            assert_int_equal(prove(session.sock, &root->key, &claims, &proof),
                             IRIS_PROOF_PROVEN);
            assert_true(iris_i_proof_claims(&proof, &theirs, sizeof theirs));
            assert_true(
                iris_i_session_resume(&session, session.sock, theirs.received));
        }
        assert_int_equal(next_message(&session).value, seq);
    }
    assert_false(has_ended(root, 1));
    close(session.sock);
    close_listener(root, 1); /* as at the end of its process */
    await_end(root, 1);
    assert_false(has_ended(root, 2));
    iris_i_session_close(&session);
    close(socks[1]);
    close_root(root);
}

/* Whether the link is cut, and its hub's lock is free soon. */
static int await_cut(struct iris_hub *hub, int i)
{
    int64_t by_ns = iris_i_deadline(10000);
    int is_cut = 0;

    while (!is_cut && iris_i_now_ns() < by_ns) {
        if (pthread_mutex_trylock(&hub->lock) == 0) {
            is_cut = hub->links.all[i].state == IRIS_LINK_CUT;
            pthread_mutex_unlock(&hub->lock);
        }
        poll(NULL, 0, 1);
    }
    return is_cut;
}

/* The receiver waits for it, and the sender goes on. */
static TEST(a_full_stderr_does_not_stop_the_hub)
{
    struct root *root = open_hub(IRIS_CONTROL_UNIX, 0, 1);
    int own = dup(STDERR_FILENO), fds[2], socks[2], is_cut;
    char page[4096] = {0};

    come_all(root, IRIS_CONTROL_UNIX, socks);
    assert_int_equal(pipe(fds), 0);
    fcntl(fds[1], F_SETFL, O_NONBLOCK);
    while (write(fds[1], page, sizeof page) > 0) {
    }
    fcntl(fds[1], F_SETFL, 0);
    dup2(fds[1], STDERR_FILENO);
    atomic_store(&root->log.level, IRIS_LOG_INFO);
    close(socks[0]);
    is_cut = await_cut(root->control->hub, 0);
    atomic_store(&root->log.level, IRIS_LOG_OFF);
    dup2(own, STDERR_FILENO);
    close(fds[1]);
    while (read(fds[0], page, sizeof page) > 0) { /* until nobody writes */
    }
    close(fds[0]);
    close(own);
    assert_true(is_cut);
    close_listener(root, 1);
    await_end(root, 1);
    close(socks[1]);
    close_root(root);
}

/* A leader that has closed its hub is not sought, though its process goes on. */
static TEST(a_leader_that_says_the_end_has_ended)
{
    struct root *root = open_hub(IRIS_CONTROL_TCP, 0, 1);
    struct iris_session session;
    int socks[2];

    come_all(root, IRIS_CONTROL_TCP, socks);
    assert_true(iris_i_session_open(&session, IRIS_MESSAGE_MOST));
    session.sock = socks[1];
    assert_true(iris_i_session_put_end(&session));
    assert_int_equal(iris_i_session_send(&session), 1);
    await_end(root, 2);
    assert_false(has_ended(root, 1));
    iris_i_session_close(&session);
    close(socks[0]);
    close(socks[1]);
    close_root(root);
}

/* Else rank 1 would wait for rank 2, and name it for rank 0. */
static TEST(a_leader_that_is_stopped_keeps_no_others_apart)
{
    struct root *root = open_hub(IRIS_CONTROL_TCP, 2, 1);
    struct pollfd polled = {.fd = root->listeners[1], .events = POLLIN};

    assert_int_equal(poll(&polled, 1, 20000), 1); /* though rank 0 is silent */
    close_listener(root, 0);
    close_listener(root, 1);
    pthread_join(root->opener, NULL);
    assert_int_equal(root->status, IRIS_ERR_PEER_LOST);
    free(root);
}

/* Takes and acknowledges all there is to read. */
static void drain(struct iris_session *session)
{
    const void *data;
    size_t bytes;

    while (iris_i_session_receive(session) > 0) {
        while (iris_i_session_take(session, &data, &bytes) ==
               IRIS_SESSION_RECORD) {
        }
        assert_true(iris_i_session_tell(session));
        (void)iris_i_session_send(session);
    }
}

/* Until the hub has sent this post of rank 0: no member posts twice more before
 * the others have seen it. */
static void await_sent(const struct root *root, uint64_t seq)
{
    struct iris_hub *hub = root->control->hub;
    uint64_t sent = 0;

    while (sent < seq) {
        pthread_mutex_lock(&hub->lock);
        sent = hub->sent[0].seq;
        pthread_mutex_unlock(&hub->lock);
    }
}

/* It may be a process that was stopped. All learn which rank it is. */
static TEST(a_leader_that_does_not_read_is_cut_off)
{
    static unsigned char data[IRIS_POST_BYTES];
    const struct iris_part parts[2] = {{data, sizeof data}, {NULL, 0}};
    struct root *root = open_root(IRIS_CONTROL_UNIX);
    struct iris_session session;
    struct iris_shown shown;
    int socks[2];

    come_all(root, IRIS_CONTROL_UNIX, socks);
    assert_true(iris_i_session_open(&session, IRIS_MESSAGE_MOST));
    session.sock = socks[1];
    for (uint64_t seq = 1; !has_ended(root, 1); seq++) {
        const struct iris_post_id id = {0, 0, seq};

        data[0]++;
        await_sent(root, seq < 2 ? 0 : seq - 2);
        iris_i_control_post(root->control, &id, parts, RANKS);
        drain(&session);
    }
    iris_i_control_read(root->control, 1, IRIS_SHOW_ALL, &shown);
    assert_int_equal(shown.state, IRIS_RANK_LEFT);
    assert_non_null(strstr(shown.reason, "it has left 64 MiB of messages"));
    assert_false(has_ended(root, 2));
    iris_i_session_close(&session);
    close(socks[0]);
    close(socks[1]);
    close_root(root);
}

static TEST(a_listener_without_descriptors_says_so)
{
    struct iris_control_parts parts = IRIS_CONTROL_NO_PARTS;
    struct iris_hello hello = {.rank = 0};
    struct rlimit limit, few;
    int next = dup(STDOUT_FILENO);

    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    few = limit;
    few.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    assert_int_equal(iris_i_control_prepare(IRIS_CONTROL_UNIX, &hello, &parts),
                     IRIS_ERR_LIMIT);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

TEST_GROUP(unit);
