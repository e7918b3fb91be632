/* SPDX-License-Identifier: MIT
 *
 * The rendezvous with somebody who sends anything: rank 0 with any peers, a
 * peer with any rank 0. It ends, with a status of ours, and leaves no
 * descriptor.
 */
#include "config.h"

#include "fuzz/fuzz.h"

#include "base/base.h"
#include "base/link.h"
#include "control/control.h"
#include "control/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NUM_RANKS 3
#define MESSAGES_MAX 8
#define MAGIC 0x69726973 /* any: both sides of the test have it */

/* Rank 0 gives up after so long on peers that do not come, and so do we. */
#define PATIENCE_MS 3

struct message {
    size_t bytes;
    int with_fd;
    unsigned char data[sizeof(struct iris_hello) + 64];
};

/* What one stranger sends, in order. */
struct script {
    int num_messages;
    struct message messages[MESSAGES_MAX];
};

static iris_status_t start(const struct iris_bootstrap *bootstrap,
                           int64_t timeout_ms,
                           struct iris_rendezvous *rendezvous_p)
{
    static struct iris_settings settings;
    static const struct iris_log log = {.rank = 0, .num_ranks = NUM_RANKS};

    settings.timeout_ms.number = timeout_ms;
    return iris_i_rendezvous_open(bootstrap, &settings, &log, rendezvous_p);
}

static char name[IRIS_SECRET_NAME_BYTES];

static struct iris_hello hello_of(int rank)
{
    struct iris_hello hello = {.magic = MAGIC,
                               .version = 1,
                               .rank = rank,
                               .num_ranks = NUM_RANKS,
                               .pid = getpid(),
                               .heap_bytes = 4096,
                               .backend = "sim",
                               .handle = {.fd = -1}};
    struct stat st;

    hello.pid_namespace = stat("/proc/self/ns/pid", &st) == 0 ? st.st_ino : 0;
    return hello;
}

/* Changes some of what a message has: numbers at its start, texts anywhere. */
static void change(struct message *message, struct input *input)
{
    for (unsigned n = input_number(input, 1) % 4; n > 0; n--) {
        unsigned how = (unsigned)input_number(input, 1) % 4;
        size_t at = input_number(input, 1) % 16 * 4;

        if (how == 0) {
            at = input_number(input, 2) % sizeof message->data;
            memset(message->data + at, 'x', sizeof message->data - at);
        } else if (how == 1) {
            message->data[at] = (unsigned char)input_number(input, 1);
        } else {
            input_take(input, message->data + at, 4);
        }
    }
}

/* The pid of a verdict is another's: a rank 0 of this process names its control
 * segment by address, and is believed. */
static void be_another_process(struct message *message)
{
    struct iris_verdict verdict;

    memcpy(&verdict, message->data, sizeof verdict);
    verdict.pid += verdict.pid == getpid();
    memcpy(message->data, &verdict, sizeof verdict);
}

static void read_message(struct message *message, struct input *input)
{
    unsigned kind = (unsigned)input_number(input, 1);
    struct iris_hello hello = hello_of(kind / 16 % NUM_RANKS);
    struct iris_verdict verdict = {.status = IRIS_OK};

    memset(message, 0, sizeof *message);
    message->with_fd = kind / 4 % 4 == 1;
    if (kind % 4 == 0) {
        message->bytes = sizeof hello;
        memcpy(message->data, &hello, sizeof hello);
        change(message, input);
    } else if (kind % 4 == 1) {
        message->bytes = sizeof verdict;
        memcpy(message->data, &verdict, sizeof verdict);
        change(message, input);
        be_another_process(message);
    } else {
        message->bytes = input_number(input, 2) % sizeof message->data + 1;
        input_take(input, message->data, message->bytes);
    }
}

static void read_script(struct script *script, struct input *input)
{
    script->num_messages = (int)(input_number(input, 1) % (MESSAGES_MAX + 1));
    for (int i = 0; i < script->num_messages; i++) {
        read_message(&script->messages[i], input);
    }
}

static void perform(const struct script *script, int sock)
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);

    for (int i = 0; i < script->num_messages; i++) {
        const struct message *message = &script->messages[i];

        (void)iris_i_socket_send(sock, message->data, message->bytes,
                                 message->with_fd ? fd : -1);
    }
    close(fd);
}

