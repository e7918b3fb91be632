/* SPDX-License-Identifier: MIT
 *
 * The hub of a node, in a job of several nodes: two threads of the node's lowest
 * rank, its leader. Leaders are linked to each other (links.c), each pair once.
 *
 *   sender     sleeps on a futex of the node's table until a rank of the node
 *              marks something new there; sends that to all other leaders; finds
 *              processes of the node that have ended
 *   receiver   polls the links and keeps them up; writes the rows and posts of other nodes'
 *              ranks to the table, and wakes ranks that wait for them
 *
 * - The rows of this node's ranks are their own; the receiver alone writes those
 *   of far ranks. So each post passes one leader of each node, once.
 * - Order: a rank of another node that sees a post sees all that its rank showed
 *   before; if it sees that a rank has left, it sees all its posts. The sender
 *   reads the state, the posts, the other parts and the failed places, and sends
 *   them the other way around.
 * - A link that is cut is resumed. If it is LOST or has ENDED, those ranks of its
 *   node that had not ended before are lost.
 * - The leader stays until the other ranks of its node have ended.
 */
#include "config.h"

#include "control/internal.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Interval at which messages that are not urgent are sent, and deadlines and
 * processes are checked. */
#define TICK_MS 20

/* Parts that are sent after the posts. */
#define LATE (IRIS_SHOW_STATE | IRIS_SHOW_HOLDS | IRIS_SHOW_ENDED)

/* A connection with more pending bytes gets no rows. Old rows are better than
 * the loss of the node (IRIS_LINK_MOST). */
#define PENDING_MOST (IRIS_LINK_MOST / 2)

static struct iris_board *get_board(const struct iris_hub *hub, int rank)
{
    return iris_i_records_board(hub->table, rank);
}

static struct iris_place *place_of_hub(const struct iris_hub *hub, int place)
{
    return iris_i_segment_place(hub->table, place);
}

static void wake_receiver(const struct iris_hub *hub)
{
    uint64_t one = 1;

    (void)!write(hub->wake, &one, sizeof one);
}

/* The log is written without the lock, since the reader of stderr may be slow. */
static void lock_hub(struct iris_hub *hub) IRIS_ACQUIRES(hub->lock)
{
    pthread_mutex_lock(&hub->lock);
    iris_i_log_hold();
}

static void unlock_hub(struct iris_hub *hub) IRIS_RELEASES(hub->lock)
{
    pthread_mutex_unlock(&hub->lock);
    iris_i_log_release();
}

static int is_connected(const struct iris_hub *hub)
{
    return atomic_load(&hub->num_here) == hub->links.count;
}

/* ---- Sending; with the lock held ---- */

static int is_open(const struct iris_link *link)
{
    return link->state <= IRIS_LINK_JOINED && !link->is_full &&
           !link->session.is_last;
}

/* 0: the other side has left too much unread, or there is no memory. */
static int put_message(struct iris_link *link,
                       const struct iris_message_head *head, const void *body)
{
    return iris_i_session_pending(&link->session) < IRIS_LINK_MOST &&
           iris_i_session_put(&link->session, head, sizeof *head, body,
                              head->bytes);
}

static int has_left(const struct iris_link *link)
{
    return link->state == IRIS_LINK_JOINED && link->errno_value == 0 &&
           link->session.sent != link->session.end;
}

/* The next flush sends the message. The receiver ends a link that is full. */
static void put_all(struct iris_hub *hub, const struct iris_message_head *head,
                    const void *body)
{
    for (int i = 0; i < hub->links.count; i++) {
        struct iris_link *link = &hub->links.all[i];

        if (is_open(link) && !put_message(link, head, body)) {
            link->is_full = 1;
        }
    }
}

/* Returns whether bytes are left, which the receiver sends. */
static int flush_all(struct iris_hub *hub) IRIS_REQUIRES(hub->lock)
{
    int is_left = 0;

    for (int i = 0; i < hub->links.count; i++) {
        struct iris_link *link = &hub->links.all[i];

        while (iris_i_link_send(&hub->links, link)) {
        }
        is_left |= link->state <= IRIS_LINK_JOINED &&
                   (has_left(link) || link->errno_value != 0 || link->is_full);
    }
    return is_left;
}

