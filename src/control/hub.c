/* SPDX-License-Identifier: MIT
 *
 * The connections of the control plane over sockets: sending, the thread that
 * serves them, opening and closing.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"

#include <poll.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Interval at which messages that are not urgent are sent, and deadlines are
 * checked. */
#define TICK_MS 20

static void wake(struct iris_hub *hub)
{
    uint64_t one = 1;

    (void)!write(hub->wake, &one, sizeof one);
}

/* ---- Sending; with the lock held ---- */

/* The next flush sends the message to all except its sender. */
static void send_all(struct iris_hub *hub, const struct iris_message_head *head,
                     const struct iris_part parts[2])
{
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        if (link->sock >= 0 && link->rank >= 0 && link->rank != head->from &&
            !link->is_stuck && iris_i_link_put(link, head, parts) != IRIS_OK) {
            link->is_stuck = 1; /* the thread finds that it has ended */
            shutdown(link->sock, SHUT_RDWR);
        }
    }
}

static void flush_all(struct iris_hub *hub)
{
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        if (link->sock >= 0 && link->out_bytes != 0 && !link->is_stuck &&
            iris_i_link_flush(link) < 0) {
            /* The thread finds that it has ended after reading all its data. */
            shutdown(link->sock, SHUT_WR);
            link->out_bytes = link->out_at;
        }
    }
    hub->flush_by_ns = 0;
}

/* Rank 0 forwards messages together, within this time: the posts of one
 * agreement once the last of them has arrived. */
static void flush_by(struct iris_hub *hub, int ms)
{
    int64_t by_ns = iris_i_deadline(ms);

    if (ms == 0) {
        hub->flush_by_ns = 1;
    } else if (hub->flush_by_ns == 0) {
        hub->flush_by_ns = by_ns;
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
        iris_i_board_read(iris_i_hub_board(&hub->copy, hub->rank), parts,
                          &shown);
        pieces[0].bytes = iris_i_message_pack(parts, &shown, body);
        head = iris_i_message_head(IRIS_MESSAGE_SHOWN, hub->rank, 0, parts,
                                   pieces[0].bytes);
        send_all(hub, &head, pieces);
    }
}

/* A reader of this host waits for the records of other hosts. */
static int ask(struct iris_hub *hub)
{
    const struct iris_part none[2] = {{NULL, 0}, {NULL, 0}};
    uint64_t query = iris_i_records_take_query(hub->copy.records);
    struct iris_message_head head =
        iris_i_message_head(IRIS_MESSAGE_QUERY, hub->rank, 0, query, 0);

    if (query != 0) {
        send_all(hub, &head, none);
    }
    return query != 0;
}

/* ---- For the rank's own threads ---- */

/* The thread sends the messages that could not be sent at once. */
static void flush_and_unlock(struct iris_hub *hub)
{
    int left_over = 0;

    flush_all(hub);
    for (int i = 0; i < hub->num_links; i++) {
        left_over |= hub->links[i].is_full;
    }
    pthread_mutex_unlock(&hub->lock);
    if (left_over) {
        wake(hub);
    }
}

void iris_i_hub_say(struct iris_hub *hub, const struct iris_message_head *head,
                    const struct iris_part parts[2])
{
    pthread_mutex_lock(&hub->lock);
    send_shown(hub);
    send_all(hub, head, parts);
    flush_and_unlock(hub);
}

void iris_i_hub_show(struct iris_hub *hub, unsigned parts)
{
    atomic_fetch_or(&hub->dirty, parts);
    if (parts & IRIS_SHOW_URGENT) {
        pthread_mutex_lock(&hub->lock);
        send_shown(hub);
        flush_and_unlock(hub);
    }
}

/* The reason that the others, and this rank's own messages, give for a rank
 * that was disconnected: it does not read, or its host does not answer. */
