/* SPDX-License-Identifier: MIT
 *
 * The channel over stream sockets.
 */
#include "config.h"

#include "transport/channel_socket.h"

#include <iris/device/ring.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/shm.h"
#include "transport/bell.h"
#include "transport/socket_meet.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Number of pending bytes for a rank from which requests to it wait, too. */
#define FULL_BYTES ((size_t)1 << 20)

/* Messages with less data are copied, and sent together. A call of the system
 * costs more. */
#define COPY_BYTES IRIS_RING_BYTES

/* Up to this number of links, receiving from each takes less time than asking
 * which have data. */
#define FEW_LINKS 4

/* The largest message; a link receives several at once. */
#define MESSAGE_BYTES (sizeof(struct iris_far_message) + IRIS_RING_BYTES)
#define IN_BYTES (2 * MESSAGE_BYTES)

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
    struct link **link_of;      /* for each rank; NULL: it is on this node */
    int watch;                  /* an epoll of the links and the bell */
    struct epoll_event *events; /* one for each of them */
};

static struct socket_channel *of(struct iris_channel *channel)
{
    return (struct socket_channel *)channel;
}

static void end_link(struct socket_channel *s, struct link *link)
{
    iris_i_debug(s->log, "the connection to rank %d is closed", link->rank);
    (void)epoll_ctl(s->watch, EPOLL_CTL_DEL, link->sock, NULL);
    close(link->sock);
    link->sock = -1;
    link->out_at = link->out_end = 0;
    link->is_stuck = 0;
}

/* `link` NULL: the bell. */
static int watch_link(struct socket_channel *s, struct link *link, int how)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};

    event.events |= link != NULL && link->is_stuck ? EPOLLOUT : 0;
    return epoll_ctl(s->watch, how, link != NULL ? link->sock : s->base.bell,
                     &event) == 0;
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
    if (link->sock >= 0 && link->is_stuck != (link->out_at != link->out_end)) {
        link->is_stuck = !link->is_stuck;
        (void)watch_link(s, link, EPOLL_CTL_MOD);
    }
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
    ssize_t got;

    if (link->sock < 0) {
        return 0;
    }
    got = recv(link->sock, link->in + link->in_bytes, IN_BYTES - link->in_bytes,
               MSG_DONTWAIT);
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

/* Receives from links that have data, and sends to links that take more. */
static int ask_all(struct socket_channel *s)
{
    int num_events = epoll_wait(s->watch, s->events, s->num_links + 1, 0);
    int count = 0;

    for (int i = 0; i < num_events; i++) {
        struct link *link = s->events[i].data.ptr;

        if (link != NULL && (s->events[i].events & ~EPOLLOUT) != 0) {
            count += receive(s, link);
        }
        if (link != NULL) {
            count += flush(s, link);
        }
    }
    return count;
}

static int socket_turn(struct iris_channel *channel)
{
    struct socket_channel *s = of(channel);
    int is_few = s->num_links <= FEW_LINKS, count = 0;

    for (int i = 0; i < s->num_links; i++) {
        struct link *link = &s->links[i];

        count += is_few || !link->is_stuck ? flush(s, link) : 0;
        count += is_few && receive(s, link) ? 1 + flush(s, link) : 0;
    }
    return is_few ? count : count + ask_all(s);
}

static void socket_wait(struct iris_channel *channel, int timeout_ms)
{
    struct epoll_event event;

    (void)epoll_wait(of(channel)->watch, &event, 1, timeout_ms);
    iris_i_bell_silence(channel->bell);
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
    if (s->watch >= 0) {
        close(s->watch);
    }
    free(s->links);
    free(s->link_of);
    free(s->events);
    free(s);
}

static const struct iris_channel_ops ops = {
    .send = socket_send,
    .is_full = socket_is_full,
    .is_open = socket_is_open,
    .turn = socket_turn,
    .wait = socket_wait,
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

/* Where ranks share processors, a thread that sleeps until a message comes gets
 * a processor sooner than a lane that polls. */
static int has_processors(const struct iris_channel_params *params)
{
    const struct iris_hello *hellos = params->rendezvous->hellos;
    long num_ranks = 0;

    for (int rank = 0; rank < params->log->num_ranks; rank++) {
        num_ranks +=
            iris_i_hello_same_host(&hellos[rank], &hellos[params->log->rank]);
    }
    return num_ranks <= sysconf(_SC_NPROCESSORS_ONLN);
}

static iris_status_t make(struct socket_channel *s,
                          const struct iris_channel_params *params)
{
    size_t num_ranks = (size_t)params->log->num_ranks;

    s->links = calloc(num_ranks, sizeof *s->links);
    s->link_of = calloc(num_ranks, sizeof *s->link_of);
    s->events = calloc(num_ranks + 1, sizeof *s->events);
    s->base.bell = iris_i_bell_open();
    s->watch = iris_i_fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
    if (s->base.bell < 0 || s->watch < 0) {
        return iris_i_fail_fd(errno, "cannot make an eventfd and an epoll");
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
    if (s->events == NULL || s->num_links == 0 ||
        s->links[s->num_links - 1].in == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for connections to other nodes");
    }
    return IRIS_OK;
}

static iris_status_t meet(struct socket_channel *s,
                          const struct iris_channel_params *params)
{
    size_t num_ranks = (size_t)params->log->num_ranks;
    int *socks = malloc(num_ranks * sizeof *socks);
    iris_status_t status;

    if (socks == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    status = iris_i_socket_meet(params, socks);
    for (int i = 0; i < s->num_links; i++) {
        s->links[i].sock = socks[s->links[i].rank];
    }
    free(socks);
    return status;
}

static int watch_all(struct socket_channel *s)
{
    int good = watch_link(s, NULL, EPOLL_CTL_ADD);

    for (int i = 0; i < s->num_links && good; i++) {
        good = watch_link(s, &s->links[i], EPOLL_CTL_ADD);
    }
    return good;
}

iris_status_t
iris_i_channel_socket_open(const struct iris_channel_params *params,
                           struct iris_channel **channel_p)
{
    struct socket_channel *s = calloc(1, sizeof *s);
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    if (s == NULL) {
        close(params->listener);
        return iris_i_fail(NULL, status, "no memory");
    }
    s->base.ops = &ops;
    s->base.bell = s->watch = -1;
    s->base.any_thread = has_processors(params);
    s->log = params->log;
    status = make(s, params);
    if (status == IRIS_OK) {
        status = meet(s, params);
    }
    if (status == IRIS_OK && !watch_all(s)) {
        status = iris_i_fail_fd(errno, "cannot watch connections");
    }
    close(params->listener);
    if (status != IRIS_OK) {
        socket_close(&s->base);
        return status;
    }
    *channel_p = &s->base;
    return IRIS_OK;
}