/* A message has the state up to the last text among its parts. */
static size_t size_shown(unsigned parts)
{
    return parts & IRIS_SHOW_REASON ? sizeof(struct iris_shown)
           : parts & IRIS_SHOW_NAME ? offsetof(struct iris_shown, reason)
                                    : offsetof(struct iris_shown, name);
}

static void put_shown(struct iris_hub *hub, int rank, unsigned parts,
                      const struct iris_shown *shown)
{
    const struct iris_message_head head = iris_i_message_head(
        IRIS_MESSAGE_SHOWN, rank, 0, parts, size_shown(parts));

    if (parts != 0) {
        put_all(hub, &head, shown);
    }
}

static void put_fails(struct iris_hub *hub)
{
    uint64_t places = atomic_exchange(&hub->table->header->new_fails, 0);
    struct iris_message_head head;

    for (int place = 0; place < IRIS_PLACES; place++) {
        if (places >> place & 1) {
            head = iris_i_message_head(
                IRIS_MESSAGE_FAIL, hub->rank, place,
                iris_i_place_fail(place_of_hub(hub, place), 0), 0);
            put_all(hub, &head, NULL);
        }
    }
}

/* A new post. */
struct found {
    const struct iris_post *post;
    int place;
    uint64_t seq;
};

/* The posts of a rank at a place that were not sent, oldest first. A member posts
 * again before the others have seen its last post, so there may be two. */
static int find_posts(struct iris_hub *hub, int rank, int at,
                      struct found found[3])
{
    struct iris_place *place = place_of_hub(hub, at);
    struct iris_hub_sent *sent = &hub->sent[rank * IRIS_PLACES + at];
    unsigned generation = atomic_load(&place->generation);
    int count = 0;

    if (sent->generation != generation) {
        *sent = (struct iris_hub_sent){0, generation};
    }
    for (uint64_t parity = 0; parity < 2; parity++) {
        const struct iris_post *post = iris_i_place_slot(place, rank, parity);
        uint64_t seq = atomic_load_explicit(&post->seq, memory_order_acquire);

        if (seq > sent->seq) {
            found[count++] = (struct found){post, at, seq};
        }
    }
    if (count == 2 && found[0].seq > found[1].seq) {
        found[2] = found[0];
        found[0] = found[1];
        found[1] = found[2];
    }
    return count;
}

static void put_post(struct iris_hub *hub, int rank, const struct found *found)
{
    size_t bytes = found->post->bytes < IRIS_POST_BYTES ? found->post->bytes
                                                        : IRIS_POST_BYTES;
    struct iris_message_head head = iris_i_message_head(
        IRIS_MESSAGE_POST, rank, found->place, found->seq, bytes);

    head.members = (uint16_t)found->post->expected;
    put_all(hub, &head, found->post->data);
    hub->sent[rank * IRIS_PLACES + found->place].seq = found->seq;
}

static void put_row_piece(void *arg, const struct iris_message_head *head,
                          const void *body)
{
    struct iris_hub *hub = arg;

    for (int i = 0; i < hub->links.count; i++) {
        struct iris_link *link = &hub->links.all[i];

        if (is_open(link) &&
            (iris_i_session_pending(&link->session) >= PENDING_MOST ||
             !put_message(link, head, body))) {
            hub->has_dropped = 1;
        }
    }
}

static void put_row(struct iris_hub *hub, int rank)
{
    hub->has_dropped = 0;
    iris_i_row_send(hub->table, rank, &hub->hashes[rank], put_row_piece, hub);
    if (hub->has_dropped) {
        hub->hashes[rank] = 0; /* comes again as a whole */
    }
}

/* Sends the parts and posts that a rank of this node has marked as new. */
static void put_rank(struct iris_hub *hub, int rank)
{
    struct iris_board *board = get_board(hub, rank);
    unsigned parts = atomic_exchange(&board->new_parts, 0) & IRIS_SHOW_ALL;
    uint64_t places = atomic_exchange(&board->new_posts, 0);
    struct found found[2 * IRIS_PLACES + 1];
    struct iris_shown late = {0}, early = {0};
    int count = 0;

    iris_i_board_read(board, parts & LATE, &late);
    for (int place = 0; place < IRIS_PLACES; place++) {
        if (places >> place & 1) {
            count += find_posts(hub, rank, place, &found[count]);
        }
    }
    iris_i_board_read(board, parts & ~(unsigned)LATE, &early);
    put_fails(hub);
    put_shown(hub, rank, parts & ~(unsigned)LATE, &early);
    for (int i = 0; i < count; i++) {
        put_post(hub, rank, &found[i]);
    }
    if (parts & (IRIS_SHOW_STATE | IRIS_SHOW_ENDED)) {
        put_row(hub, rank);
    }
    put_shown(hub, rank, parts & LATE, &late);
}

