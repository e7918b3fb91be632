/* SPDX-License-Identifier: MIT
 *
 * Handles and descriptors between ranks, by datagrams: each rank has one local
 * socket under a name the system chose, and believes who writes to it only as
 * far as the system vouches for the sender.
 */
#include "config.h"

#include "control/exchange.h"

#include "base/clock.h"
#include "base/fd.h"
#include "context/context.h"
#include "base/log.h"
#include "base/shm.h"
#include "base/socket.h"
#include "control/rendezvous.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define MAGIC 0x49724578u

/* How often to look whether the peers still live; and whether there is room in
 * a peer's queue, which nothing tells. */
#define LOOK_MS 10
#define FULL_MS 1

/* Messages taken in a row, whoever sends them, before it looks again. */
#define MOST_HEARD 256

/* A process that ends closes its socket before it can be seen to have ended:
 * time for that. */
#define GOING_NS 100000000LL

struct exchange_peer {
    char name[IRIS_EXCHANGE_NAME_BYTES];
    int pid;
    int64_t going; /* when it first had no socket, 0: it has one */
    size_t told;   /* offers, in this exchange */
    size_t heard;  /* of its offers */
};

struct iris_exchange {
    int sock;
    int num_ranks;
    struct exchange_peer peers[];
};

struct exchange_message {
    uint32_t magic;
    int32_t rank;   /* who offers */
    uint64_t seq;   /* of the meeting before */
    uint32_t index; /* of the offer */
    int32_t status; /* of the rank; not OK: there is no offer */
    struct iris_offer offer;
};

/* One exchange under way. */
struct exchange {
    iris_t *iris;
    const struct iris_offer *offers;
    size_t num_offers;
    iris_status_t own;   /* what peers are told */
    iris_status_t first; /* to go wrong */
    char message[IRIS_MESSAGE_BYTES];
    iris_taker take;
};

/* ---- The socket ---- */

static iris_status_t listen_at(int sock, char name[IRIS_EXCHANGE_NAME_BYTES])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    socklen_t bytes = sizeof address.sun_family;
    int on = 1;

    /* A bind to no name gives one in the abstract namespace. */
    if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) != 0 ||
        bind(sock, (struct sockaddr *)&address, bytes) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot listen for peers' memory");
    }
    bytes = sizeof address;
    if (getsockname(sock, (struct sockaddr *)&address, &bytes) != 0 ||
        bytes <= offsetof(struct sockaddr_un, sun_path) + 1 ||
        bytes - offsetof(struct sockaddr_un, sun_path) >
            IRIS_EXCHANGE_NAME_BYTES) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a local socket has no name of %d bytes",
                           IRIS_EXCHANGE_NAME_BYTES - 1);
    }
    memset(name, 0, IRIS_EXCHANGE_NAME_BYTES);
    memcpy(name, address.sun_path + 1,
           bytes - offsetof(struct sockaddr_un, sun_path) - 1);
    return IRIS_OK;
}

iris_status_t iris_i_exchange_open(int num_ranks,
                                   char name[IRIS_EXCHANGE_NAME_BYTES],
                                   struct iris_exchange **exchange_p)
{
    struct iris_exchange *exchange = calloc(
        1, sizeof *exchange + (size_t)num_ranks * sizeof exchange->peers[0]);
    iris_status_t status;

    if (exchange == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                           num_ranks);
    }
    exchange->num_ranks = num_ranks;
    exchange->sock =
        iris_i_fd_above_stdio(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    status = exchange->sock < 0 ? iris_i_fail_fd(errno, "cannot make a socket")
                                : listen_at(exchange->sock, name);
    if (status != IRIS_OK) {
        iris_i_exchange_close(exchange);
        return status;
    }
    *exchange_p = exchange;
    return IRIS_OK;
}

int iris_i_exchange_connect(struct iris_exchange *exchange,
                            const struct iris_meeting *meeting)
{
    int others = 0;

    for (int rank = 0; rank < exchange->num_ranks; rank++) {
        struct exchange_peer *peer = &exchange->peers[rank];

        peer->pid =
            rank == meeting->rank ? (int)getpid() : meeting->hellos[rank].pid;
        memcpy(peer->name, meeting->hellos[rank].exchange, sizeof peer->name);
        others += peer->pid != getpid();
    }
    return others != 0;
}

