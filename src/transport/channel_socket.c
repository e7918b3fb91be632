/* SPDX-License-Identifier: MIT
 *
 * The channel over stream sockets. Each link is a session (base/session.c) over
 * one connection at a time. A connection that ends is replaced, and the session
 * resumes (socket_meet.c). If that fails the rank is lost, and the proxy's
 * owner tells all ranks.
 */
#include "config.h"

#include "transport/internal.h"

#include <iris/device/core/ring.h>

#include "base/base.h"
#include "base/link.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

/* Number of unacknowledged bytes for a rank from which requests to it wait,
 * too. The rank acknowledges sooner. */
#define FULL_BYTES ((size_t)1 << 20)

/* Messages with less data are sent together. A call of the system costs more
 * than a copy. */
#define COPY_BYTES IRIS_RING_BYTES

/* Up to this number of links, receiving from each takes less time than asking
 * which have data. */
#define FEW_LINKS 4

/* Turns between two looks at new connections and at hosts that do not answer,
 * unless the last sleep or a cut link asks for one. */
#define UPKEEP_TURNS 256

/* The longest sleep while a link is cut. */
#define CUT_WAIT_MS 10

/* A resumption that takes longer is worth a warning. */
#define SLOW_NS IRIS_NS_PER_S

#define MESSAGE_BYTES (sizeof(struct iris_far_message) + IRIS_RING_BYTES)

/* The link to one rank.
 *
 *   JOINED  the session has a connection
 *   CUT     it has none; socket_meet.c looks for one (the state at first)
 *   ENDED   the rank has closed its context; a message to it would be lost
 *   LOST    no message can reach the rank, or none from it was understood; the
 *           rank is lost for the job */
enum link_state { JOINED, CUT, ENDED, LOST };

struct link {
    int rank;
    enum link_state state;
    int was_stuck;   /* as the epoll knows it */
    int errno_value; /* A send has failed, so the link is cut once all data that
                      * has arrived is read. 0: none has */
    int64_t cut_ns;  /* time of the cut; 0: it has never been joined */
    struct iris_stream_check check;
    struct iris_session session;
};

struct socket_channel {
    struct iris_channel base;
    const struct iris_log *log;
    int num_links;
    struct link *links;
    struct link **link_of; /* for each rank; NULL: it is on this node */
    struct iris_meet *meet;
    int watch;                  /* an epoll of the links, the bell and the
                                 * sockets of `meet` */
    struct epoll_event *events; /* for each link and two more */
    unsigned turns;
    atomic_int num_cut;
    atomic_int asked; /* a new connection may wait, or time has passed */
    char why[160];    /* the first loss; empty: none */
};

static struct socket_channel *of(struct iris_channel *channel)
{
    return (struct socket_channel *)channel;
}

/* `link` NULL: the bell. */
static int watch_link(struct socket_channel *s, struct link *link, int how)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = link};

    event.events |= link != NULL && link->session.is_stuck ? EPOLLOUT : 0;
    return epoll_ctl(s->watch, how,
                     link != NULL ? link->session.sock : s->base.bell,
                     &event) == 0;
}

/* ---- The states of a link ---- */

/* Returns the data of acknowledged messages. */
static void give_back(struct socket_channel *s, struct link *link)
{
    const void *data;

    while ((data = iris_i_session_returned(&link->session)) != NULL) {
        s->base.returned(s->base.arg, data);
    }
}

static void leave_state(struct socket_channel *s, struct link *link,
                        enum link_state next)
{
    if (link->session.sock >= 0) {
        (void)epoll_ctl(s->watch, EPOLL_CTL_DEL, link->session.sock, NULL);
        shutdown(link->session.sock,
                 SHUT_RDWR); /* a forked child has it, too */
        close(link->session.sock);
        link->session.sock = -1;
    }
    link->errno_value = 0;
    atomic_fetch_add(&s->num_cut, (next == CUT) - (link->state == CUT));
    if (next != CUT) {
        iris_i_meet_forget(s->meet, link->rank);
        iris_i_session_abandon(&link->session);
        give_back(s, link);
    }
    link->state = next;
}