static void put_new(struct iris_hub *hub) IRIS_REQUIRES(hub->lock)
{
    struct iris_records_header *header = hub->table->header;

    for (int word = 0; word < (hub->num_ranks + 63) / 64; word++) {
        uint64_t ranks = atomic_exchange(&header->new_ranks[word], 0);

        for (int i = 0; i < 64 && ranks != 0; i++) {
            int rank = 64 * word + i;

            if (ranks >> i & 1 && rank < hub->num_ranks &&
                !hub->control->peers[rank].is_far) {
                put_rank(hub, rank);
            }
        }
    }
    put_fails(hub);
}

/* Many ranks take their time: a row takes some 0.1 ms to read. */
static void put_rows(struct iris_hub *hub) IRIS_REQUIRES(hub->lock)
{
    int count = 0;

    if (iris_i_now_ns() < hub->next_row_ns) {
        return;
    }
    for (int rank = 0; rank < hub->num_ranks; rank++) {
        if (!hub->control->peers[rank].is_far) {
            put_row(hub, rank);
            count++;
        }
    }
    hub->next_row_ns = iris_i_deadline(IRIS_ROW_MS + 2 * (count / 8));
}

/* ---- The sender ---- */

static void send_new(struct iris_hub *hub)
{
    int is_left;

    if (!is_connected(hub) && !atomic_load(&hub->closing)) {
        return;
    }
    lock_hub(hub);
    put_new(hub);
    put_rows(hub);
    is_left = flush_all(hub);
    unlock_hub(hub);
    if (is_left) {
        wake_receiver(hub);
    }
}

static int has_ended(const struct iris_hub *hub, int rank)
{
    return atomic_load(&get_board(hub, rank)->ended) != 0;
}

static void note_end(struct iris_hub *hub, int rank)
{
    atomic_store(&get_board(hub, rank)->ended, 1);
    iris_i_records_mark(hub->table, rank, IRIS_SHOW_ENDED, 0);
}

/* Finds processes of this machine that have ended. A child of a dead leader may
 * hold its sockets. */
static void watch_processes(struct iris_hub *hub)
{
    for (int rank = 0; rank < hub->num_ranks; rank++) {
        if (hub->control->peers[rank].is_remote &&
            !hub->control->peers[rank].is_far && !has_ended(hub, rank) &&
            !iris_i_control_has_process(hub->control, rank)) {
            note_end(hub, rank);
        }
    }
    lock_hub(hub);
    for (int i = 0; i < hub->links.count; i++) {
        struct iris_link *link = &hub->links.all[i];

        if (is_open(link) && !link->is_dead &&
            !iris_i_control_has_process(hub->control, link->rank)) {
            link->is_dead = 1;
            shutdown(link->session.sock, SHUT_RD); /* if there is one */
        }
    }
    unlock_hub(hub);
}

/* Whether the other ranks of this node show nothing more. */
static int have_mates_ended(const struct iris_hub *hub)
{
    for (int rank = 0; rank < hub->num_ranks; rank++) {
        if (rank != hub->rank && !hub->control->peers[rank].is_far &&
            !has_ended(hub, rank)) {
            return 0;
        }
    }
    return 1;
}

static int has_new(const struct iris_hub *hub)
{
    struct iris_records_header *header = hub->table->header;
    uint64_t found = atomic_load(&header->new_fails);

    for (int word = 0; word < (hub->num_ranks + 63) / 64; word++) {
        found |= atomic_load(&header->new_ranks[word]);
    }
    return found != 0;
}

static void sleep_sender(struct iris_hub *hub)
{
    struct iris_records_header *header = hub->table->header;
    unsigned seen = atomic_load(&header->hub_wakes);

    atomic_store(&header->hub_sleeps, 1);
    if (!is_connected(hub) || !has_new(hub)) {
        iris_i_futex_wait(&header->hub_wakes, seen, TICK_MS * IRIS_NS_PER_MS);
    }
    atomic_store(&header->hub_sleeps, 0);
}