int iris_i_exchange_has(const struct iris_exchange *exchange, int rank)
{
    return exchange != NULL && exchange->peers[rank].pid != getpid();
}

void iris_i_exchange_close(struct iris_exchange *exchange)
{
    if (exchange != NULL && exchange->sock >= 0) {
        close(exchange->sock);
    }
    free(exchange);
}

/* ---- Messages ---- */

static void note(struct exchange *x, iris_status_t status)
{
    if (status != IRIS_OK && x->first == IRIS_OK) {
        x->first = status;
        snprintf(x->message, sizeof x->message, "%s", iris_last_error());
    }
}

/* One message. Returns 0 or why not. */
static int send_one(const struct exchange *x, const struct exchange_peer *peer,
                    const struct exchange_message *message)
{
    union iris_socket_control control;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strnlen(peer->name, sizeof peer->name);
    struct iovec iov = {(void *)(uintptr_t)message, sizeof *message};
    struct msghdr header = {
        .msg_name = &address,
        .msg_namelen =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + length),
        .msg_iov = &iov,
        .msg_iovlen = 1};

    memcpy(address.sun_path + 1, peer->name, length);
    iris_i_socket_attach(&header, &control, message->offer.handle.fd);
    return sendmsg(x->iris->exchange->sock, &header,
                   MSG_DONTWAIT | MSG_NOSIGNAL) < 0
               ? errno
               : 0;
}

/* A peer that can never be told: notes why, and leaves it out of what is left
 * to do, which is for the others' sake. */
static void give_up(struct exchange *x, int rank, int errno_value)
{
    struct exchange_peer *peer = &x->iris->exchange->peers[rank];

    peer->told = x->num_offers;
    if (peer->going == 0) {
        note(x, iris_i_fail_errno(&x->iris->log, IRIS_ERR_SYSTEM, errno_value,
                                  "cannot tell rank %d (pid %d) of new memory",
                                  rank, peer->pid));
        return;
    }
    peer->heard = x->num_offers;
    note(x, iris_i_peers_check(x->iris, rank));
    note(x, iris_i_fail_errno(
                &x->iris->log, IRIS_ERR_PEER_LOST, errno_value,
                "rank %d (pid %d) has closed the socket by which it is told of "
                "new memory; the job cannot go on: finalize and restart it",
                rank, peer->pid));
}

/* What to do about a message that could not be sent. */
static void judge(struct exchange *x, int rank, int errno_value)
{
    struct exchange_peer *peer = &x->iris->exchange->peers[rank];

    switch (errno_value) {
    case EAGAIN: /* its queue is full */
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS: /* too many descriptors are on their way */
        break;
    case ECONNREFUSED:
    case ECONNRESET:
    case ENOTCONN:
    case EPIPE:
        if (peer->going == 0) {
            peer->going = iris_i_now_ns();
        } else if (iris_i_now_ns() - peer->going > GOING_NS) {
            give_up(x, rank, errno_value);
        }
        break;
    default: /* the offer's descriptor, maybe: the next message has none */
        if (x->own != IRIS_OK) {
            give_up(x, rank, errno_value);
            break;
        }
        x->own = IRIS_ERR_SYSTEM;
        note(x, iris_i_fail_errno(&x->iris->log, x->own, errno_value,
                                  "cannot tell rank %d (pid %d) of new memory",
                                  rank, peer->pid));
    }
}