static void show_end(struct iris_hub *hub, int rank, int is_stuck)
{
    const unsigned parts = IRIS_SHOW_STATE | IRIS_SHOW_REASON;
    struct iris_shown shown = {.state = IRIS_RANK_LEFT};
    unsigned char body[IRIS_MESSAGE_SHOWN_BYTES];
    struct iris_part pieces[2] = {{body, 0}, {NULL, 0}};
    struct iris_message_head head;

    if (is_stuck) {
        snprintf(shown.reason, sizeof shown.reason,
                 "it has left %zu MiB of messages of rank %d's control plane "
                 "unread and was cut off; was its process stopped?",
                 IRIS_LINK_MOST >> 20, hub->rank);
    } else {
        snprintf(shown.reason, sizeof shown.reason,
                 "its host does not answer rank %d's any more; is it down, or "
                 "the network between them?",
                 hub->rank);
    }
    iris_i_warning(hub->log, "rank %d: %s", rank, shown.reason);
    iris_i_hub_write(&hub->copy, rank, parts, &shown);
    pieces[0].bytes = iris_i_message_pack(parts, &shown, body);
    head = iris_i_message_head(IRIS_MESSAGE_SHOWN, rank, 0, parts,
                               pieces[0].bytes);
    pthread_mutex_lock(&hub->lock);
    send_all(hub, &head, pieces);
    pthread_mutex_unlock(&hub->lock);
}

/* The connection of a rank has ended: rank 0 tells the others. */
static void end_link(struct iris_hub *hub, struct iris_link *link)
{
    const struct iris_part none[2] = {{NULL, 0}, {NULL, 0}};
    struct iris_message_head head;
    int rank = link->rank, is_stuck = link->is_stuck, is_cut = link->is_cut;

    pthread_mutex_lock(&hub->lock);
    iris_i_link_close(link);
    pthread_mutex_unlock(&hub->lock);
    if (is_stuck || is_cut) {
        show_end(hub, rank, is_stuck);
    }
    iris_i_hub_end(&hub->copy, rank);
    if (hub->rank != 0) {
        atomic_store(&hub->lost, 1);
        return;
    }
    head = iris_i_message_head(IRIS_MESSAGE_ENDED, rank, 0, 0, 0);
    pthread_mutex_lock(&hub->lock);
    send_all(hub, &head, none);
    flush_by(hub, 0);
    pthread_mutex_unlock(&hub->lock);
}

/* ---- Receiving ---- */

/* Takes one message of a link. 0: there is no message; -1: the link has
 * ended. */
static int take(struct iris_hub *hub, struct iris_link *link)
{
    char why[IRIS_MESSAGE_WHY_BYTES];
    struct iris_message_head head;
    const unsigned char *body = link->in + sizeof head;
    const struct iris_part none = {NULL, 0};
    enum iris_hub_applied applied = IRIS_HUB_NONSENSE;
    int bytes = iris_i_message_take(link->in, link->in_bytes, hub->num_ranks,
                                    &head, why);

    if (bytes == 0) {
        return 0;
    }
    if (bytes > 0 && (hub->rank != 0 || head.from == link->rank)) {
        applied = iris_i_hub_apply(&hub->copy, &head, body);
    }
    if (applied == IRIS_HUB_NONSENSE) {
        iris_i_warning(hub->log,
                       "rank %d sends data that is not a message of the "
                       "control plane; its connection is closed",
                       link->rank);
        end_link(hub, link);
        return -1;
    }
    if (hub->rank == 0) {
        const struct iris_part parts[2] = {{body, head.bytes}, none};

        pthread_mutex_lock(&hub->lock);
        if (iris_i_hub_is_answer(&head)) {
            iris_i_hub_pass_on(hub, &head, parts);
        } else {
            send_all(hub, &head, parts);
        }
        flush_by(hub, applied == IRIS_HUB_URGENT ? 0 : TICK_MS);
        pthread_mutex_unlock(&hub->lock);
    }
    if (head.type == IRIS_MESSAGE_QUERY) {
        iris_i_hub_answer(hub, &head);
    }
    iris_i_link_drop(link, (size_t)bytes);
    return 1;
}

static void serve(struct iris_hub *hub, struct iris_link *link)
{
    int ended = iris_i_link_fill(link) < 0;

    while (take(hub, link) > 0) {
    }
    if (ended && link->sock >= 0) {
        end_link(hub, link);
    }
}

/* ---- The thread ---- */

/* Whether it is done: all connections have ended, or the time is over. */
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

/* Lists open connections only: poll() refuses more entries than the limit of
 * descriptors. */