static void *run_sender(void *arg)
{
    struct iris_hub *hub = arg;
    int64_t watch_ns = 0;

    while (!atomic_load(&hub->closing) ||
           (!have_mates_ended(hub) && iris_i_now_ns() < hub->close_by_ns)) {
        if (iris_i_now_ns() >= watch_ns) {
            watch_processes(hub);
            watch_ns = iris_i_deadline(TICK_MS);
        }
        send_new(hub);
        sleep_sender(hub);
    }
    send_new(hub);
    note_end(hub, hub->rank);
    send_new(hub);
    lock_hub(hub);
    for (int i = 0; i < hub->links.count; i++) {
        if (is_open(&hub->links.all[i])) {
            (void)iris_i_session_put_end(&hub->links.all[i].session);
        }
    }
    unlock_hub(hub);
    atomic_store(&hub->drained, 1);
    wake_receiver(hub);
    return NULL;
}

/* ---- Receiving ---- */

/* Far ranks may post at a place before its members here hold it. */
static int commit_place(struct iris_hub *hub, int place)
{
    uint64_t bit = (uint64_t)1 << place;

    if ((hub->committed & bit) == 0 &&
        iris_i_segment_commit_place(hub->table, place) == IRIS_OK) {
        hub->committed |= bit;
    }
    return (hub->committed & bit) != 0;
}

static void wake_places(struct iris_hub *hub)
{
    for (int place = 0; place < IRIS_PLACES; place++) {
        if (hub->committed >> place & 1) {
            iris_i_place_wake(place_of_hub(hub, place));
        }
    }
}

/* Readers of this node need not wait for rows of a rank that is gone. One that
 * has finalized has shown that. */
static void end_rank(struct iris_hub *hub, int rank)
{
    const struct iris_peer *ended = &hub->control->peers[rank];
    struct iris_shown shown;

    iris_i_board_read(get_board(hub, rank), IRIS_SHOW_STATE, &shown);
    if (shown.state != IRIS_RANK_FINALIZED) {
        iris_i_row_end(hub->table, rank, ended->pid, ended->host);
    }
}

static int apply_shown(struct iris_hub *hub,
                       const struct iris_message_head *head,
                       const unsigned char *body)
{
    struct iris_board *board = get_board(hub, head->from);
    unsigned parts = (unsigned)head->value & IRIS_SHOW_ALL;
    struct iris_shown shown = {0};

    if (parts != head->value || head->bytes != size_shown(parts)) {
        return 0;
    }
    memcpy(&shown, body, head->bytes);
    shown.name[sizeof shown.name - 1] = '\0';
    shown.reason[sizeof shown.reason - 1] = '\0';
    iris_i_board_write(board, parts, &shown);
    if (parts & IRIS_SHOW_STREAMS) {
        atomic_store_explicit(&board->streams, shown.streams,
                              memory_order_relaxed);
    }
    if (parts & IRIS_SHOW_ENDED && shown.ended) {
        end_rank(hub, head->from);
        wake_places(hub);
    }
    return 1;
}

static void apply_post(struct iris_hub *hub,
                       const struct iris_message_head *head,
                       const unsigned char *body)
{
    const struct iris_post_id id = {head->place, head->from, head->value};
    const struct iris_part parts[2] = {{body, head->bytes}, {NULL, 0}};

    if (commit_place(hub, head->place)) {
        (void)iris_i_place_post(place_of_hub(hub, head->place), &id, parts,
                                head->members);
    }
}

int iris_i_hub_apply(struct iris_hub *hub, int leader,
                     const struct iris_message_head *head,
                     const unsigned char *body)
{
    if (!hub->control->peers[head->from].is_far ||
        hub->control->peers[head->from].leader != leader) {
        return 0;
    }
    switch (head->type) {
    case IRIS_MESSAGE_SHOWN:
        return apply_shown(hub, head, body);
    case IRIS_MESSAGE_POST:
        apply_post(hub, head, body);
        return 1;
    case IRIS_MESSAGE_FAIL:
        if (commit_place(hub, head->place)) {
            (void)iris_i_place_fail(place_of_hub(hub, head->place),
                                    (unsigned)head->value);
        }
        return 1;
    case IRIS_MESSAGE_ROW:
    case IRIS_MESSAGE_ROW_END:
        iris_i_row_take(hub->table, head, body, &hub->rows[head->from]);
        return 1;
    default:
        return 0;
    }
}