/* Tells a peer as much as it takes; returns how many offers that were. */
static int tell(struct exchange *x, int rank)
{
    struct exchange_peer *peer = &x->iris->exchange->peers[rank];
    int count = 0;

    while (peer->told < x->num_offers) {
        struct exchange_message message = {.magic = MAGIC,
                                           .rank = x->iris->rank,
                                           .seq = x->iris->world->seq,
                                           .index = (uint32_t)peer->told,
                                           .status = x->own,
                                           .offer = x->offers[peer->told]};
        int ret;

        if (x->own != IRIS_OK) {
            message.offer.handle = (struct iris_heap_handle){.fd = -1};
        }
        ret = send_one(x, peer, &message);
        if (ret != 0) {
            judge(x, rank, ret);
            break;
        }
        peer->told++;
        peer->going = 0;
        count++;
    }
    return count;
}

/* Who sent it, as the system says, and what came with it. */
struct envelope {
    struct ucred sender;
    int fd;
};

/* Who is not one of us may send two descriptors, and find room for them. */
static void take_descriptors(const struct cmsghdr *one,
                             struct envelope *envelope)
{
    size_t count = (one->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int fd;

    for (size_t i = 0; i < count; i++) {
        memcpy(&fd, CMSG_DATA(one) + i * sizeof fd, sizeof fd);
        if (envelope->fd < 0) {
            envelope->fd = iris_i_fd_above_stdio(fd);
        } else {
            close(fd);
        }
    }
}

static void open_envelope(struct msghdr *header, struct envelope *envelope)
{
    struct cmsghdr *one;

    envelope->sender = (struct ucred){.uid = (uid_t)-1};
    envelope->fd = -1;
    for (one = CMSG_FIRSTHDR(header); one != NULL;
         one = CMSG_NXTHDR(header, one)) {
        if (one->cmsg_type == SCM_CREDENTIALS) {
            memcpy(&envelope->sender, CMSG_DATA(one), sizeof envelope->sender);
        } else if (one->cmsg_type == SCM_RIGHTS) {
            take_descriptors(one, envelope);
        }
    }
}

/* 1 if a message is a peer's, and of this exchange. An earlier one that ended
 * badly may have left some. */
static int is_ours(const struct exchange *x, const struct envelope *envelope,
                   const struct exchange_message *message, ssize_t bytes)
{
    const struct iris_exchange *exchange = x->iris->exchange;
    uid_t uid = envelope->sender.uid;

    if (bytes != (ssize_t)sizeof *message || message->magic != MAGIC ||
        message->rank < 0 || message->rank >= exchange->num_ranks ||
        (uid != geteuid() && uid != getuid()) ||
        envelope->sender.pid != exchange->peers[message->rank].pid) {
        iris_i_warning(&x->iris->log,
                       "dropped a message of pid %ld, uid %ld, which is not "
                       "one of our ranks",
                       (long)envelope->sender.pid, (long)uid);
        return 0;
    }
    return message->seq == x->iris->world->seq &&
           exchange->peers[message->rank].heard < x->num_offers;
}

static iris_status_t accept_offer(struct exchange *x,
                                  const struct exchange_message *message)
{
    struct exchange_peer *peer = &x->iris->exchange->peers[message->rank];
    const struct iris_offer *own = &x->offers[peer->heard];

    if (message->index != peer->heard || message->offer.offset != own->offset) {
        peer->heard = x->num_offers;
        return iris_i_fail(&x->iris->log, IRIS_ERR_MISMATCH,
                           "rank %d has new memory at heap offset %zu, this "
                           "rank at %zu: their heaps have come apart",
                           message->rank, message->offer.offset, own->offset);
    }
    peer->heard++;
    /* Why a peer has none is for the next meeting to tell. */
    return x->first == IRIS_OK && message->status == IRIS_OK
               ? x->take(x->iris, message->rank, &message->offer)
               : IRIS_OK;
}

/* Takes one message, if there is one. */
static int hear(struct exchange *x)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(sizeof(int))];
    } control;
    struct exchange_message message;
    struct iovec iov = {&message, sizeof message};
    struct msghdr header = {.msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof control.space};
    ssize_t bytes = recvmsg(x->iris->exchange->sock, &header,
                            MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    struct envelope envelope;

    if (bytes < 0) {
        return 0;
    }
    open_envelope(&header, &envelope);
    if (is_ours(x, &envelope, &message, bytes)) {
        int lost = (header.msg_flags & MSG_CTRUNC) != 0 ||
                   (message.offer.handle.fd >= 0 && envelope.fd < 0);

        message.offer.handle.fd = envelope.fd;
        if (lost) {
            note(x, iris_i_fail_fd(EMFILE, "cannot take a peer's descriptor"));
        }
        note(x, accept_offer(x, &message));
    }
    if (envelope.fd >= 0) {
        close(envelope.fd);
    }
    return 1;
}

