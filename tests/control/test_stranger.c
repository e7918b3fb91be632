/* SPDX-License-Identifier: MIT
 *
 * Others at the meeting place: those who hold its name, those who come and say
 * nothing or nonsense, other users.
 */
#include "config.h"

#include "support/harness.h"

#include "control/control.h"

#include <poll.h>
#include <pthread.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/link.h"
#include "support/leaks.h"
#include "support/procs.h"

/* Another process that knows IRIS_JOB_ID can find the name of the socket. */
static socklen_t name_root(const char *job, uid_t uid,
                           struct sockaddr_un *address)
{
    char key[64], name[IRIS_SECRET_NAME_BYTES];
    struct iris_secret secret;

    snprintf(key, sizeof key, "job-%s", job);
    iris_i_sha256(key, strlen(key), secret.bytes);
    iris_i_secret_name(&secret, "rank 0", name);
    return (socklen_t)snprintf(address->sun_path + 1,
                               sizeof address->sun_path - 1, "iris/%ld/%s",
                               (long)uid, name) +
           (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1;
}

/* The socket where rank 0 of `job` listens or would, bound or connected. */
static int squat(const char *job, uid_t uid, int bind_it)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    socklen_t length;
    int ret;

    length = name_root(job, uid, &address);
    ret = bind_it ? bind(sock, (struct sockaddr *)&address, length)
                  : connect(sock, (struct sockaddr *)&address, length);
    if (ret != 0) {
        close(sock);
        return -1;
    }
    return sock;
}

static void init_in(const char *job, const char *rank, iris_status_t expected,
                    const char *text)
{
    struct iris_config config;
    struct leaks before;
    iris_t *iris = NULL;

    iris_config_init(&config);
    config.rank = atoi(rank);
    config.num_ranks = 2;
    config.job_id = job;
    config.timeout_ms = 300;
    leaks_note(&before);
    assert_int_equal(iris_init(&config, &iris), expected);
    if (!harness_message_has(text)) {
        print_error("%s\n", iris_last_error());
        fail();
    }
    assert_null(iris);
    assert_int_equal(leaks_found(&before), 0);
}

static TEST(a_name_that_is_taken_is_told_with_its_holder)
{
    int sock = squat("taken", getuid(), 1);
    char text[64];

    assert_true(sock >= 0);
    init_in("taken", "0", IRIS_ERR_BOOTSTRAP, "a process that does not answer");
    init_in("taken", "1", IRIS_ERR_TIMEOUT, "rank 0 of job \"job-taken\"");
    assert_int_equal(listen(sock, 1), 0);
    snprintf(text, sizeof text, "pid %ld of uid %ld", (long)getpid(),
             (long)getuid());
    init_in("taken", "0", IRIS_ERR_BOOTSTRAP, text);
    /* A backlog that is full must not make anybody wait for ever. */
    for (int i = 0; i < 2; i++) {
        init_in("taken", "0", IRIS_ERR_BOOTSTRAP, "IRIS_JOB_ID");
    }
    close(sock);
}

/* Rank 1, which nothing but rank 0's word can end in time. */
static void __attribute__((noreturn)) wait_as_rank_1(int result)
{
    struct iris_config config;
    iris_t *iris = NULL;
    char text[256];

    iris_config_init(&config);
    config.rank = 1;
    config.num_ranks = 2;
    config.job_id = "silent";
    config.timeout_ms = 120000;
    snprintf(text, sizeof text, "%d %s", (int)iris_init(&config, &iris),
             iris_last_error());
    (void)!write(result, text, strlen(text) + 1);
    _exit(0);
}

/* The squatter takes connections and says nothing, or does not even listen. */
static void check_told(int listens)
{
    int sock = squat("silent", getuid(), 1), result[2], peer = -1;
    char text[256] = "", expected[16];
    struct iris_config config;
    iris_t *iris = NULL;
    pid_t pid;

    assert_true(sock >= 0);
    assert_int_equal(pipe(result), 0);
    assert_true(!listens || listen(sock, 4) == 0);
    pid = fork();
    if (pid == 0) {
        wait_as_rank_1(result[1]);
    }
    if (listens) {
        peer = accept(sock, NULL, NULL);
        assert_true(peer >= 0);
    }
    iris_config_init(&config);
    config.rank = 0;
    config.num_ranks = 2;
    config.job_id = "silent";
    assert_int_equal(iris_init(&config, &iris), IRIS_ERR_BOOTSTRAP);
    assert_true(harness_message_has(
        "rank 0 of job \"job-silent\": its local socket is already"));
    assert_true(read(result[0], text, sizeof text - 1) > 0);
    snprintf(expected, sizeof expected, "%d ", (int)IRIS_ERR_BOOTSTRAP);
    assert_memory_equal(text, expected, strlen(expected));
    assert_non_null(strstr(text, "rank 0 could not start"));
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    close(peer);
    close(sock);
    close(result[0]);
    close(result[1]);
}