/* The link is over. Its ranks that have not ended are lost: with a reason, if
 * there is one; else with their leader, which has died. */
static void lose_node(struct iris_hub *hub, int leader, const char *reason)
{
    int count = 0;

    for (int rank = 0; rank < hub->num_ranks; rank++) {
        struct iris_shown shown = {.ended = 1};

        if (hub->control->peers[rank].leader != leader ||
            has_ended(hub, rank)) {
            continue;
        }
        iris_i_board_read(get_board(hub, rank), IRIS_SHOW_STATE, &shown);
        if (reason != NULL && shown.state < IRIS_RANK_FINALIZED) {
            shown.state = IRIS_RANK_LEFT;
            snprintf(shown.reason, sizeof shown.reason, "%s", reason);
            iris_i_board_write(get_board(hub, rank),
                               IRIS_SHOW_REASON | IRIS_SHOW_STATE, &shown);
        }
        shown.cut_by = rank == leader ? 0 : (unsigned)leader + 1;
        iris_i_board_write(get_board(hub, rank), IRIS_SHOW_ENDED, &shown);
        end_rank(hub, rank);
        count++;
    }
    if (count != 0) {
        wake_places(hub);
    }
}

static void give_up_link(struct iris_hub *hub, struct iris_link *link,
                         const char *reason)
{
    lock_hub(hub);
    iris_i_link_leave(&hub->links, link, IRIS_LINK_LOST);
    unlock_hub(hub);
    if (reason != NULL) {
        iris_i_warning(hub->log, "rank %d: %s", link->rank, reason);
    }
    lose_node(hub, link->rank, reason);
}

static void note_joined(void *arg, struct iris_link *link)
{
    if (link->cut_ns == 0) {
        atomic_fetch_add(&((struct iris_hub *)arg)->num_here, 1);
    }
}

static void note_left(void *arg, struct iris_link *link)
{
    (void)arg, (void)link;
}

/* A dead leader needs no reason. */
static void note_lost(void *arg, struct iris_link *link,
                      enum iris_link_loss loss, const char *why)
{
    char reason[IRIS_REASON_BYTES];
    struct iris_hub *hub = arg;

    if (loss == IRIS_LINK_SILENT) {
        snprintf(reason, sizeof reason,
                 "its host does not answer rank %d's any more; is it down, or "
                 "the network between them?",
                 hub->rank);
    } else {
        snprintf(reason, sizeof reason, "%s", why);
    }
    if (hub->failed == IRIS_OK && loss != IRIS_LINK_GONE) {
        hub->failed = loss == IRIS_LINK_FULL     ? IRIS_ERR_LIMIT
                      : loss == IRIS_LINK_SILENT ? IRIS_ERR_PEER_LOST
                                                 : IRIS_ERR_BOOTSTRAP;
        hub->failed_rank = link->rank;
        memcpy(hub->why, reason, sizeof hub->why);
    }
    if (loss != IRIS_LINK_GONE && !atomic_load(&hub->drained)) {
        iris_i_warning(hub->log, "rank %d: %s", link->rank, reason);
    }
    lose_node(hub, link->rank, loss == IRIS_LINK_GONE ? NULL : reason);
}

/* Takes one message of a link. 0: it has no message, or it is over. */
static int take_message(struct iris_hub *hub, struct iris_link *link)
{
    struct iris_message_head head;
    enum iris_session_taken taken;
    const void *data;
    size_t bytes = 0;

    lock_hub(hub);
    taken = iris_i_session_take(&link->session, &data, &bytes);
    if (taken == IRIS_SESSION_END) {
        iris_i_link_end(&hub->links, link);
    }
    unlock_hub(hub);
    if (taken == IRIS_SESSION_NONE) {
        return 0;
    }
    if (taken == IRIS_SESSION_END) {
        lose_node(hub, link->rank, NULL);
        return 0;
    }
    if (taken == IRIS_SESSION_RECORD &&
        iris_i_message_take(data, bytes, hub->num_ranks, &head) == bytes &&
        iris_i_hub_apply(hub, link->rank, &head,
                         (const unsigned char *)data + sizeof head)) {
        return 1;
    }
    iris_i_warning(hub->log,
                   "rank %d sends data that is not a message of the control "
                   "plane; its connection is closed",
                   link->rank);
    give_up_link(hub, link, NULL);
    return 0;
}

