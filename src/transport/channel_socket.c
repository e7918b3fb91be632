/* SPDX-License-Identifier: MIT
 *
 * The channel over stream sockets. The rank with the higher number connects,
 * and first sends its number and the job's secret.
 */
#include "config.h"

#include <poll.h>

#include "transport/channel_socket.h"

#include <iris/device/ring.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Number of pending bytes for a rank from which requests to it wait, too. */
#define FULL_BYTES ((size_t)1 << 20)

/* Messages with less data are copied, and sent together. */
#define COPY_BYTES 4096

/* The largest message; a link receives several at once. */
#define MESSAGE_BYTES (sizeof(struct iris_far_message) + IRIS_RING_BYTES)
#define IN_BYTES (2 * MESSAGE_BYTES)

/* Time that a new connection has to send its number. */
#define INTRODUCTION_MS 1000

struct introduction {
    int32_t rank;
    int32_t num_ranks;
    unsigned char secret[32];
};

/* A connection to one rank. */
struct link {
    int rank;
    int sock; /* -1: closed */
    unsigned char *in;
    size_t in_bytes;
    unsigned char *out; /* data to be sent: from out_at to out_end */
    size_t out_at;
    size_t out_end;
    size_t out_bytes;
    int is_stuck; /* the rank has not taken all of the last data */
};

struct socket_channel {
    struct iris_channel base;
    const struct iris_log *log;
    int num_links;
    struct link *links;
    struct link **link_of; /* for each rank; NULL: it is on this node */
    struct pollfd *polled; /* the links, then the bell */
};

static struct socket_channel *of(struct iris_channel *channel)
{
    return (struct socket_channel *)channel;
}

static void end_link(struct socket_channel *s, struct link *link)
{
    iris_i_debug(s->log, "the connection to rank %d is closed", link->rank);
    close(link->sock);
    link->sock = -1;
    link->out_at = link->out_end = 0;
    link->is_stuck = 0;
}

/* ---- Sending ---- */

static void keep(struct socket_channel *s, struct link *link, const void *data,
                 size_t bytes)
{
    size_t left = link->out_end - link->out_at;

    if (link->out_end + bytes > link->out_bytes) {
        size_t size = 2 * (left + bytes);
        unsigned char *out = malloc(size);

        if (out == NULL) {
            iris_i_warning(s->log, "no memory for messages to rank %d",
                           link->rank);
            end_link(s, link);
            return;
        }
        memcpy(out, link->out + link->out_at, left);
        free(link->out);
        link->out = out;
        link->out_bytes = size;
        link->out_at = 0;
        link->out_end = left;
    }
    memcpy(link->out + link->out_end, data, bytes);
    link->out_end += bytes;
}

/* Sends at once as much as possible of the kept data and two more pieces, in
 * this order; keeps the rest. Returns 1 if it sent anything. */
static int send_pieces(struct socket_channel *s, struct link *link,
                       const struct iovec more[2])
{
    size_t kept = link->out_end - link->out_at;
    struct iovec pieces[3] = {
        {link->out + link->out_at, kept}, more[0], more[1]};
    struct msghdr header = {.msg_iov = pieces, .msg_iovlen = 3};
    ssize_t sent = sendmsg(link->sock, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
    size_t gone = sent < 0 ? 0 : (size_t)sent;

    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        end_link(s, link);
        return 1;
    }
    link->out_at += gone < kept ? gone : kept;
    if (link->out_at == link->out_end) {
        link->out_at = link->out_end = 0;
    }
    gone -= gone < kept ? gone : kept;
    for (int i = 0; i < 2 && link->sock >= 0; i++) {
        size_t part = gone < more[i].iov_len ? gone : more[i].iov_len;

        if (part < more[i].iov_len) {
            keep(s, link, (const char *)more[i].iov_base + part,
                 more[i].iov_len - part);
        }
        gone -= part;
    }
    link->is_stuck = link->out_at != link->out_end;
    return sent > 0;
}

/* turn() sends small messages, many at once. */
static void socket_send(struct iris_channel *channel, int rank,
                        const struct iris_far_message *message,
                        const void *data)
{
    struct socket_channel *s = of(channel);
    struct link *link = s->link_of[rank];
    const struct iovec pieces[2] = {
        {(void *)(uintptr_t)message, sizeof *message},
        {(void *)(uintptr_t)data, message->data},
    };

    if (link == NULL || link->sock < 0) {
        return;
    }
    if (message->data >= COPY_BYTES && !link->is_stuck) {
        (void)send_pieces(s, link, pieces);
        return;
    }
    for (int i = 0; i < 2 && link->sock >= 0 && pieces[i].iov_len != 0; i++) {
        keep(s, link, pieces[i].iov_base, pieces[i].iov_len);
    }
}