/* No byte may be missing in silence: all waits of the job learn of it. */
static void lose_link(struct socket_channel *s, struct link *link,
                      const char *why)
{
    if (link->state == LOST) {
        return;
    }
    leave_state(s, link, LOST);
    if (s->why[0] == '\0') {
        snprintf(s->why, sizeof s->why, "cannot reach rank %d: %s", link->rank,
                 why);
    }
    if (s->base.lost != NULL) {
        s->base.lost(s->base.arg, link->rank, why);
    }
}

static void cut_link(struct socket_channel *s, struct link *link,
                     const char *why)
{
    iris_i_info(s->log, "the connection to rank %d is cut: %s", link->rank,
                why);
    leave_state(s, link, CUT);
    link->cut_ns = iris_i_now_ns();
    iris_i_meet_seek(s->meet, link->rank);
}

/* `errno_value` 0: the rank has closed it. */
static void cut_by(struct socket_channel *s, struct link *link, int errno_value)
{
    char text[64];

    cut_link(s, link,
             errno_value == 0 ? "closed by the other side"
                              : strerror_r(errno_value, text, sizeof text));
}

static uint64_t stop_reading(void *arg, int rank)
{
    struct link *link = ((struct socket_channel *)arg)->link_of[rank];

    if (link->state == JOINED) {
        cut_link(arg, link, "replaced by a new connection");
    }
    return link->session.received;
}

static void log_joined(struct socket_channel *s, struct link *link,
                       uint64_t resent)
{
    int64_t ns = iris_i_now_ns() - link->cut_ns;
    char text[128];

    snprintf(text, sizeof text,
             "the connection to rank %d is resumed after %.3f s; %llu bytes "
             "are sent again",
             link->rank, (double)ns / IRIS_NS_PER_S,
             (unsigned long long)resent);
    if (link->cut_ns == 0) {
        iris_i_debug(s->log, "connected to rank %d", link->rank);
    } else if (ns > SLOW_NS) {
        iris_i_warning(s->log, "%s", text);
    } else {
        iris_i_info(s->log, "%s", text);
    }
}

static void take_connection(void *arg, int rank, int sock, uint64_t theirs)
{
    struct socket_channel *s = arg;
    struct link *link = s->link_of[rank];
    uint64_t high = link->session.high;

    if (link->state != CUT) {
        close(sock);
        return;
    }
    if (!iris_i_session_resume(&link->session, sock, theirs)) {
        close(sock);
        lose_link(s, link, "it has not received what was sent to it");
        return;
    }
    give_back(s, link);
    link->check = (struct iris_stream_check){0};
    atomic_fetch_sub(&s->num_cut, 1);
    link->state = JOINED;
    link->was_stuck = link->session.is_stuck;
    if (!watch_link(s, link, EPOLL_CTL_ADD)) {
        lose_link(s, link, "the system cannot watch its connection");
        return;
    }
    log_joined(s, link, high - theirs);
}

static void fail_rank(void *arg, int rank, const char *why)
{
    lose_link(arg, ((struct socket_channel *)arg)->link_of[rank], why);
}

/* Looks at new connections, and cuts links whose host does not answer. */
static void keep_up(struct socket_channel *s)
{
    (void)iris_i_meet_turn(s->meet);
    for (int i = 0; i < s->num_links; i++) {
        struct link *link = &s->links[i];

        if (link->state == JOINED &&
            !iris_i_stream_answers(&link->check, link->session.sock)) {
            cut_link(s, link, "its host does not answer");
        }
    }
}

/* ---- Sending ---- */

/* Sends pending data. Returns 1 if it sent anything. */
static int flush(struct socket_channel *s, struct link *link)
{
    int sent = link->state == JOINED && link->errno_value == 0
                   ? iris_i_session_send(&link->session)
                   : 0;

    if (sent < 0) {
        link->errno_value = errno;
        return 1;
    }
    if (link->state == JOINED && link->was_stuck != link->session.is_stuck) {
        link->was_stuck = link->session.is_stuck;
        (void)watch_link(s, link, EPOLL_CTL_MOD);
    }
    return sent;
}