/* `has_data`: its connection is readable. */
static void serve_link(struct iris_hub *hub, struct iris_link *link,
                       int has_data)
{
    char reason[IRIS_REASON_BYTES];
    int is_dead, is_full;

    lock_hub(hub);
    has_data |= link->errno_value != 0;
    if (has_data) {
        (void)iris_i_link_receive(&hub->links, link);
    }
    unlock_hub(hub);
    while (has_data && take_message(hub, link)) {
    }
    lock_hub(hub);
    is_dead = link->state == IRIS_LINK_CUT && link->is_dead;
    is_full = is_dead || link->state > IRIS_LINK_JOINED
                  ? 0
                  : link->is_full || !iris_i_session_tell(&link->session);
    unlock_hub(hub);
    if (is_dead) {
        give_up_link(hub, link, NULL);
    } else if (is_full) {
        snprintf(reason, sizeof reason,
                 "it has left %zu MiB of messages of rank %d's control plane "
                 "unread and was cut off; was its process stopped?",
                 IRIS_LINK_MOST >> 20, hub->rank);
        give_up_link(hub, link, reason);
    }
}

/* ---- The receiver ---- */

/* Lists open connections only: poll() refuses more entries than the limit of
 * descriptors. */
static nfds_t list_polled(struct iris_hub *hub) IRIS_REQUIRES(hub->lock)
{
    nfds_t count = 2;

    hub->polled[0] = (struct pollfd){.fd = hub->wake, .events = POLLIN};
    hub->polled[1] = (struct pollfd){.fd = hub->links.poll, .events = POLLIN};
    for (int i = 0; i < hub->links.count; i++) {
        struct iris_link *link = &hub->links.all[i];

        link->watched = 0;
        if (link->state == IRIS_LINK_JOINED) {
            short events = has_left(link) ? POLLIN | POLLOUT : POLLIN;

            link->watched = (int)count;
            hub->polled[count++] =
                (struct pollfd){.fd = link->session.sock, .events = events};
        }
    }
    return count;
}

static void take_turn(struct iris_hub *hub)
{
    uint64_t count;
    nfds_t num_polled;

    lock_hub(hub);
    num_polled = list_polled(hub);
    unlock_hub(hub);
    if (poll(hub->polled, num_polled, TICK_MS) < 0) {
        return;
    }
    if (hub->polled[0].revents != 0) {
        (void)!read(hub->wake, &count, sizeof count);
    }
    for (int i = 0; i < hub->links.count; i++) {
        struct iris_link *link = &hub->links.all[i];

        serve_link(hub, link,
                   link->watched != 0 &&
                       (hub->polled[link->watched].revents & ~POLLOUT) != 0);
    }
    lock_hub(hub);
    if (hub->polled[1].revents != 0 || iris_i_now_ns() >= hub->next_turn_ns) {
        iris_i_links_turn(&hub->links);
        hub->next_turn_ns = iris_i_deadline(TICK_MS);
    }
    (void)flush_all(hub);
    unlock_hub(hub);
}

/* After the last record the other side closes the connection, at the latest when
 * the time is over. */
static int is_over(struct iris_hub *hub)
{
    int num_open = 0;

    if (!atomic_load(&hub->drained)) {
        return 0;
    }
    for (int i = 0; i < hub->links.count; i++) {
        num_open += hub->links.all[i].has_come &&
                    hub->links.all[i].state <= IRIS_LINK_JOINED;
    }
    return num_open == 0 || iris_i_now_ns() >= hub->close_by_ns;
}

static void *run_receiver(void *arg)
{
    struct iris_hub *hub = arg;

    while (!is_over(hub)) {
        take_turn(hub);
    }
    return NULL;
}

/* ---- Connecting to leaders of other nodes ---- */

/* A leader while it opens its hub. */
struct opening {
    struct iris_hub *hub;
    struct iris_rendezvous *rendezvous;
};

