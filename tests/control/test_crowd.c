/* SPDX-License-Identifier: MIT
 *
 * A rendezvous whose rank 0 is kept busy by connections of no rank: it sees a
 * death all the same, and its log stays short.
 */
#include "config.h"

#include "support/harness.h"

#include "base/base.h"
#include "base/link.h"
#include "control/control.h"
#include "control/internal.h"

#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RANKS 3
#define DEADLINE_MS 20000
#define VISITS 50

/* Rank 0 of a job whose other ranks are this test's to play. */
struct root {
    struct iris_bootstrap bootstrap;
    struct iris_settings settings;
    struct iris_log log;
    struct iris_rendezvous rendezvous;
    pthread_t thread;
    atomic_uint visits;
    iris_status_t status;
    char message[IRIS_MESSAGE_BYTES];
};

static struct iris_hello hello_of(int rank, iris_status_t status)
{
    struct iris_hello hello = {.magic = 1,
                               .version = 1,
                               .rank = rank,
                               .num_ranks = RANKS,
                               .pid = getpid(),
                               .status = status,
                               .backend = "none",
                               .message = "no such thing",
                               .handle = {.fd = -1}};

    return hello;
}

static void *root_main(void *arg)
{
    struct root *root = arg;
    struct iris_hello hello = hello_of(0, IRIS_OK);

    root->status = iris_i_rendezvous_join(&root->rendezvous, &hello);
    snprintf(root->message, sizeof root->message, "%s", iris_last_error());
    return NULL;
}

static void root_start(struct root *root)
{
    char key[IRIS_KEY_BYTES];

    memset(root, 0, sizeof *root);
    atomic_init(&root->log.level, IRIS_LOG_WARNING);
    root->log.num_ranks = RANKS;
    root->settings.timeout_ms.number = DEADLINE_MS;
    assert_int_equal(iris_i_bootstrap_random_key(key), IRIS_OK);
    iris_i_bootstrap_thread(key, 0, RANKS, &root->bootstrap);
    assert_int_equal(iris_i_rendezvous_open(&root->bootstrap, &root->settings,
                                            &root->log, &root->rendezvous),
                     IRIS_OK);
    assert_int_equal(pthread_create(&root->thread, NULL, root_main, root), 0);
}

/* A connection to rank 0; -1: it does not listen any more, or does not want
 * us. */
static int connect_to(const struct root *root)
{
    char name[IRIS_SECRET_NAME_BYTES];
    struct iris_wait wait;
    int sock = -1;

    iris_i_secret_name(&root->bootstrap.secret, "rank 0", name);
    assert_int_equal(iris_i_socket_make(&sock), IRIS_OK);
    iris_i_wait_moment(&wait, 1000);
    if (iris_i_socket_connect(sock, name, &wait) != IRIS_OK) {
        close(sock);
        return -1;
    }
    return sock;
}

static int say_hello(const struct root *root, int rank, iris_status_t status)
{
    struct iris_hello hello = hello_of(rank, status);
    int sock = connect_to(root);
    struct stat st;

    assert_true(sock >= 0);
    hello.pid_namespace = stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
    assert_int_equal(iris_i_socket_send(sock, &hello, sizeof hello, -1),
                     IRIS_OK);
    return sock;
}

/* Connections are taken in turn: once one that comes now has been closed, all
 * that came before have been heard. */
static void await_heard(const struct root *root)
{
    struct pollfd pollfd = {.fd = connect_to(root), .events = POLLIN};

    shutdown(pollfd.fd, SHUT_WR);
    assert_int_equal(poll(&pollfd, 1, -1), 1);
    close(pollfd.fd);
}

/* Comes and goes as long as rank 0 is there. */
static void *crowd_main(void *arg)
{
    struct root *root = arg;
    int sock;

    while ((sock = connect_to(root)) >= 0) {
        close(sock);
        atomic_fetch_add(&root->visits, 1);
    }
    return NULL;
}

static TEST(a_crowd_does_not_hide_a_death)
{
    struct root root;
    pthread_t crowd[2];
    int sock;

    root_start(&root);
    sock = say_hello(&root, 1, IRIS_OK);
    await_heard(&root);
    for (int i = 0; i < 2; i++) {
        pthread_create(&crowd[i], NULL, crowd_main, &root);
    }
    while (atomic_load(&root.visits) < VISITS) {
        sched_yield();
    }
    close(sock); /* which is all that rank 0 sees of a death */
    pthread_join(root.thread, NULL);
    for (int i = 0; i < 2; i++) {
        pthread_join(crowd[i], NULL);
    }
    assert_int_equal(root.status, IRIS_ERR_PEER_LOST);
    assert_non_null(strstr(root.message, "rank 1 (pid "));
}

