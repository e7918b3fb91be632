/* SPDX-License-Identifier: MIT
 *
 * The thread that serves the connections of the control plane over sockets.
 */
#include "config.h"

#include <poll.h>

#include "control/hub.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/shm.h"
#include "control/board.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How often what need not be sent at once is sent, and deadlines are looked at.
 */
#define TICK_MS 20

/* Time that a connection has to say whose it is. */
#define PATIENCE_MS 2000

/* ---- Sending; with the lock ---- */

static void send_all(struct iris_hub *hub, const struct iris_message_head *head,
                     const struct iris_part parts[2])
{
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        if (link->sock >= 0 && link->rank >= 0 && link->rank != head->from &&
            iris_i_link_send(link, head, parts) < 0) {
            /* The thread finds its end, once all that came was read. */
            shutdown(link->sock, SHUT_WR);
        }
    }
}

static void send_shown(struct iris_hub *hub)
{
    unsigned parts = atomic_exchange(&hub->dirty, 0);
    unsigned char body[IRIS_MESSAGE_SHOWN_BYTES];
    struct iris_part pieces[2] = {{body, 0}, {NULL, 0}};
    struct iris_message_head head;
    struct iris_shown shown = {0};

    if (parts != 0) {
        iris_i_board_read(iris_i_hub_board(hub, hub->rank), parts, &shown);
        pieces[0].bytes = iris_i_message_pack(parts, &shown, body);
        head = iris_i_message_head(IRIS_MESSAGE_SHOWN, hub->rank, 0, parts,
                                   pieces[0].bytes);
        send_all(hub, &head, pieces);
    }
}

/* ---- For the rank's own threads ---- */

/* The thread sends what could not be sent at once. */
static void unlock(struct iris_hub *hub)
{
    int left_over = 0;

    for (int i = 0; i < hub->num_links; i++) {
        left_over |= hub->links[i].out_bytes != 0;
    }
    pthread_mutex_unlock(&hub->lock);
    if (left_over) {
        iris_i_hub_wake(hub);
    }
}

void iris_i_hub_say(struct iris_hub *hub, const struct iris_message_head *head,
                    const struct iris_part parts[2])
{
    pthread_mutex_lock(&hub->lock);
    send_shown(hub);
    send_all(hub, head, parts);
    unlock(hub);
}

void iris_i_hub_show(struct iris_hub *hub, unsigned parts, int now)
{
    atomic_fetch_or(&hub->dirty, parts);
    if (now) {
        pthread_mutex_lock(&hub->lock);
        send_shown(hub);
        unlock(hub);
    }
}

/* ---- Connections come and go ---- */

static void close_link(struct iris_hub *hub, struct iris_link *link)
{
    pthread_mutex_lock(&hub->lock);
    iris_i_link_close(link);
    pthread_mutex_unlock(&hub->lock);
}

/* A rank's connection is over: rank 0 tells the others. */
static void end_link(struct iris_hub *hub, struct iris_link *link)
{
    const struct iris_part none[2] = {{NULL, 0}, {NULL, 0}};
    struct iris_message_head head;
    int rank = link->rank;

    close_link(hub, link);
    if (rank < 0) {
        return;
    }
    iris_i_hub_end(hub, rank);
    if (hub->rank != 0) {
        atomic_store(&hub->lost, 1);
        return;
    }
    head = iris_i_message_head(IRIS_MESSAGE_ENDED, rank, 0, 0, 0);
    pthread_mutex_lock(&hub->lock);
    send_all(hub, &head, none);
    pthread_mutex_unlock(&hub->lock);
}

/* One line for the first, since anybody can make them. */
static void refuse(struct iris_hub *hub, struct iris_link *link,
                   iris_status_t status, const char *why)
{
    size_t bytes = strnlen(why, IRIS_MESSAGE_WHY_BYTES);
    const struct iris_part parts[2] = {{why, bytes}, {NULL, 0}};
    struct iris_message_head head = iris_i_message_head(
        IRIS_MESSAGE_REFUSED, 0, 0, (uint64_t)-status, bytes);

    if (hub->num_refused++ == 0) {
        iris_i_warning(hub->log,
                       "refused a connection to the control plane: %s", why);
    }
    (void)iris_i_link_send(link, &head, parts);
    shutdown(link->sock, SHUT_WR);
    close_link(hub, link);
}