/* The lowest leader that has not connected; -1: all have. */
static int find_missing(struct iris_hub *hub)
{
    int missing = -1;

    lock_hub(hub);
    for (int i = 0; i < hub->links.count && missing < 0; i++) {
        missing = hub->links.all[i].has_come ? -1 : hub->links.all[i].rank;
    }
    unlock_hub(hub);
    return missing;
}

static void print_leader(void *arg, char *text, size_t bytes)
{
    snprintf(text, bytes, "rank %d to take it into the control plane",
             find_missing(((const struct opening *)arg)->hub));
}

static iris_status_t fail_gone(const struct iris_hub *hub, int leader)
{
    char name[IRIS_RANK_NAME_BYTES];

    iris_i_control_name(hub->control, leader, name);
    return iris_i_fail(hub->log, IRIS_ERR_PEER_LOST,
                       "%s died before it took rank %d into the control plane",
                       name, hub->rank);
}

static iris_status_t fail_late_leader(const struct iris_wait *wait)
{
    struct iris_hub *hub = ((const struct opening *)wait->arg)->hub;
    int stopped = iris_i_control_find_stopped(hub->control);
    char name[IRIS_RANK_NAME_BYTES], why[IRIS_RANK_NAME_BYTES + 64] = "";

    iris_i_control_name(hub->control, find_missing(hub), name);
    if (stopped >= 0) {
        snprintf(why, sizeof why,
                 "; rank %d is stopped by a signal or a debugger", stopped);
    }
    return iris_i_fail(hub->log, IRIS_ERR_TIMEOUT,
                       "%s has not connected to rank %d's control plane before "
                       "the deadline (IRIS_TIMEOUT_MS)%s",
                       name, hub->rank, why);
}

/* Why the leader's link was lost, if it was the first one. */
static iris_status_t read_loss(struct iris_hub *hub, int leader,
                               char why[IRIS_REASON_BYTES])
{
    iris_status_t status;

    lock_hub(hub);
    status = hub->failed_rank == leader ? hub->failed : IRIS_OK;
    memcpy(why, hub->why, sizeof hub->why);
    unlock_hub(hub);
    return status;
}

/* One that gives up tells the reason first. Rank 0 knows of ranks that died on
 * their way here, and tells the others. */
static iris_status_t check_leaders(void *arg)
{
    const struct opening *opening = arg;
    struct iris_hub *hub = opening->hub;
    char why[sizeof hub->why];
    iris_status_t status;

    for (int i = 0; i < hub->links.count; i++) {
        int leader = hub->links.all[i].rank;

        if (has_ended(hub, leader)) {
            status = read_loss(hub, leader, why);
            if (status != IRIS_OK) {
                return iris_i_fail(hub->log, status, "rank %d: %s", leader,
                                   why);
            }
            status = iris_i_peers_check(hub->control, leader);
            return status == IRIS_OK ? fail_gone(hub, leader) : status;
        }
        if (!iris_i_control_has_process(hub->control, leader)) {
            return fail_gone(hub, leader);
        }
    }
    return hub->rank == 0 ? iris_i_rendezvous_root_check(opening->rendezvous)
                          : iris_i_rendezvous_hear(opening->rendezvous);
}

/* Waits until all leaders have connected. Takes no longer than the rest of the
 * start. */
static iris_status_t connect_all(struct iris_hub *hub,
                                 struct iris_rendezvous *rendezvous)
{
    static const struct iris_wait_type for_leader = {.pace = IRIS_PACE_SOCKET,
                                                     .fate = check_leaders,
                                                     .describe = print_leader,
                                                     .late = fail_late_leader};
    struct iris_waiter waiter = iris_i_peers_waiter(hub->control);
    struct opening opening = {hub, rendezvous};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_leader, &waiter, "iris_init", &opening);
    wait.begin_ns = rendezvous->begin;
    wait.deadline_ns = rendezvous->deadline;
    while (status == IRIS_OK && !is_connected(hub)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return status;
}

/* ---- Opening and closing ---- */

