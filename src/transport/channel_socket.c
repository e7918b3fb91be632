/* SPDX-License-Identifier: MIT
 *
 * The channel over stream sockets: a link (control/links.c) to each rank of
 * another node. If a link is lost the rank is lost, and the proxy's owner tells
 * all ranks.
 */
#include "config.h"

#include "transport/internal.h"

#include <iris/device/core/ring.h>

#include "base/base.h"
#include "control/control.h"

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

#define MESSAGE_BYTES (sizeof(struct iris_far_message) + IRIS_RING_BYTES)

struct socket_channel {
    struct iris_channel base;
    const struct iris_log *log;
    const struct iris_channel_params *params; /* while it opens */
    struct iris_links links;    /* `watched`: the link is stuck, as `watch`
                                * knows it */
    struct iris_link **link_of; /* for each rank; NULL: it is on this node */
    int watch;                  /* an epoll of the links, the bell and
                                 * links.poll */
    struct epoll_event *events; /* for each link and two more */
    unsigned turns;
    atomic_int asked; /* a new connection may wait, or time has passed */
    char why[160];    /* the first loss; empty: none */
};

static struct socket_channel *socket_of(struct iris_channel *channel)
{
    return (struct socket_channel *)channel;
}

/* `data`: the link, NULL for the bell, the channel for links.poll. */
static int watch_socket(struct socket_channel *s, int sock, void *data, int how,
                        int is_stuck)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};

    event.events |= is_stuck ? EPOLLOUT : 0;
    return epoll_ctl(s->watch, how, sock, &event) == 0;
}

/* ---- The states of a link ---- */

/* Returns the data of acknowledged messages. */
static void give_back(struct socket_channel *s, struct iris_link *link)
{
    const void *data;

    while ((data = iris_i_session_returned(&link->session)) != NULL) {
        s->base.returned(s->base.arg, data);
    }
}

/* No byte may be missing in silence: all waits of the job learn of it. */
static void lose_rank(struct socket_channel *s, struct iris_link *link,
                      const char *why)
{
    if (link->state == IRIS_LINK_LOST) {
        return;
    }
    iris_i_link_leave(&s->links, link, IRIS_LINK_LOST);
    give_back(s, link);
    if (s->why[0] == '\0') {
        snprintf(s->why, sizeof s->why, "cannot reach rank %d: %s", link->rank,
                 why);
    }
    if (s->base.lost != NULL) {
        s->base.lost(s->base.arg, link->rank, why);
    }
}

static void note_lost(void *arg, struct iris_link *link,
                      enum iris_link_loss loss, const char *why)
{
    (void)loss;
    lose_rank(arg, link, why);
}

static void note_left(void *arg, struct iris_link *link)
{
    (void)watch_socket(arg, link->session.sock, NULL, EPOLL_CTL_DEL, 0);
}

static void note_joined(void *arg, struct iris_link *link)
{
    struct socket_channel *s = arg;

    give_back(s, link);
    link->watched = link->session.is_stuck;
    if (!watch_socket(s, link->session.sock, link, EPOLL_CTL_ADD,
                      link->watched)) {
        lose_rank(s, link, "the system cannot watch its connection");
    }
}

/* ---- Sending ---- */

/* Sends pending data. Returns 1 if it sent anything. */
static int flush_link(struct socket_channel *s, struct iris_link *link)
{
    int sent = iris_i_link_send(link);

    if (link->state == IRIS_LINK_JOINED &&
        link->watched != link->session.is_stuck) {
        link->watched = link->session.is_stuck;
        (void)watch_socket(s, link->session.sock, link, EPOLL_CTL_MOD,
                           link->watched);
    }
    return sent;
}

/* turn() sends small messages, many at once. */
static int socket_send(struct iris_channel *channel, int rank,
                       const struct iris_far_message *message, const void *data,
                       int stays)
{
    struct socket_channel *s = socket_of(channel);
    struct iris_link *link = s->link_of[rank];
    int is_large = message->data >= COPY_BYTES, is_lent;

    if (link->state == IRIS_LINK_ENDED) {
        lose_rank(s, link, "it has closed its context");
    }
    if (link->state == IRIS_LINK_LOST) {
        return 0;
    }
    is_lent = is_large && stays &&
              iris_i_session_lend(&link->session, message, sizeof *message,
                                  data, message->data);
    if (!is_lent && !iris_i_session_put(&link->session, message,
                                        sizeof *message, data, message->data)) {
        lose_rank(s, link, "there is no memory for messages to it");
    } else if (is_large && !link->session.is_stuck) {
        (void)flush_link(s, link);
    }
    return is_lent;
}