static int accept_at(const struct iris_hub *hub)
{
    return iris_i_fd_above_stdio(
        accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

/* With the descriptor that was kept back: whoever comes hears why it is in
 * vain. */
static void refuse_one(struct iris_hub *hub, int errno_value)
{
    iris_status_t status = iris_i_fail_fd(errno_value, "cannot accept a rank");
    struct iris_link link = {.sock = -1};

    if (hub->spare < 0) {
        return;
    }
    close(hub->spare);
    iris_i_link_open(&link, accept_at(hub), -1);
    if (link.sock >= 0) {
        refuse(hub, &link, status, iris_last_error());
    }
    hub->spare = fcntl(hub->listener, F_DUPFD_CLOEXEC, 0);
}

static void accept_one(struct iris_hub *hub)
{
    int sock = accept_at(hub);

    if (sock < 0 && (errno == EMFILE || errno == ENFILE)) {
        refuse_one(hub, errno);
    }

    for (int i = hub->num_ranks; sock >= 0 && i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        if (link->sock < 0) {
            pthread_mutex_lock(&hub->lock);
            iris_i_link_open(link, sock, -1);
            link->patience_ns = iris_i_deadline(PATIENCE_MS);
            pthread_mutex_unlock(&hub->lock);
            return;
        }
    }
    if (sock >= 0) { /* too many strangers: it may come again */
        close(sock);
    }
}

static void send_board(struct iris_hub *hub, struct iris_link *link, int shower)
{
    unsigned char body[IRIS_MESSAGE_SHOWN_BYTES];
    struct iris_part pieces[2] = {{body, 0}, {NULL, 0}};
    struct iris_message_head head;
    struct iris_shown shown = {0};

    iris_i_board_read(iris_i_hub_board(hub, shower), IRIS_SHOW_ALL, &shown);
    pieces[0].bytes = iris_i_message_pack(IRIS_SHOW_ALL, &shown, body);
    head = iris_i_message_head(IRIS_MESSAGE_SHOWN, shower, 0, IRIS_SHOW_ALL,
                               pieces[0].bytes);
    (void)iris_i_link_send(link, &head, pieces);
}

/* The stranger is a rank: it is welcome, told what the others have shown so
 * far, and moves to its rank's link with what it has said since. Nobody posts
 * before all are here. */
static void welcome(struct iris_hub *hub, struct iris_link *stranger, int rank)
{
    const struct iris_part none[2] = {{NULL, 0}, {NULL, 0}};
    struct iris_message_head head =
        iris_i_message_head(IRIS_MESSAGE_WELCOME, 0, 0, 0, 0);
    struct iris_link *link = &hub->links[rank];

    pthread_mutex_lock(&hub->lock);
    *link = *stranger;
    link->rank = rank;
    stranger->sock = -1;
    stranger->out = NULL;
    iris_i_link_close(stranger);
    (void)iris_i_link_send(link, &head, none);
    for (int shower = 0; shower < hub->num_ranks; shower++) {
        if (shower != rank) {
            send_board(hub, link, shower);
        }
    }
    pthread_mutex_unlock(&hub->lock);
    if (++hub->num_here == hub->num_ranks - 1) {
        iris_i_hub_close_listener(hub);
    }
}

/* ---- Receiving ---- */

/* Takes one message of a link. 0: there is none; -1: the link is no more. */
static int take(struct iris_hub *hub, struct iris_link *link)
{
    char why[IRIS_MESSAGE_WHY_BYTES];
    struct iris_message_head head;
    const unsigned char *body = link->in + sizeof head;
    const struct iris_part none = {NULL, 0};
    int bytes = iris_i_message_take(link->in, link->in_bytes, hub->num_ranks,
                                    &head, why);

    if (bytes == 0) {
        return 0;
    }
    if (link->rank < 0) {
        if (bytes < 0 || !iris_i_hub_check_hello(hub, &head, body, why)) {
            refuse(hub, link, IRIS_ERR_BOOTSTRAP, why);
            return -1;
        }
        iris_i_link_drop(link, (size_t)bytes);
        welcome(hub, link, head.from);
        return -1;
    }
    if (bytes < 0 || (hub->rank == 0 && head.from != link->rank) ||
        !iris_i_hub_apply(hub, &head, body)) {
        iris_i_warning(hub->log,
                       "rank %d sends what is no message of the control plane; "
                       "its connection is closed",
                       link->rank);
        end_link(hub, link);
        return -1;
    }
    if (hub->rank == 0) {
        const struct iris_part parts[2] = {{body, head.bytes}, none};

        pthread_mutex_lock(&hub->lock);
        send_all(hub, &head, parts);
        pthread_mutex_unlock(&hub->lock);
    }
    iris_i_link_drop(link, (size_t)bytes);
    return 1;
}

static void serve(struct iris_hub *hub, struct iris_link *link)
{
    int rank = link->rank, ended = iris_i_link_fill(link) < 0, taken;

    do {
        taken = take(hub, link);
    } while (taken > 0);
    if (taken < 0 && rank < 0) { /* it may be a rank's now */
        for (int i = 1; i < hub->num_ranks; i++) {
            while (hub->links[i].sock >= 0 && take(hub, &hub->links[i]) > 0) {
            }
        }
        return;
    }
    if (ended && link->sock >= 0) {
        end_link(hub, link);
    }
}

/* ---- The thread ---- */

/* Whether it is done: all connections are over, or the time is. */
static int is_done(struct iris_hub *hub)
{
    int num_open = 0;

    if (!atomic_load(&hub->closing)) {
        return 0;
    }
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        num_open += link->sock >= 0 && link->rank >= 0;
        if (hub->rank != 0 && link->sock >= 0 && link->out_bytes == 0) {
            shutdown(link->sock, SHUT_WR);
        }
    }
    return num_open == 0 || iris_i_now_ns() >= hub->close_by_ns;
}

/* Connections that are open only: poll() refuses more entries than the process
 * may have descriptors. */
static nfds_t list_polled(struct iris_hub *hub)
{
    nfds_t count = 2;

    hub->polled[0] = (struct pollfd){.fd = hub->wake, .events = POLLIN};
    hub->polled[1] = (struct pollfd){.fd = hub->listener, .events = POLLIN};
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        link->polled = 0;
        if (link->sock >= 0) {
            short events = link->out_bytes != 0 ? POLLIN | POLLOUT : POLLIN;

            link->polled = (int)count;
            hub->polled[count++] =
                (struct pollfd){.fd = link->sock, .events = events};
        }
    }
    return count;
}