iris_status_t iris_i_hub_make(struct iris_hub *hub)
{
    size_t num_ranks = (size_t)hub->num_ranks;

    hub->polled =
        calloc((size_t)hub->control->num_nodes + 1, sizeof *hub->polled);
    hub->sent = calloc(num_ranks * IRIS_PLACES, sizeof *hub->sent);
    hub->hashes = calloc(num_ranks, sizeof *hub->hashes);
    hub->rows = calloc(num_ranks, sizeof *hub->rows);
    hub->committed = 1;
    pthread_mutex_init(&hub->lock, NULL);
    if (hub->polled == NULL || hub->sent == NULL || hub->hashes == NULL ||
        hub->rows == NULL) {
        iris_i_hub_free(hub);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a hub");
    }
    return IRIS_OK;
}

void iris_i_hub_free(struct iris_hub *hub)
{
    iris_i_links_close(&hub->links);
    iris_i_fd_close(&hub->wake);
    free(hub->polled);
    free(hub->sent);
    free(hub->hashes);
    free(hub->rows);
    pthread_mutex_destroy(&hub->lock);
}

static iris_status_t start_thread(pthread_t *thread_p, void *(*run)(void *arg),
                                  struct iris_hub *hub)
{
    int ret = iris_i_thread_start(thread_p, "iris-control", 0, run, hub);

    return ret == 0 ? IRIS_OK
                    : iris_i_fail_errno(NULL, IRIS_ERR_LIMIT, ret,
                                        "no thread for the control plane");
}

static iris_status_t start_threads(struct iris_hub *hub)
{
    iris_status_t status = start_thread(&hub->receiver, run_receiver, hub);

    if (status == IRIS_OK) {
        status = start_thread(&hub->sender, run_sender, hub);
        if (status != IRIS_OK) {
            atomic_store(&hub->drained, 1);
            wake_receiver(hub);
            pthread_join(hub->receiver, NULL);
        }
    }
    return status;
}

static int is_leader(void *arg, int rank)
{
    const struct iris_peer *peers = ((struct iris_hub *)arg)->control->peers;

    return peers[rank].is_far && peers[rank].leader == rank;
}

static iris_status_t open_links(struct iris_hub *hub,
                                const struct iris_rendezvous *rendezvous,
                                int listener)
{
    const struct iris_links_owner owner = {.joined = note_joined,
                                           .left = note_left,
                                           .lost = note_lost,
                                           .arg = hub};
    const struct iris_links_params params = {
        .log = hub->log,
        .rendezvous = rendezvous,
        .label = "control",
        .address_at = offsetof(struct iris_hello, control_address),
        .record_bytes = IRIS_MESSAGE_MOST,
        .listener = listener,
        .is_linked = is_leader};

    return iris_i_links_open(&params, &owner, &hub->links);
}

iris_status_t iris_i_hub_open(struct iris_control *control,
                              struct iris_rendezvous *rendezvous,
                              struct iris_control_parts *parts,
                              struct iris_hub **hub_p)
{
    struct iris_hub *hub = calloc(1, sizeof *hub);
    iris_status_t status;

    if (hub == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    hub->log = control->log;
    hub->rank = control->rank;
    hub->num_ranks = control->num_ranks;
    hub->control = control;
    hub->table = control->records;
    hub->wake = -1;
    status = iris_i_hub_make(hub);
    if (status != IRIS_OK) {
        free(hub);
        return status;
    }
    hub->wake = parts->wake;
    status = open_links(hub, rendezvous, parts->listener);
    parts->listener = parts->wake = -1;
    if (status == IRIS_OK) {
        status = start_threads(hub);
        wake_receiver(hub); /* it connects to the other leaders */
    }
    if (status != IRIS_OK) {
        iris_i_hub_free(hub);
        free(hub);
        return status;
    }
    status = connect_all(hub, rendezvous);
    if (status != IRIS_OK) {
        iris_i_peers_leave(control, iris_last_error());
        iris_i_hub_close(hub, 5 * TICK_MS); /* in which it tells that */
        return status;
    }
    *hub_p = hub;
    return IRIS_OK;
}

void iris_i_hub_close(struct iris_hub *hub, int stay_ms)
{
    hub->close_by_ns = iris_i_deadline(stay_ms);
    atomic_store(&hub->closing, 1);
    iris_i_records_tell_hub(hub->table, 1);
    pthread_join(hub->sender, NULL);
    pthread_join(hub->receiver, NULL);
    iris_i_hub_free(hub);
    free(hub);
}