static int connect_to_root(void)
{
    struct iris_wait wait;
    int sock = -1;

    REQUIRE(iris_i_socket_make(&sock) == IRIS_OK);
    iris_i_wait_moment(&wait, 1000);
    REQUIRE(iris_i_socket_connect(sock, name, &wait) == IRIS_OK);
    return sock;
}

static void check_status(iris_status_t status)
{
    REQUIRE(memchr(iris_last_error(), '\0', IRIS_MESSAGE_BYTES) != NULL);
    REQUIRE(strcmp(iris_status_string(status), "IRIS_ERR_?") != 0);
}

/* Rank 0 reads what its peers have written before it looks. They are rank
 * threads of this process to it, and hold its control segment. */
static void be_root(const struct iris_bootstrap *bootstrap, struct input *input)
{
    static struct script scripts[NUM_RANKS];
    struct iris_hello hello = hello_of(0);
    struct iris_rendezvous rendezvous;
    struct iris_table *segment;
    int socks[NUM_RANKS], num_socks = 1 + (int)input_number(input, 1) % 3;
    iris_status_t status;

    REQUIRE(start(bootstrap, PATIENCE_MS, &rendezvous) == IRIS_OK);
    for (int i = 0; i < num_socks; i++) {
        read_script(&scripts[i], input);
        socks[i] = connect_to_root();
        perform(&scripts[i], socks[i]);
        shutdown(socks[i], SHUT_WR);
    }
    status = iris_i_rendezvous_join(&rendezvous, &hello);
    check_status(status);
    if (status == IRIS_OK) {
        segment = rendezvous.segment;
        check_status(iris_i_rendezvous_agree(&rendezvous, IRIS_OK));
        for (int rank = 0; rank < NUM_RANKS; rank++) {
            iris_i_segment_release(segment);
        }
    }
    for (int i = 0; i < num_socks; i++) {
        close(socks[i]);
    }
}

struct stranger {
    struct script script;
    int listener;
};

static void *pose_as_root(void *arg)
{
    struct stranger *stranger = arg;
    int sock = accept4(stranger->listener, NULL, NULL, SOCK_CLOEXEC);

    REQUIRE(sock >= 0);
    perform(&stranger->script, sock);
    close(sock);
    return NULL;
}

static void be_peer(const struct iris_bootstrap *bootstrap, struct input *input)
{
    static struct stranger stranger;
    struct iris_hello hello = hello_of(bootstrap->rank);
    struct iris_rendezvous rendezvous;
    iris_status_t status;
    pthread_t thread;

    read_script(&stranger.script, input);
    REQUIRE(iris_i_socket_listen(name, 4, &stranger.listener) == IRIS_OK);
    REQUIRE(pthread_create(&thread, NULL, pose_as_root, &stranger) == 0);
    REQUIRE(start(bootstrap, 1000, &rendezvous) == IRIS_OK);
    status = iris_i_rendezvous_join(&rendezvous, &hello);
    check_status(status);
    if (status == IRIS_OK) {
        struct iris_table *segment = rendezvous.segment;

        check_status(iris_i_rendezvous_agree(&rendezvous, IRIS_OK));
        iris_i_segment_release(segment);
    }
    pthread_join(thread, NULL);
    close(stranger.listener);
}

/* Bit i: descriptor i is open. */
static uint64_t open_fds(void)
{
    uint64_t fds = 0;

    for (int fd = 0; fd < 64; fd++) {
        fds |= (uint64_t)(fcntl(fd, F_GETFD) >= 0) << fd;
    }
    return fds;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    struct iris_bootstrap bootstrap;
    uint64_t before = open_fds();
    char key[IRIS_KEY_BYTES];
    int rank = (int)(input_number(&input, 1) % NUM_RANKS);

    snprintf(key, sizeof key, "fuzz-%ld", (long)getpid());
    iris_i_bootstrap_thread(key, rank, NUM_RANKS, &bootstrap);
    iris_i_secret_name(&bootstrap.secret, "rank 0", name);
    if (bootstrap.rank == 0) {
        be_root(&bootstrap, &input);
    } else {
        be_peer(&bootstrap, &input);
    }
    REQUIRE(open_fds() == before);
    return 0;
}