static int socket_is_full(struct iris_channel *channel, int rank)
{
    const struct link *link = of(channel)->link_of[rank];

    return link != NULL && link->out_end - link->out_at > FULL_BYTES;
}

static int socket_is_open(struct iris_channel *channel, int rank)
{
    const struct link *link = of(channel)->link_of[rank];

    return link != NULL && link->sock >= 0;
}

static int flush(struct socket_channel *s, struct link *link)
{
    static const struct iovec none[2];

    return link->sock >= 0 && link->out_at != link->out_end
               ? send_pieces(s, link, none)
               : 0;
}

/* ---- Receiving ---- */

/* Passes on the complete received messages; returns their number. */
static int give(struct socket_channel *s, struct link *link)
{
    size_t at = 0;
    int count = 0;

    while (link->sock >= 0 &&
           link->in_bytes - at >= sizeof(struct iris_far_message)) {
        struct iris_far_message message;

        memcpy(&message, link->in + at, sizeof message);
        if (message.data > IRIS_RING_BYTES) {
            iris_i_warning(s->log, "rank %d sends nonsense; closed",
                           link->rank);
            end_link(s, link);
            break;
        }
        if (link->in_bytes - at < sizeof message + message.data) {
            break;
        }
        s->base.taken(s->base.arg, link->rank, &message,
                      link->in + at + sizeof message);
        at += sizeof message + message.data;
        count++;
    }
    link->in_bytes -= at;
    memmove(link->in, link->in + at, link->in_bytes);
    return count;
}