static void turn(struct iris_hub *hub)
{
    uint64_t count;
    nfds_t num_polled;

    pthread_mutex_lock(&hub->lock);
    num_polled = list_polled(hub);
    pthread_mutex_unlock(&hub->lock);
    if (poll(hub->polled, num_polled, TICK_MS) < 0) {
        return;
    }
    if (hub->polled[0].revents != 0) {
        (void)!read(hub->wake, &count, sizeof count);
    }
    if (hub->polled[1].revents != 0) {
        accept_one(hub);
    }
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        if (link->sock >= 0 && link->polled != 0 &&
            (hub->polled[link->polled].revents & ~POLLOUT) != 0) {
            serve(hub, link);
        }
        if (link->sock >= 0 && link->rank < 0 &&
            iris_i_now_ns() >= link->patience_ns) {
            refuse(hub, link, IRIS_ERR_BOOTSTRAP, "it has not said who it is");
        }
    }
    pthread_mutex_lock(&hub->lock);
    send_shown(hub);
    for (int i = 0; i < hub->num_links; i++) {
        if (hub->links[i].sock >= 0) {
            (void)iris_i_link_flush(&hub->links[i]);
        }
    }
    pthread_mutex_unlock(&hub->lock);
}

void *iris_i_hub_run(void *arg)
{
    struct iris_hub *hub = arg;

    while (!is_done(hub)) {
        turn(hub);
    }
    return NULL;
}