/* As another user, connects often. */
static void __attribute__((noreturn))
visit_as(uid_t uid, const struct sockaddr_un *address, socklen_t length)
{
    if (setresuid(uid, uid, uid) != 0) {
        _exit(1);
    }
    for (int i = 0; i < VISITS; i++) {
        int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

        if (connect(sock, (const struct sockaddr *)address, length) != 0) {
            _exit(2);
        }
        close(sock);
    }
    _exit(0);
}

static TEST(other_users_fill_no_log)
{
    const struct passwd *nobody = getpwnam("nobody");
    struct sockaddr_un address;
    socklen_t length = sizeof address;
    struct harness_capture capture;
    const char *text, *first;
    struct root root;
    int how = -1;
    pid_t pid;

    if (getuid() != 0 || nobody == NULL) {
        print_message("not root: nobody else can come\n");
        skip();
    }
    harness_capture(&capture);
    root_start(&root);
    getsockname(root.rendezvous.sock, (struct sockaddr *)&address, &length);
    pid = fork();
    if (pid == 0) {
        visit_as(nobody->pw_uid, &address, length);
    }
    waitpid(pid, &how, 0);
    await_heard(&root);
    for (int rank = 1; rank < RANKS; rank++) {
        close(say_hello(&root, rank, IRIS_ERR_LIMIT));
    }
    pthread_join(root.thread, NULL);
    text = harness_captured(&capture);
    assert_int_equal(how, 0);
    assert_int_equal(root.status, IRIS_ERR_LIMIT);
    first = strstr(text, "turned away pid ");
    assert_non_null(first);
    assert_null(strstr(first + 1, "turned away pid "));
    assert_non_null(
        strstr(first, "turned away 50 connections of strangers in all"));
    free(capture.text);
}

/* One of the threads that iris_spawn() has made. */
struct thread_rank {
    struct iris_bootstrap bootstrap;
    struct iris_settings settings;
    struct iris_log log;
    pthread_t thread;
    const struct iris_hello *hellos; /* where it has found them */
    int pids[RANKS];
    iris_status_t status;
};

static void *thread_rank_main(void *arg)
{
    struct thread_rank *self = arg;
    struct iris_hello hello = hello_of(self->bootstrap.rank, IRIS_OK);
    struct iris_rendezvous rendezvous;
    struct iris_table *segment;

    self->status = iris_i_rendezvous_open(&self->bootstrap, &self->settings,
                                          &self->log, &rendezvous);
    if (self->status != IRIS_OK) {
        return NULL;
    }
    self->status = iris_i_rendezvous_join(&rendezvous, &hello);
    if (self->status != IRIS_OK) {
        return NULL;
    }
    self->hellos = rendezvous.hellos;
    for (int rank = 0; rank < RANKS; rank++) {
        self->pids[rank] = self->hellos[rank].pid;
    }
    segment = rendezvous.segment;
    self->status = iris_i_rendezvous_agree(&rendezvous, IRIS_OK);
    iris_i_segment_release(segment);
    return NULL;
}

/* Else a thousand threads would send each other a million hellos. */
static TEST(threads_of_one_spawn_read_what_rank_0_has)
{
    static struct thread_rank ranks[RANKS];
    static atomic_int failed;
    char key[IRIS_KEY_BYTES];

    assert_int_equal(iris_i_bootstrap_random_key(key), IRIS_OK);
    for (int rank = 0; rank < RANKS; rank++) {
        iris_i_bootstrap_thread(key, rank, RANKS, &ranks[rank].bootstrap);
        ranks[rank].bootstrap.failed = &failed;
        ranks[rank].settings.timeout_ms.number = DEADLINE_MS;
        assert_int_equal(pthread_create(&ranks[rank].thread, NULL,
                                        thread_rank_main, &ranks[rank]),
                         0);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(pthread_join(ranks[rank].thread, NULL), 0);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        assert_int_equal(ranks[rank].status, IRIS_OK);
        assert_ptr_equal(ranks[rank].hellos, ranks[0].hellos);
        for (int peer = 0; peer < RANKS; peer++) {
            assert_int_equal(ranks[rank].pids[peer], getpid());
        }
    }
}

TEST_GROUP(unit);