static nfds_t list_polled(struct iris_hub *hub)
{
    nfds_t count = 2;

    hub->polled[0] = (struct pollfd){.fd = hub->wake, .events = POLLIN};
    hub->polled[1] = (struct pollfd){
        .fd = hub->listener >= 0 ? hub->gate.poll : -1, .events = POLLIN};
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        link->polled = 0;
        if (link->sock >= 0) {
            short events = link->is_full ? POLLIN | POLLOUT : POLLIN;

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
    int due = hub->rank != 0;

    pthread_mutex_lock(&hub->lock);
    num_polled = list_polled(hub);
    pthread_mutex_unlock(&hub->lock);
    if (poll(hub->polled, num_polled, TICK_MS) < 0) {
        return;
    }
    if (hub->polled[0].revents != 0) {
        (void)!read(hub->wake, &count, sizeof count);
    }
    if (hub->listener >= 0) { /* also for deadlines of proofs */
        iris_i_hub_accept(hub);
    }
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        due |= link->polled != 0 && hub->polled[link->polled].revents & POLLOUT;
        if (link->sock >= 0 && link->polled != 0 &&
            (hub->polled[link->polled].revents & ~POLLOUT) != 0) {
            serve(hub, link);
        }
        if (link->sock >= 0 && link->rank >= 0 &&
            !iris_i_stream_answers(&link->check, link->sock)) {
            link->is_cut = 1;
            end_link(hub, link);
        }
    }
    pthread_mutex_lock(&hub->lock);
    send_shown(hub);
    due |= ask(hub);
    if (due || atomic_load(&hub->closing) ||
        iris_i_now_ns() >= hub->flush_by_ns) {
        flush_all(hub);
    }
    pthread_mutex_unlock(&hub->lock);
}

static void *run(void *arg)
{
    struct iris_hub *hub = arg;

    while (!is_done(hub)) {
        turn(hub);
    }
    return NULL;
}

/* ---- Opening and closing ---- */

static iris_status_t start(struct iris_hub *hub)
{
    sigset_t all, before;
    int ret;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    ret = pthread_create(&hub->thread, NULL, run, hub);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (ret != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_LIMIT, ret,
                                 "no thread for the control plane");
    }
    pthread_setname_np(hub->thread, "iris-control");
    return IRIS_OK;
}

static void free_all(struct iris_hub *hub)
{
    for (int i = 0; hub->links != NULL && i < hub->num_links; i++) {
        iris_i_link_close(&hub->links[i]);
    }
    if (hub->wake >= 0) {
        close(hub->wake);
    }
    free(hub->links);
    free(hub->polled);
    iris_i_hub_copy_close(&hub->copy);
}

static iris_status_t make(struct iris_hub *hub)
{
    size_t num_links;

    hub->num_links = hub->rank == 0 ? hub->num_ranks : 1;
    num_links = (size_t)hub->num_links;
    hub->links = calloc(num_links, sizeof *hub->links);
    hub->polled = calloc(num_links + 2, sizeof *hub->polled);
    if (hub->rank != 0) {
        hub->wake =
            iris_i_fd_above_stdio(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (hub->wake < 0) {
            return iris_i_fail_fd(errno, "cannot make an eventfd");
        }
    }
    if (hub->links == NULL || hub->polled == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for %d connections", hub->num_links);
    }
    for (int i = 0; i < hub->num_links; i++) {
        iris_i_link_open(&hub->links[i], -1, -1);
    }
    return iris_i_hub_copy_open(&hub->copy, hub->num_ranks);
}

iris_status_t iris_i_hub_open(struct iris_hub *hub,
                              const struct iris_control_fds *fds, int sock)
{
    iris_status_t status;

    hub->wake = hub->rank == 0 ? fds->wake : -1;
    hub->listener = hub->rank == 0 ? fds->listener : -1;
    hub->spare = hub->rank == 0 ? fds->spare : -1;
    pthread_mutex_init(&hub->lock, NULL);
    status = make(hub);
    if (status == IRIS_OK && hub->rank == 0) {
        status = iris_i_hub_open_gate(hub);
    } else if (status == IRIS_OK) {
        iris_i_link_open(&hub->links[0], sock, 0);
    }
    if (status == IRIS_OK) {
        status = start(hub);
    }
    if (status != IRIS_OK) {
        iris_i_gate_close(&hub->gate);
        hub->wake = hub->rank == 0 ? -1 : hub->wake;
        if (hub->links != NULL) {
            hub->links[0].sock = -1;
        }
        free_all(hub);
    }
    return status;
}

void iris_i_hub_close(struct iris_hub *hub, int stay_ms)
{
    hub->close_by_ns = iris_i_deadline(stay_ms);
    atomic_store(&hub->closing, 1);
    wake(hub);
    pthread_join(hub->thread, NULL);
    iris_i_hub_close_listener(hub);
    free_all(hub);
    pthread_mutex_destroy(&hub->lock);
}