static TEST(ranks_are_told_that_somebody_has_rank_0s_name)
{
    check_told(1);
    check_told(0);
}

/* Becomes another user, takes the name of root's job, and waits. */
static void __attribute__((noreturn))
hold_as_nobody(uid_t uid, int ready, int done)
{
    int sock;
    char byte = 0;

    if (setresuid(uid, uid, uid) != 0) {
        _exit(1);
    }
    sock = squat("squatted", 0, 1);
    listen(sock, 8);
    (void)!write(ready, &byte, 1);
    (void)!read(done, &byte, 1);
    _exit(sock < 0);
}

static TEST(another_users_job_is_not_joined)
{
    const struct passwd *nobody = getpwnam("nobody");
    int ready[2], done[2], how;
    char byte, text[64];
    pid_t pid;

    if (getuid() != 0 || nobody == NULL) {
        print_message("not root: nobody else can hold the name\n");
        skip();
    }
    assert_int_equal(pipe(ready) | pipe(done), 0);
    pid = fork();
    if (pid == 0) {
        hold_as_nobody(nobody->pw_uid, ready[1], done[0]);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    snprintf(text, sizeof text, "uid %ld", (long)nobody->pw_uid);
    init_in("squatted", "0", IRIS_ERR_BOOTSTRAP, text);
    init_in("squatted", "1", IRIS_ERR_BOOTSTRAP, text);
    init_in("squatted", "1", IRIS_ERR_BOOTSTRAP, "IRIS_JOB_ID");
    assert_int_equal(write(done[1], "", 1), 1);
    assert_int_equal(waitpid(pid, &how, 0), pid);
    assert_int_equal(how, 0);
    for (int i = 0; i < 2; i++) {
        close(ready[i]);
        close(done[i]);
    }
}

/* Connects to where rank 0 of the job listens, once it does. */
static int visit(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    socklen_t length = name_root(getenv("IRIS_JOB_ID"), getuid(), &address);

    while (connect(sock, (struct sockaddr *)&address, length) != 0) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    return sock;
}

struct visit {
    int bytes; /* what the visitor says */
    atomic_int over;
};

/* Process 2 is a visitor: it says something or nothing, and goes. Rank 1 comes
 * after it. */
static void body_visited(int rank, struct proc_report *report, void *arg)
{
    struct visit *this = arg;
    char words[100] = "hello";
    iris_t *iris;
    int sock;

    setenv("IRIS_NUM_RANKS", "2", 1);
    if (rank == 2) {
        sock = visit();
        if (this->bytes > 0) {
            (void)!send(sock, words, (size_t)this->bytes, MSG_NOSIGNAL);
        }
        close(sock);
        atomic_store(&this->over, 1);
        return;
    }
    while (rank == 1 && atomic_load(&this->over) == 0) {
        poll(NULL, 0, 1);
    }
    iris = proc_init(report);
    if (iris != NULL) {
        proc_finalize(report, iris);
    }
}

static void receive_visitor(int bytes, iris_status_t expected, const char *text)
{
    struct visit *visit = mmap(NULL, sizeof *visit, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct procs procs;

    visit->bytes = bytes;
    procs_start(&procs, 3, body_visited, visit);
    procs_join(&procs);
    for (int rank = 0; rank < 2; rank++) {
        assert_int_equal(procs.reports[rank].status, expected);
        if (expected != IRIS_OK) {
            assert_non_null(strstr(procs.reports[rank].message, text));
        }
    }
    procs_free(&procs);
    munmap(visit, sizeof *visit);
}

static TEST(visitors_that_say_nothing_are_nobody)
{
    receive_visitor(0, IRIS_OK, "");
}

static TEST(visitors_that_talk_nonsense_end_the_meeting)
{
    receive_visitor(5, IRIS_ERR_BOOTSTRAP,
                    "a message in the meeting that is not of");
}

/* Takes one rank in as rank 0 would, and answers with a verdict whose text has
 * no end, a status that is none, and a descriptor. */
static void *answer_nonsense(void *arg)
{
    struct iris_verdict verdict = {.status = 77};
    int sock = accept(*(int *)arg, NULL, NULL);

    memset(verdict.message, 'x', sizeof verdict.message);
    (void)iris_i_socket_send(sock, &verdict, sizeof verdict, sock);
    close(sock);
    return NULL;
}

static TEST(a_rank_0_that_answers_nonsense_does_no_harm)
{
    int sock = squat("nonsense", getuid(), 1);
    pthread_t thread;

    assert_int_equal(listen(sock, 1), 0);
    assert_int_equal(pthread_create(&thread, NULL, answer_nonsense, &sock), 0);
    init_in("nonsense", "1", IRIS_ERR_BOOTSTRAP, "xxxx");
    pthread_join(thread, NULL);
    close(sock);
}

TEST_GROUP(unit);