/* turn() sends small messages, many at once. */
static int socket_send(struct iris_channel *channel, int rank,
                       const struct iris_far_message *message, const void *data,
                       int stays)
{
    struct socket_channel *s = of(channel);
    struct link *link = s->link_of[rank];
    int is_large = message->data >= COPY_BYTES, is_lent;

    if (link->state == ENDED) {
        lose_link(s, link, "it has closed its context");
    }
    if (link->state == LOST) {
        return 0;
    }
    is_lent = is_large && stays &&
              iris_i_session_lend(&link->session, message, sizeof *message,
                                  data, message->data);
    if (!is_lent && !iris_i_session_put(&link->session, message,
                                        sizeof *message, data, message->data)) {
        lose_link(s, link, "there is no memory for messages to it");
    } else if (is_large && !link->session.is_stuck) {
        (void)flush(s, link);
    }
    return is_lent;
}

static void socket_recall(struct iris_channel *channel, int rank)
{
    struct socket_channel *s = of(channel);
    struct link *link = s->link_of[rank];
    const void *data;

    if (!iris_i_session_recall(&link->session, &data)) {
        lose_link(s, link, "there is no memory for messages to it");
    } else if (data != NULL) {
        s->base.returned(s->base.arg, data);
    }
}

static int socket_is_full(struct iris_channel *channel, int rank)
{
    const struct link *link = of(channel)->link_of[rank];

    return iris_i_session_pending(&link->session) > FULL_BYTES;
}

/* ---- Receiving ---- */

static int give_message(struct socket_channel *s, struct link *link,
                        const void *record, size_t bytes)
{
    struct iris_far_message message;

    if (bytes < sizeof message) {
        return 0;
    }
    memcpy(&message, record, sizeof message);
    if (message.data != bytes - sizeof message) {
        return 0;
    }
    s->base.taken(s->base.arg, link->rank, &message,
                  (const char *)record + sizeof message);
    return 1;
}

/* Passes on the complete received messages; returns their number. An answer
 * that is sent meanwhile may find that the connection has ended. The messages
 * that have arrived count all the same. */
static int give(struct socket_channel *s, struct link *link)
{
    enum iris_session_taken taken;
    const void *record;
    size_t bytes;
    int count = 0;

    while (link->state != LOST &&
           (taken = iris_i_session_take(&link->session, &record, &bytes)) !=
               IRIS_SESSION_NONE) {
        if (taken == IRIS_SESSION_END) {
            iris_i_debug(s->log, "rank %d closes its connection", link->rank);
            leave_state(s, link, ENDED);
            break;
        }
        if (taken == IRIS_SESSION_NONSENSE ||
            !give_message(s, link, record, bytes)) {
            lose_link(s, link, "it sends data that is not a message");
            break;
        }
        count++;
    }
    give_back(s, link);
    if (link->state == JOINED && !iris_i_session_tell(&link->session)) {
        lose_link(s, link, "there is no memory for messages to it");
    }
    return count;
}

static int receive(struct socket_channel *s, struct link *link)
{
    int got =
        link->state == JOINED ? iris_i_session_receive(&link->session) : 0;

    if (got < 0 || (got == 0 && link->errno_value != 0)) {
        cut_by(s, link, got < 0 ? errno : link->errno_value);
        return 1;
    }
    return got > 0 ? 1 + give(s, link) : 0; /* bytes may acknowledge */
}