/* ---- The exchange ---- */

/* The first rank that is not done with us, nor we with it; -1: none. */
static int first_open(const struct exchange *x)
{
    const struct iris_exchange *exchange = x->iris->exchange;

    for (int rank = 0; rank < exchange->num_ranks; rank++) {
        const struct exchange_peer *peer = &exchange->peers[rank];

        if (iris_i_exchange_has(exchange, rank) &&
            (peer->told < x->num_offers || peer->heard < x->num_offers)) {
            return rank;
        }
    }
    return -1;
}

/* Tells and hears what can be now. */
static int go_on(struct exchange *x, int *full_p)
{
    struct iris_exchange *exchange = x->iris->exchange;
    int count = 0;

    *full_p = 0;
    for (int rank = 0; rank < exchange->num_ranks; rank++) {
        struct exchange_peer *peer = &exchange->peers[rank];

        if (iris_i_exchange_has(exchange, rank)) {
            count += tell(x, rank);
            *full_p |= peer->told < x->num_offers;
        }
    }
    for (int heard = 0; heard < MOST_HEARD && hear(x); heard++) {
        count++;
    }
    return count;
}

static iris_status_t wait_for_more(const struct exchange *x, int full)
{
    struct pollfd pollfd = {.fd = x->iris->exchange->sock,
                            .events = POLLIN | POLLRDHUP};

    if (poll(&pollfd, 1, full ? FULL_MS : LOOK_MS) > 0 &&
        (pollfd.revents & (POLLERR | POLLHUP | POLLRDHUP | POLLNVAL)) != 0) {
        return iris_i_fail(&x->iris->log, IRIS_ERR_SYSTEM,
                           "the socket by which peers tell this rank of new "
                           "memory is closed: look who closes descriptors that "
                           "are not theirs");
    }
    return IRIS_OK;
}

/* Whether to go on, for the peers and the deadline. */
static iris_status_t look(const struct exchange *x, int64_t deadline)
{
    iris_status_t status = iris_i_peers_check_all(x->iris);

    if (status != IRIS_OK || iris_i_now_ns() < deadline) {
        return status;
    }
    return iris_i_fail(&x->iris->log, IRIS_ERR_TIMEOUT,
                       "rank %d has not shared its new memory within %lld ms "
                       "(IRIS_TIMEOUT_MS)",
                       first_open(x), (long long)x->iris->timeout_ms);
}

iris_status_t iris_i_exchange(iris_t *iris, const struct iris_offer *offers,
                              size_t num_offers, iris_status_t status,
                              iris_taker take)
{
    struct exchange x = {.iris = iris,
                         .offers = offers,
                         .num_offers = num_offers,
                         .own = status,
                         .take = take};
    int64_t deadline = iris_i_deadline(iris->timeout_ms);
    int64_t next_look = iris_i_now_ns() + LOOK_MS * 1000000;
    int full;

    note(&x, status);
    for (int rank = 0; rank < iris->num_ranks; rank++) {
        iris->exchange->peers[rank].told = 0;
        iris->exchange->peers[rank].going = 0;
        iris->exchange->peers[rank].heard = 0;
    }
    while (first_open(&x) >= 0) {
        status = go_on(&x, &full) == 0 ? wait_for_more(&x, full) : IRIS_OK;
        if (status == IRIS_OK && iris_i_now_ns() >= next_look) {
            status = look(&x, deadline);
            next_look = iris_i_now_ns() + LOOK_MS * 1000000;
        }
        if (status != IRIS_OK) {
            note(&x, status);
            break;
        }
    }
    return x.first == IRIS_OK ? IRIS_OK : iris_i_fail_again(x.first, x.message);
}