static int receive(struct socket_channel *s, struct link *link)
{
    ssize_t got = recv(link->sock, link->in + link->in_bytes,
                       IN_BYTES - link->in_bytes, MSG_DONTWAIT);

    if (got < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    if (got <= 0) {
        end_link(s, link);
        return 1;
    }
    link->in_bytes += (size_t)got;
    return give(s, link);
}

static int socket_turn(struct iris_channel *channel, int timeout_ms)
{
    struct socket_channel *s = of(channel);
    struct pollfd *bell = &s->polled[s->num_links];
    uint64_t rings;
    int count = 0;

    for (int i = 0; i < s->num_links; i++) {
        struct link *link = &s->links[i];

        count += link->is_stuck ? 0 : flush(s, link);
        s->polled[i].fd = link->sock;
        s->polled[i].events = POLLIN;
        s->polled[i].events |= link->is_stuck ? POLLOUT : 0;
    }
    if (poll(s->polled, (nfds_t)s->num_links + 1, timeout_ms) <= 0) {
        return count;
    }
    if (bell->revents != 0) {
        (void)!read(bell->fd, &rings, sizeof rings);
    }
    for (int i = 0; i < s->num_links; i++) {
        struct link *link = &s->links[i];

        if (link->sock >= 0 && (s->polled[i].revents & ~POLLOUT) != 0) {
            count += receive(s, link);
        }
        if (!link->is_stuck || (s->polled[i].revents & POLLOUT) != 0) {
            count += flush(s, link);
        }
    }
    return count;
}

/* ---- Opening and closing ---- */

static void socket_close(struct iris_channel *channel)
{
    struct socket_channel *s = of(channel);

    for (int i = 0; s->links != NULL && i < s->num_links; i++) {
        if (s->links[i].sock >= 0) {
            close(s->links[i].sock);
        }
        free(s->links[i].in);
        free(s->links[i].out);
    }
    if (s->base.bell >= 0) {
        close(s->base.bell);
    }
    free(s->links);
    free(s->link_of);
    free(s->polled);
    free(s);
}

static const struct iris_channel_ops ops = {
    .send = socket_send,
    .is_full = socket_is_full,
    .is_open = socket_is_open,
    .turn = socket_turn,
    .close = socket_close,
};

iris_status_t iris_i_channel_socket_listen(enum iris_control_kind kind,
                                           struct iris_hello *hello,
                                           int *sock_p)
{
    int sock = iris_i_stream_socket(kind, &hello->far_address);
    iris_status_t status;

    if (sock < 0) {
        return iris_i_fail_fd(errno, "cannot make a socket for other nodes");
    }
    status = iris_i_stream_listen(sock, kind, &hello->far_address);
    if (status != IRIS_OK) {
        close(sock);
        return status;
    }
    fcntl(sock, F_SETFL, O_NONBLOCK);
    *sock_p = sock;
    return IRIS_OK;
}

static struct introduction
introduction_of(const struct iris_channel_params *params)
{
    struct introduction own = {.rank = params->log->rank,
                               .num_ranks = params->log->num_ranks};

    memcpy(own.secret, params->rendezvous->hellos[0].control_secret,
           sizeof own.secret);
    return own;
}

static iris_status_t connect_to(const struct iris_channel_params *params,
                                struct link *link)
{
    const struct iris_hello *hello = &params->rendezvous->hellos[link->rank];
    struct introduction own = introduction_of(params);
    int ret;

    link->sock = iris_i_stream_socket(
        (enum iris_control_kind)params->rendezvous->hellos[0].control,
        &hello->far_address);
    if (link->sock < 0) {
        return iris_i_fail_fd(errno, "cannot make a socket for other nodes");
    }
    ret = iris_i_stream_connect(link->sock, &hello->far_address);
    if (ret == 0 && send(link->sock, &own, sizeof own, MSG_NOSIGNAL) !=
                        (ssize_t)sizeof own) {
        ret = errno;
    }
    return ret == 0 ? IRIS_OK
                    : iris_i_fail_errno(params->log, IRIS_ERR_SYSTEM, ret,
                                        "cannot connect to rank %d, which is "
                                        "on another node",
                                        link->rank);
}

/* Accepts a connection if it belongs to the job; refuses strangers. */
static int accept_one(struct socket_channel *s,
                      const struct iris_channel_params *params)
{
    const struct timeval patience = {.tv_sec = INTRODUCTION_MS / 1000};
    struct introduction theirs, own = introduction_of(params);
    int sock = iris_i_fd_above_stdio(
        accept4(params->listener, NULL, NULL, SOCK_CLOEXEC));

    if (sock < 0) {
        return 0;
    }
    setsockopt(sock, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    if (recv(sock, &theirs, sizeof theirs, MSG_WAITALL) ==
            (ssize_t)sizeof theirs &&
        memcmp(theirs.secret, own.secret, sizeof own.secret) == 0 &&
        theirs.rank > own.rank && theirs.rank < own.num_ranks &&
        s->link_of[theirs.rank] != NULL && s->link_of[theirs.rank]->sock < 0) {
        s->link_of[theirs.rank]->sock = sock;
        return 1;
    }
    close(sock);
    return 0;
}

static void describe(void *arg, char *text, size_t bytes)
{
    const struct socket_channel *s = arg;
    int rank = -1;

    for (int i = 0; i < s->num_links && rank < 0; i++) {
        rank = s->links[i].sock < 0 ? s->links[i].rank : -1;
    }
    snprintf(text, bytes, "rank %d, on another node, to connect", rank);
}

static iris_status_t accept_all(struct socket_channel *s,
                                const struct iris_channel_params *params,
                                int missing)
{
    static const struct iris_wait_type for_peers = {.pace = IRIS_PACE_SOCKET,
                                                    .describe = describe};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_peers, params->waiter, "iris_init", s);
    wait.fd = params->listener;
    while (status == IRIS_OK && missing != 0) {
        int came = accept_one(s, params);

        missing -= came;
        status = came ? IRIS_OK : iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return status;
}

static iris_status_t make(struct socket_channel *s,
                          const struct iris_channel_params *params)
{
    size_t num_ranks = (size_t)params->log->num_ranks;

    s->links = calloc(num_ranks, sizeof *s->links);
    s->link_of = calloc(num_ranks, sizeof *s->link_of);
    s->polled = calloc(num_ranks + 1, sizeof *s->polled);
    s->base.bell =
        iris_i_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    if (s->base.bell < 0) {
        return iris_i_fail_fd(errno, "cannot make an eventfd");
    }
    for (int rank = 0; s->links != NULL && s->link_of != NULL &&
                       rank < params->log->num_ranks;
         rank++) {
        struct link *link = &s->links[s->num_links];

        if (params->is_far(params->arg, rank)) {
            s->link_of[rank] = link;
            s->num_links++;
            link->rank = rank;
            link->sock = -1;
            link->in = malloc(IN_BYTES);
            if (link->in == NULL) {
                break;
            }
        }
    }
    if (s->polled == NULL || s->num_links == 0 ||
        s->links[s->num_links - 1].in == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for connections to other nodes");
    }
    s->polled[s->num_links] =
        (struct pollfd){.fd = s->base.bell, .events = POLLIN};
    return IRIS_OK;
}

iris_status_t
iris_i_channel_socket_open(const struct iris_channel_params *params,
                           struct iris_channel **channel_p)
{
    struct socket_channel *s = calloc(1, sizeof *s);
    iris_status_t status = IRIS_ERR_NO_MEMORY;
    int missing = 0;

    if (s == NULL) {
        close(params->listener);
        return iris_i_fail(NULL, status, "no memory");
    }
    s->base.ops = &ops;
    s->base.bell = -1;
    s->log = params->log;
    status = make(s, params);
    for (int i = 0; status == IRIS_OK && i < s->num_links; i++) {
        if (s->links[i].rank < params->log->rank) {
            status = connect_to(params, &s->links[i]);
        } else {
            missing++;
        }
    }
    if (status == IRIS_OK) {
        status = accept_all(s, params, missing);
    }
    close(params->listener);
    if (status != IRIS_OK) {
        socket_close(&s->base);
        return status;
    }
    *channel_p = &s->base;
    return IRIS_OK;
}
