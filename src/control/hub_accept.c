/* SPDX-License-Identifier: MIT
 *
 * Rank 0: accepts connections to the control plane over sockets.
 */
#include "config.h"

#include "control/hub_accept.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/shm.h"
#include "control/board.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Time that a connection has for its hello. */
#define PATIENCE_MS 2000

void iris_i_hub_close_listener(struct iris_hub *hub)
{
    if (hub->listener >= 0) {
        close(hub->listener);
        hub->listener = -1;
    }
    if (hub->spare >= 0) {
        close(hub->spare);
        hub->spare = -1;
    }
}

/* Logs the first refusal only, since anybody can cause them. */
void iris_i_hub_refuse(struct iris_hub *hub, struct iris_link *link,
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
    (void)iris_i_link_put(link, &head, parts);
    (void)iris_i_link_flush(link);
    shutdown(link->sock, SHUT_WR);
    pthread_mutex_lock(&hub->lock);
    iris_i_link_close(link);
    pthread_mutex_unlock(&hub->lock);
}

static int accept_at(const struct iris_hub *hub)
{
    return iris_i_fd_above_stdio(
        accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
}

/* Uses the reserved descriptor to tell a rank why it is refused. */
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
        iris_i_hub_refuse(hub, &link, status, iris_last_error());
    }
    hub->spare = fcntl(hub->listener, F_DUPFD_CLOEXEC, 0);
}

void iris_i_hub_accept(struct iris_hub *hub)
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
    if (sock >= 0) { /* too many strangers: it may try again */
        close(sock);
    }
}

static void send_board(struct iris_hub *hub, struct iris_link *link, int shower)
{
    unsigned char body[IRIS_MESSAGE_SHOWN_BYTES];
    struct iris_part pieces[2] = {{body, 0}, {NULL, 0}};
    struct iris_message_head head;
    struct iris_shown shown = {0};

    iris_i_board_read(iris_i_hub_board(&hub->copy, shower), IRIS_SHOW_ALL,
                      &shown);
    pieces[0].bytes = iris_i_message_pack(IRIS_SHOW_ALL, &shown, body);
    head = iris_i_message_head(IRIS_MESSAGE_SHOWN, shower, 0, IRIS_SHOW_ALL,
                               pieces[0].bytes);
    (void)iris_i_link_put(link, &head, pieces);
}

/* The stranger is a rank. It gets a welcome, and the states that the others
 * have published so far. Its connection, with the data received since, moves to
 * its rank's link. No rank posts before all are here. */
void iris_i_hub_welcome(struct iris_hub *hub, struct iris_link *stranger,
                        int rank)
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
    (void)iris_i_link_put(link, &head, none);
    for (int shower = 0; shower < hub->num_ranks; shower++) {
        if (shower != rank) {
            send_board(hub, link, shower);
        }
    }
    (void)iris_i_link_flush(link);
    pthread_mutex_unlock(&hub->lock);
    if (++hub->num_here == hub->num_ranks - 1) {
        iris_i_hub_close_listener(hub);
    }
}

/* Takes the same time wherever the first difference is. */
static int is_secret(const unsigned char *a, const unsigned char *b)
{
    unsigned difference = 0;

    for (int i = 0; i < IRIS_SECRET_BYTES; i++) {
        difference |= (unsigned)(a[i] ^ b[i]);
    }
    return difference == 0;
}

int iris_i_hub_check_hello(const struct iris_hub *hub,
                           const struct iris_message_head *head,
                           const unsigned char *body,
                           char why[IRIS_MESSAGE_WHY_BYTES])
{
    struct iris_message_hello hello;

    if (head->type != IRIS_MESSAGE_HELLO) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES,
                 "its first message is of type %u, not a hello", head->type);
        return 0;
    }
    memcpy(&hello, body, sizeof hello);
    if (!is_secret(hello.secret, hub->hello.secret)) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES, "it does not know the job's key");
        return 0;
    }
    if (hello.num_ranks != hub->hello.num_ranks || head->from == 0) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES,
                 "it is rank %u of %u, and the job has ranks 1 to %d to come",
                 head->from, hello.num_ranks, hub->num_ranks - 1);
        return 0;
    }
    if (hub->links[head->from].sock >= 0 ||
        atomic_load(&hub->copy.ended[head->from])) {
        snprintf(why, IRIS_MESSAGE_WHY_BYTES, "rank %u has connected already",
                 head->from);
        return 0;
    }
    return 1;
}