/* Receives from links that have data, and sends to links that take more. */
static int ask_all(struct socket_channel *s)
{
    int num_events = epoll_wait(s->watch, s->events, s->num_links + 2, 0);
    int count = 0;

    for (int i = 0; i < num_events; i++) {
        struct link *link = s->events[i].data.ptr;

        if ((void *)link == (void *)s) {
            atomic_store(&s->asked, 1);
            continue;
        }
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

    if (++s->turns % UPKEEP_TURNS == 0 ||
        atomic_load_explicit(&s->num_cut, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&s->asked, memory_order_relaxed) != 0) {
        atomic_store(&s->asked, 0);
        keep_up(s);
    }
    for (int i = 0; i < s->num_links; i++) {
        struct link *link = &s->links[i];

        count += is_few || !link->session.is_stuck ? flush(s, link) : 0;
        count += (is_few || link->errno_value != 0) && receive(s, link)
                     ? 1 + flush(s, link)
                     : 0;
    }
    return is_few ? count : count + ask_all(s);
}

static void socket_wait(struct iris_channel *channel, int timeout_ms)
{
    struct socket_channel *s = of(channel);
    struct epoll_event event;

    if (atomic_load(&s->num_cut) != 0 && timeout_ms > CUT_WAIT_MS) {
        timeout_ms = CUT_WAIT_MS;
    }
    if (epoll_wait(s->watch, &event, 1, timeout_ms) <= 0 ||
        event.data.ptr == s) {
        atomic_store(&s->asked, 1);
    }
    iris_i_bell_silence(channel->bell);
}

/* ---- Opening and closing ---- */

static void socket_close(struct iris_channel *channel)
{
    struct socket_channel *s = of(channel);

    for (int i = 0; s->links != NULL && i < s->num_links; i++) {
        struct iris_session *session = &s->links[i].session;

        if (session->sock >= 0) {
            (void)iris_i_session_put_end(session);
            (void)iris_i_session_send(session);
            close(session->sock);
        }
        iris_i_session_close(session);
    }
    iris_i_meet_close(s->meet);
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
    .recall = socket_recall,
    .is_full = socket_is_full,
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
    s->events = calloc(num_ranks + 2, sizeof *s->events);
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
            link->state = CUT;
            if (!iris_i_session_open(&link->session, MESSAGE_BYTES)) {
                break;
            }
        }
    }
    atomic_store(&s->num_cut, s->num_links);
    if (s->events == NULL || s->num_links == 0 ||
        s->links[s->num_links - 1].session.out == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for connections to other nodes");
    }
    return watch_link(s, NULL, EPOLL_CTL_ADD)
               ? IRIS_OK
               : iris_i_fail_fd(errno, "cannot watch connections");
}

/* The first rank that has not connected. */
static void describe(void *arg, char *text, size_t bytes)
{
    const struct socket_channel *s = arg;

    for (int i = 0; i < s->num_links; i++) {
        if (s->links[i].state == CUT) {
            snprintf(text, bytes, "rank %d, on another node, to connect",
                     s->links[i].rank);
            return;
        }
    }
}

static iris_status_t meet(struct socket_channel *s,
                          const struct iris_channel_params *params)
{
    static const struct iris_wait_type for_peers = {.pace = IRIS_PACE_SOCKET,
                                                    .describe = describe};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    for (int i = 0; i < s->num_links; i++) {
        iris_i_meet_seek(s->meet, s->links[i].rank);
    }
    iris_i_wait_begin(&wait, &for_peers, params->waiter, "iris_init", s);
    wait.fd = s->watch;
    (void)iris_i_meet_turn(s->meet);
    while (status == IRIS_OK && atomic_load(&s->num_cut) != 0 &&
           s->why[0] == '\0') {
        status = iris_i_wait_tick(&wait);
        (void)iris_i_meet_turn(s->meet);
    }
    iris_i_wait_end(&wait, status);
    return status == IRIS_OK && s->why[0] != '\0'
               ? iris_i_fail(s->log, IRIS_ERR_SYSTEM, "%s", s->why)
               : status;
}

iris_status_t
iris_i_channel_socket_open(const struct iris_channel_params *params,
                           struct iris_channel **channel_p)
{
    struct socket_channel *s = calloc(1, sizeof *s);
    const struct iris_meet_owner owner = {stop_reading, take_connection,
                                          fail_rank, s};
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
        status = iris_i_meet_open(params, &owner, s->watch, s, &s->meet);
    } else {
        close(params->listener);
    }
    if (status == IRIS_OK) {
        status = meet(s, params);
    }
    if (status != IRIS_OK) {
        socket_close(&s->base);
        return status;
    }
    *channel_p = &s->base;
    return IRIS_OK;
}