static void socket_recall(struct iris_channel *channel, int rank)
{
    struct socket_channel *s = socket_of(channel);
    struct iris_link *link = s->link_of[rank];
    const void *data;

    if (!iris_i_session_recall(&link->session, &data)) {
        lose_rank(s, link, "there is no memory for messages to it");
    } else if (data != NULL) {
        s->base.returned(s->base.arg, data);
    }
}

static int socket_is_full(struct iris_channel *channel, int rank)
{
    const struct iris_link *link = socket_of(channel)->link_of[rank];

    return iris_i_session_pending(&link->session) > FULL_BYTES;
}

/* ---- Receiving ---- */

static int give_one(struct socket_channel *s, struct iris_link *link,
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
static int give_messages(struct socket_channel *s, struct iris_link *link)
{
    enum iris_session_taken taken;
    const void *record;
    size_t bytes;
    int count = 0;

    while (link->state != IRIS_LINK_LOST &&
           (taken = iris_i_session_take(&link->session, &record, &bytes)) !=
               IRIS_SESSION_NONE) {
        if (taken == IRIS_SESSION_END) {
            iris_i_debug(s->log, "rank %d closes its connection", link->rank);
            iris_i_link_leave(&s->links, link, IRIS_LINK_ENDED);
            break;
        }
        if (taken == IRIS_SESSION_NONSENSE ||
            !give_one(s, link, record, bytes)) {
            lose_rank(s, link, "it sends data that is not a message");
            break;
        }
        count++;
    }
    give_back(s, link);
    if (link->state == IRIS_LINK_JOINED &&
        !iris_i_session_tell(&link->session)) {
        lose_rank(s, link, "there is no memory for messages to it");
    }
    return count;
}

static int receive_link(struct socket_channel *s, struct iris_link *link)
{
    int got = iris_i_link_receive(&s->links, link);

    return got > 0 ? 1 + give_messages(s, link)
                   : got < 0; /* bytes may acknowledge */
}

/* Receives from links that have data, and sends to links that take more. */
static int ask_all(struct socket_channel *s)
{
    int num_events = epoll_wait(s->watch, s->events, s->links.count + 2, 0);
    int count = 0;

    for (int i = 0; i < num_events; i++) {
        struct iris_link *link = s->events[i].data.ptr;

        if ((void *)link == (void *)s) {
            atomic_store(&s->asked, 1);
            continue;
        }
        if (link != NULL && (s->events[i].events & ~EPOLLOUT) != 0) {
            count += receive_link(s, link);
        }
        if (link != NULL) {
            count += flush_link(s, link);
        }
    }
    return count;
}

static int socket_turn(struct iris_channel *channel)
{
    struct socket_channel *s = socket_of(channel);
    int is_few = s->links.count <= FEW_LINKS, count = 0;

    if (++s->turns % UPKEEP_TURNS == 0 ||
        atomic_load_explicit(&s->links.num_cut, memory_order_relaxed) != 0 ||
        atomic_load_explicit(&s->asked, memory_order_relaxed) != 0) {
        atomic_store(&s->asked, 0);
        iris_i_links_turn(&s->links);
    }
    for (int i = 0; i < s->links.count; i++) {
        struct iris_link *link = &s->links.all[i];

        count += is_few || !link->session.is_stuck ? flush_link(s, link) : 0;
        count += (is_few || link->errno_value != 0) && receive_link(s, link)
                     ? 1 + flush_link(s, link)
                     : 0;
    }
    return is_few ? count : count + ask_all(s);
}

static void socket_wait(struct iris_channel *channel, int timeout_ms)
{
    struct socket_channel *s = socket_of(channel);
    struct epoll_event event;

    if (atomic_load(&s->links.num_cut) != 0 && timeout_ms > CUT_WAIT_MS) {
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
    struct socket_channel *s = socket_of(channel);

    for (int i = 0; i < s->links.count; i++) {
        struct iris_session *session = &s->links.all[i].session;

        if (session->sock >= 0) {
            (void)iris_i_session_put_end(session);
            (void)iris_i_session_send(session);
        }
    }
    iris_i_links_close(&s->links);
    if (s->base.bell >= 0) {
        close(s->base.bell);
    }
    if (s->watch >= 0) {
        close(s->watch);
    }
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

static int is_linked(void *arg, int rank)
{
    const struct iris_channel_params *params =
        ((struct socket_channel *)arg)->params;

    return params->is_far(params->arg, rank);
}

/* Takes over the listener. */
static iris_status_t open_links(struct socket_channel *s,
                                const struct iris_channel_params *params)
{
    const struct iris_links_owner owner = {.joined = note_joined,
                                           .left = note_left,
                                           .lost = note_lost,
                                           .is_patient = 1,
                                           .arg = s};
    const struct iris_links_params to = {
        .log = params->log,
        .rendezvous = params->rendezvous,
        .label = "transport",
        .address_at = offsetof(struct iris_hello, far_address),
        .record_bytes = MESSAGE_BYTES,
        .listener = params->listener,
        .is_linked = is_linked};
    iris_status_t status;

    s->params = params;
    status = iris_i_links_open(&to, &owner, &s->links);
    s->params = NULL;
    for (int i = 0; status == IRIS_OK && i < s->links.count; i++) {
        s->link_of[s->links.all[i].rank] = &s->links.all[i];
    }
    return status == IRIS_OK &&
                   !watch_socket(s, s->links.poll, s, EPOLL_CTL_ADD, 0)
               ? iris_i_fail_fd(errno, "cannot watch connections")
               : status;
}

static iris_status_t make_sockets(struct socket_channel *s,
                                  const struct iris_channel_params *params)
{
    size_t num_ranks = (size_t)params->log->num_ranks;

    s->link_of = calloc(num_ranks, sizeof *s->link_of);
    s->events = calloc(num_ranks + 2, sizeof *s->events);
    s->base.bell = iris_i_bell_open();
    s->watch = iris_i_fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
    if (s->base.bell < 0 || s->watch < 0) {
        return iris_i_fail_fd(errno, "cannot make an eventfd and an epoll");
    }
    if (s->events == NULL || s->link_of == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for connections to other nodes");
    }
    return watch_socket(s, s->base.bell, NULL, EPOLL_CTL_ADD, 0)
               ? IRIS_OK
               : iris_i_fail_fd(errno, "cannot watch connections");
}

/* The first rank that has not connected. */
static void describe_cut(void *arg, char *text, size_t bytes)
{
    const struct socket_channel *s = arg;

    for (int i = 0; i < s->links.count; i++) {
        if (s->links.all[i].state == IRIS_LINK_CUT) {
            snprintf(text, bytes, "rank %d, on another node, to connect",
                     s->links.all[i].rank);
            return;
        }
    }
}

static iris_status_t meet_peers(struct socket_channel *s,
                                const struct iris_channel_params *params)
{
    static const struct iris_wait_type for_peers = {.pace = IRIS_PACE_SOCKET,
                                                    .describe = describe_cut};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_peers, params->waiter, "iris_init", s);
    wait.fd = s->watch;
    iris_i_links_turn(&s->links);
    while (status == IRIS_OK && atomic_load(&s->links.num_cut) != 0 &&
           s->why[0] == '\0') {
        status = iris_i_wait_tick(&wait);
        iris_i_links_turn(&s->links);
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
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    if (s == NULL) {
        close(params->listener);
        return iris_i_fail(NULL, status, "no memory");
    }
    s->base.ops = &ops;
    s->base.bell = s->watch = -1;
    s->base.any_thread = has_processors(params);
    s->log = params->log;
    status = make_sockets(s, params);
    if (status == IRIS_OK) {
        status = open_links(s, params);
    } else {
        close(params->listener);
    }
    if (status == IRIS_OK) {
        status = meet_peers(s, params);
    }
    if (status != IRIS_OK) {
        socket_close(&s->base);
        return status;
    }
    *channel_p = &s->base;
    return IRIS_OK;
}
