/* SPDX-License-Identifier: MIT
 *
 * The hub of a node, in a job of several nodes: two threads of the node's lowest
 * rank, its leader. Leaders are connected to each other, each pair once: the
 * higher rank dials, and both prove the job's key.
 *
 *   sender     sleeps on a futex of the node's table until a rank of the node
 *              marks something new there; sends that to all other leaders; finds
 *              processes of the node that have ended
 *   receiver   polls the connections; writes the rows and posts of other nodes'
 *              ranks to the table, and wakes ranks that wait for them
 *
 * - The rows of this node's ranks are their own; the receiver alone writes those
 *   of far ranks. So each post passes one leader of each node, once.
 * - Order: a rank of another node that sees a post sees all that its rank showed
 *   before; if it sees that a rank has left, it sees all its posts. The sender
 *   reads the state, the posts, the other parts and the failed places, and sends
 *   them the other way around.
 * - Connections frame and acknowledge records as sessions (base/session.c), but
 *   one that is lost is not resumed.
 * - A connection is opening (sock -1), open, or over (sock -1, has_come). If one
 *   is over, those ranks of its node that had not ended before are lost.
 * - The leader stays until the other ranks of its node have ended.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"
#include "base/link.h"

#include <errno.h>
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

/* Connections without a proof at once, besides one of each leader. */
#define STRANGERS 64

/* Parts that are sent after the posts. */
#define LATE (IRIS_SHOW_STATE | IRIS_SHOW_HOLDS | IRIS_SHOW_ENDED)

/* A connection with more pending bytes gets no rows. Old rows are better than
 * the loss of the node (IRIS_LINK_MOST). */
#define PENDING_MOST (IRIS_LINK_MOST / 2)

/* The last post of a rank at a place that was sent, and the generation of the
 * place, which restarts the numbers. */
struct iris_hub_sent {
    uint64_t seq;
    unsigned generation;
};

static struct iris_records *get_records(const struct iris_hub *hub)
{
    return &hub->table->records;
}

static struct iris_board *get_board(const struct iris_hub *hub, int rank)
{
    return iris_i_records_board(get_records(hub), rank);
}

static struct iris_place *get_place(const struct iris_hub *hub, int place)
{
    return iris_i_segment_place(hub->table, place);
}

static void wake_receiver(const struct iris_hub *hub)
{
    uint64_t one = 1;

    (void)!write(hub->wake, &one, sizeof one);
}

static int is_connected(const struct iris_hub *hub)
{
    return atomic_load(&hub->num_here) == hub->num_links;
}

/* ---- Sending; with the lock held ---- */

static int is_open(const struct iris_link *link)
{
    return link->session.sock >= 0 && !link->is_stuck;
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
    return is_open(link) && !link->is_broken &&
           link->session.sent != link->session.end;
}

/* The next flush sends the message. */
static void put_all(struct iris_hub *hub, const struct iris_message_head *head,
                    const void *body)
{
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        if (is_open(link) && !put_message(link, head, body)) {
            link->is_stuck = 1; /* the receiver finds that it is over */
            shutdown(link->session.sock, SHUT_RDWR);
        }
    }
}

/* Returns whether bytes are left, which the receiver sends. */
static int flush_all(struct iris_hub *hub) IRIS_REQUIRES(hub->lock)
{
    int is_left = 0;

    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];
        int sent = is_open(link) && !link->is_broken;

        while (sent > 0) {
            sent = iris_i_session_send(&link->session);
        }
        if (sent < 0) {
            /* The receiver finds that it is over after reading all its data. */
            link->is_cut |= iris_i_socket_is_cut(errno);
            shutdown(link->session.sock, SHUT_WR);
            link->is_broken = 1;
        }
        is_left |= has_left(link);
    }
    return is_left;
}

static void put_shown(struct iris_hub *hub, int rank, unsigned parts,
                      const struct iris_shown *shown)
{
    unsigned char body[IRIS_MESSAGE_SHOWN_BYTES];
    struct iris_message_head head;

    if (parts != 0) {
        head = iris_i_message_head(IRIS_MESSAGE_SHOWN, rank, 0, parts,
                                   iris_i_message_pack(parts, shown, body));
        put_all(hub, &head, body);
    }
}

static void put_fails(struct iris_hub *hub)
{
    uint64_t places =
        atomic_exchange(&iris_i_records_header(get_records(hub))->new_fails, 0);
    struct iris_message_head head;

    for (int place = 0; place < IRIS_PLACES; place++) {
        if (places >> place & 1) {
            head = iris_i_message_head(
                IRIS_MESSAGE_FAIL, hub->rank, place,
                iris_i_place_fail(get_place(hub, place), 0), 0);
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
    struct iris_place *place = get_place(hub, at);
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

    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

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
    iris_i_row_send(get_records(hub), rank, &hub->hashes[rank], put_row_piece,
                    hub);
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
    struct iris_records_header *header =
        iris_i_records_header(get_records(hub));

    for (int word = 0; word < (hub->num_ranks + 63) / 64; word++) {
        uint64_t ranks = atomic_exchange(&header->new_ranks[word], 0);

        for (int i = 0; i < 64 && ranks != 0; i++) {
            int rank = 64 * word + i;

            if (ranks >> i & 1 && rank < hub->num_ranks &&
                !hub->mail->ranks[rank].is_far) {
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
        if (!hub->mail->ranks[rank].is_far) {
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
    pthread_mutex_lock(&hub->lock);
    put_new(hub);
    put_rows(hub);
    is_left = flush_all(hub);
    pthread_mutex_unlock(&hub->lock);
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
    iris_i_records_mark(get_records(hub), rank, IRIS_SHOW_ENDED, 0);
}

/* Finds processes of this machine that have ended. A child of a dead leader may
 * hold its connection. */
static void watch_processes(struct iris_hub *hub)
{
    for (int rank = 0; rank < hub->num_ranks; rank++) {
        if (hub->mail->ranks[rank].is_remote &&
            !hub->mail->ranks[rank].is_far && !has_ended(hub, rank) &&
            !iris_i_mail_alive(hub->mail, rank)) {
            note_end(hub, rank);
        }
    }
    pthread_mutex_lock(&hub->lock);
    for (int i = 0; i < hub->num_links; i++) {
        if (is_open(&hub->links[i]) &&
            !iris_i_mail_alive(hub->mail, hub->links[i].rank)) {
            shutdown(hub->links[i].session.sock, SHUT_RD);
        }
    }
    pthread_mutex_unlock(&hub->lock);
}

/* Whether the other ranks of this node show nothing more. */
static int have_mates_ended(const struct iris_hub *hub)
{
    for (int rank = 0; rank < hub->num_ranks; rank++) {
        if (rank != hub->rank && !hub->mail->ranks[rank].is_far &&
            !has_ended(hub, rank)) {
            return 0;
        }
    }
    return 1;
}

static int has_new(const struct iris_hub *hub)
{
    struct iris_records_header *header =
        iris_i_records_header(get_records(hub));
    uint64_t found = atomic_load(&header->new_fails);

    for (int word = 0; word < (hub->num_ranks + 63) / 64; word++) {
        found |= atomic_load(&header->new_ranks[word]);
    }
    return found != 0;
}

static void sleep_sender(struct iris_hub *hub)
{
    struct iris_records_header *header =
        iris_i_records_header(get_records(hub));
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
            iris_i_place_wake(get_place(hub, place));
        }
    }
}

/* Readers of this node need not wait for rows of a rank that is gone. One that
 * has finalized has shown that. */
static void end_rank(struct iris_hub *hub, int rank)
{
    const struct iris_mail_rank *ended = &hub->mail->ranks[rank];
    struct iris_shown shown;

    iris_i_board_read(get_board(hub, rank), IRIS_SHOW_STATE, &shown);
    if (shown.state != IRIS_RANK_FINALIZED) {
        iris_i_row_end(get_records(hub), rank, ended->pid, ended->host);
    }
}

static int apply_shown(struct iris_hub *hub,
                       const struct iris_message_head *head,
                       const unsigned char *body)
{
    struct iris_board *board = get_board(hub, head->from);
    unsigned parts = (unsigned)head->value & IRIS_SHOW_ALL;
    struct iris_shown shown = {0};

    if (parts != head->value ||
        !iris_i_message_unpack(parts, body, head->bytes, &shown)) {
        return 0;
    }
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
        (void)iris_i_place_post(get_place(hub, head->place), &id, parts,
                                head->members);
    }
}

int iris_i_hub_apply(struct iris_hub *hub, int leader,
                     const struct iris_message_head *head,
                     const unsigned char *body)
{
    if (!hub->mail->ranks[head->from].is_far ||
        hub->mail->ranks[head->from].leader != leader) {
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
            (void)iris_i_place_fail(get_place(hub, head->place),
                                    (unsigned)head->value);
        }
        return 1;
    case IRIS_MESSAGE_ROW:
    case IRIS_MESSAGE_ROW_END:
        iris_i_row_take(get_records(hub), head, body, &hub->rows[head->from]);
        return 1;
    default:
        return 0;
    }
}

/* The connection is over. Its ranks that have not ended are lost: with a reason,
 * if the leader's host or process does not answer; else with their leader. */
static void lose_node(struct iris_hub *hub, int leader, const char *reason)
{
    int count = 0;

    for (int rank = 0; rank < hub->num_ranks; rank++) {
        struct iris_shown shown = {.ended = 1};

        if (hub->mail->ranks[rank].leader != leader || has_ended(hub, rank)) {
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
        atomic_fetch_add(&hub->num_lost, 1);
        wake_places(hub);
    }
}

static void end_link(struct iris_hub *hub, struct iris_link *link)
{
    char reason[IRIS_REASON_BYTES] = "";
    int is_stuck, is_cut;

    pthread_mutex_lock(&hub->lock);
    is_stuck = link->is_stuck;
    is_cut = link->is_cut;
    iris_i_rendezvous_close(&link->session.sock);
    pthread_mutex_unlock(&hub->lock);
    if (is_stuck) {
        snprintf(reason, sizeof reason,
                 "it has left %zu MiB of messages of rank %d's control plane "
                 "unread and was cut off; was its process stopped?",
                 IRIS_LINK_MOST >> 20, hub->rank);
    } else if (is_cut) {
        snprintf(reason, sizeof reason,
                 "its host does not answer rank %d's any more; is it down, or "
                 "the network between them?",
                 hub->rank);
    }
    if (reason[0] != '\0') {
        iris_i_warning(hub->log, "rank %d: %s", link->rank, reason);
    }
    lose_node(hub, link->rank, reason[0] != '\0' ? reason : NULL);
}

/* Takes one message of a link. 0: it has no message, or it is over. */
static int take_message(struct iris_hub *hub, struct iris_link *link)
{
    char why[IRIS_MESSAGE_WHY_BYTES] = "its message makes no sense";
    struct iris_message_head head;
    enum iris_session_taken taken;
    const void *data;
    size_t bytes = 0;

    pthread_mutex_lock(&hub->lock);
    taken = iris_i_session_take(&link->session, &data, &bytes);
    pthread_mutex_unlock(&hub->lock);
    if (taken == IRIS_SESSION_NONE) {
        return 0;
    }
    if (taken == IRIS_SESSION_RECORD &&
        iris_i_message_take(data, bytes, hub->num_ranks, &head, why) ==
            (int)bytes &&
        iris_i_hub_apply(hub, link->rank, &head,
                         (const unsigned char *)data + sizeof head)) {
        return 1;
    }
    iris_i_warning(hub->log,
                   "rank %d sends data that is not a message of the control "
                   "plane (%s); its connection is closed",
                   link->rank, why);
    end_link(hub, link);
    return 0;
}

/* A side that closes with unread data resets the connection, but its earlier
 * messages may still be readable. */
static int receive_bytes(struct iris_hub *hub, struct iris_link *link)
{
    int got;

    pthread_mutex_lock(&hub->lock);
    got = iris_i_session_receive(&link->session);
    if (got < 0 && errno == ECONNRESET) {
        got = iris_i_session_receive(&link->session);
    }
    if (got < 0) {
        link->is_cut |= iris_i_socket_is_cut(errno);
    }
    pthread_mutex_unlock(&hub->lock);
    return got;
}

static void serve_link(struct iris_hub *hub, struct iris_link *link)
{
    int got = receive_bytes(hub, link);

    while (link->session.sock >= 0 && take_message(hub, link)) {
    }
    if (got < 0 && link->session.sock >= 0) {
        end_link(hub, link);
    }
    if (link->session.sock >= 0) {
        pthread_mutex_lock(&hub->lock);
        link->is_stuck |= !iris_i_session_tell(&link->session);
        pthread_mutex_unlock(&hub->lock);
    }
}

/* ---- Accepting leaders of other nodes ---- */

static void close_listener(struct iris_hub *hub)
{
    iris_i_gate_close(&hub->gate);
    iris_i_rendezvous_close(&hub->listener);
    iris_i_rendezvous_close(&hub->spare);
}

static struct iris_link *find_link(struct iris_hub *hub, int leader)
{
    for (int i = 0; i < hub->num_links; i++) {
        if (hub->links[i].rank == leader) {
            return &hub->links[i];
        }
    }
    return NULL;
}

/* The connection is a leader's. */
static void add_link(struct iris_hub *hub, struct iris_link *link, int sock)
{
    iris_i_stream_settle(sock);
    pthread_mutex_lock(&hub->lock);
    link->session.sock = sock;
    atomic_store(&link->has_come, 1);
    pthread_mutex_unlock(&hub->lock);
    atomic_fetch_add(&hub->num_here, 1);
}

/* The reason to refuse a rank that has proven the secret; NULL: none. */
static const char *find_objection(struct iris_hub *hub,
                                  const struct iris_rank_claims *claims)
{
    struct iris_link *link = find_link(hub, claims->rank);

    if (claims->num_ranks != hub->num_ranks || link == NULL ||
        claims->rank <= hub->rank) {
        return "is no rank of this job that is to come";
    }
    return link->has_come ? "has a rank that has connected already" : NULL;
}

static const char *admit_leader(void *arg,
                                const struct iris_proof_claims *theirs,
                                struct iris_proof_claims *own_p)
{
    struct iris_rank_claims claims;

    (void)own_p;
    if (theirs->bytes != sizeof claims) {
        return "is of another version of Iris";
    }
    memcpy(&claims, theirs->data, sizeof claims);
    return find_objection(arg, &claims);
}

static void welcome_leader(struct iris_hub *hub,
                           const struct iris_gate_entry *entry)
{
    struct iris_rank_claims claims;

    memcpy(&claims, entry->claims.data, sizeof claims);
    if (find_objection(hub, &claims) != NULL) { /* it came twice at once */
        close(entry->sock);
        return;
    }
    add_link(hub, find_link(hub, claims.rank), entry->sock);
}

/* Uses the reserved descriptor to tell a leader why it is refused. */
static void refuse_leader(struct iris_hub *hub)
{
    if (hub->spare >= 0) {
        close(hub->spare);
        iris_i_gate_turn_away(&hub->gate);
        hub->spare = fcntl(hub->listener, F_DUPFD_CLOEXEC, 0);
    }
}

static void accept_leaders(struct iris_hub *hub)
{
    unsigned failed = hub->gate.num_failed;
    struct iris_gate_entry entry;
    iris_status_t status;

    do {
        status = iris_i_gate_step(&hub->gate, &entry);
        if (entry.sock >= 0) {
            welcome_leader(hub, &entry);
        }
    } while (entry.sock >= 0);
    if (status == IRIS_ERR_LIMIT) {
        refuse_leader(hub);
    }
    /* The first one only, since anybody can cause them. */
    if (failed == 0 && hub->gate.num_failed != 0) {
        iris_i_warning(hub->log,
                       "refused a connection to the control plane: the other "
                       "side %s",
                       hub->gate.why);
    }
    if (is_connected(hub)) {
        close_listener(hub);
    }
}

/* ---- The receiver ---- */

/* Lists open connections only: poll() refuses more entries than the limit of
 * descriptors. */
static nfds_t list_polled(struct iris_hub *hub) IRIS_REQUIRES(hub->lock)
{
    nfds_t count = 2;

    hub->polled[0] = (struct pollfd){.fd = hub->wake, .events = POLLIN};
    hub->polled[1] = (struct pollfd){
        .fd = hub->listener >= 0 ? hub->gate.poll : -1, .events = POLLIN};
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        link->polled = 0;
        if (link->session.sock >= 0) {
            short events = has_left(link) ? POLLIN | POLLOUT : POLLIN;

            link->polled = (int)count;
            hub->polled[count++] =
                (struct pollfd){.fd = link->session.sock, .events = events};
        }
    }
    return count;
}

static void serve_links(struct iris_hub *hub)
{
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        if (link->polled == 0) {
            continue;
        }
        if (hub->polled[link->polled].revents & ~POLLOUT) {
            serve_link(hub, link);
        }
        if (link->session.sock >= 0 &&
            !iris_i_stream_answers(&link->check, link->session.sock)) {
            link->is_cut = 1;
            end_link(hub, link);
        }
    }
}

static void take_turn(struct iris_hub *hub)
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
    if (hub->listener >= 0) { /* also for deadlines of proofs */
        accept_leaders(hub);
    }
    serve_links(hub);
    pthread_mutex_lock(&hub->lock);
    (void)flush_all(hub);
    pthread_mutex_unlock(&hub->lock);
}

/* After the last message both sides close, at the latest when the time is
 * over. */
static int is_over(struct iris_hub *hub)
{
    int num_open = 0;

    if (!atomic_load(&hub->drained)) {
        return 0;
    }
    for (int i = 0; i < hub->num_links; i++) {
        struct iris_link *link = &hub->links[i];

        num_open += link->session.sock >= 0;
        if (link->session.sock >= 0 && !has_left(link)) {
            shutdown(link->session.sock, SHUT_WR);
        }
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
    struct iris_control *control;
    struct iris_rendezvous *rendezvous;
    int leader; /* the one that it connects to */
};

static void print_leader(void *arg, char *text, size_t bytes)
{
    snprintf(text, bytes, "rank %d to take it into the control plane",
             ((const struct opening *)arg)->leader);
}

static iris_status_t fail_gone(const struct iris_hub *hub, int leader,
                               int error)
{
    char name[IRIS_RANK_NAME_BYTES];

    iris_i_mail_name(hub->mail, leader, name);
    return iris_i_fail(hub->log, IRIS_ERR_PEER_LOST,
                       "%s %s before it took rank %d into the control plane",
                       name, iris_i_socket_end(error), hub->rank);
}

static iris_status_t fail_late_leader(const struct iris_wait *wait)
{
    const struct opening *opening = wait->arg;
    const struct iris_hub *hub = opening->hub;
    int stopped = iris_i_mail_find_stopped(hub->mail);
    char name[IRIS_RANK_NAME_BYTES], why[IRIS_RANK_NAME_BYTES + 64] = "";

    iris_i_mail_name(hub->mail, opening->leader, name);
    if (stopped >= 0) {
        snprintf(why, sizeof why,
                 "; rank %d is stopped by a signal or a debugger", stopped);
    }
    return iris_i_fail(hub->log, IRIS_ERR_TIMEOUT,
                       "%s has not connected to rank %d's control plane before "
                       "the deadline (IRIS_TIMEOUT_MS)%s",
                       name, hub->rank, why);
}

/* Children of a dead leader may hold its connections. One that gives up tells
 * the reason first. Rank 0 knows of ranks that died on their way here, and tells
 * the others. */
static iris_status_t check_leaders(void *arg)
{
    const struct opening *opening = arg;
    const struct iris_hub *hub = opening->hub;
    iris_status_t status;

    for (int i = 0; i < hub->num_links; i++) {
        int leader = hub->links[i].rank;

        if (has_ended(hub, leader)) {
            status = iris_i_peers_check(opening->control, leader);
            return status == IRIS_OK ? fail_gone(hub, leader, 0) : status;
        }
        if (!iris_i_mail_alive(hub->mail, leader)) {
            return fail_gone(hub, leader, 0);
        }
    }
    return hub->rank == 0 ? iris_i_rendezvous_root_check(opening->rendezvous)
                          : iris_i_rendezvous_hear(opening->rendezvous);
}

/* One connection to a leader, or an errno. */
static int dial_leader(const struct opening *opening, int *sock_p)
{
    const struct iris_hello *hello =
        &opening->rendezvous->hellos[opening->leader];
    int sock = iris_i_stream_socket((enum iris_control_kind)hello->control,
                                    &hello->control_address);
    int ret = sock < 0 ? errno
                       : iris_i_stream_connect(sock, &hello->control_address,
                                               opening->rendezvous->deadline);

    if (ret != 0 && sock >= 0) {
        close(sock);
    }
    *sock_p = ret == 0 ? sock : -1;
    return ret;
}

static iris_status_t fail_dial(const struct opening *opening, int ret)
{
    if (ret == ECONNREFUSED || ret == ECONNRESET || iris_i_socket_is_cut(ret)) {
        return fail_gone(opening->hub, opening->leader, ret);
    }
    return ret == EMFILE || ret == ENFILE
               ? iris_i_fail_fd(ret, "cannot make a socket")
               : iris_i_fail_errno(opening->hub->log, IRIS_ERR_SYSTEM, ret,
                                   "cannot connect to rank %d's control plane",
                                   opening->leader);
}

/* Proves this rank on a new connection. IRIS_ERR_STATE: the other leader has
 * dropped it. */
static iris_status_t prove_leader(const struct opening *opening, int sock,
                                  struct iris_wait *wait)
{
    const struct iris_hub *hub = opening->hub;
    struct iris_proof proof;
    iris_status_t status =
        iris_i_arrivals_prove(sock, &hub->key, hub->log, wait, &proof);

    if (status == IRIS_ERR_STATE && iris_i_socket_is_cut(proof.error)) {
        return fail_gone(hub, opening->leader, proof.error);
    }
    if (status != IRIS_ERR_BOOTSTRAP) {
        return status;
    }
    return iris_i_fail(hub->log,
                       proof.why == IRIS_PROOF_FULL ? IRIS_ERR_LIMIT
                                                    : IRIS_ERR_BOOTSTRAP,
                       proof.why == IRIS_PROOF_REFUSED
                           ? "rank %d has refused rank %d's connection to the "
                             "control plane: it %s"
                           : "rank %d's control plane, to which rank %d "
                             "connects: the other side %s",
                       opening->leader, hub->rank, iris_i_proof_reason(&proof));
}

/* The other leader may drop a connection because strangers crowd it. */
static iris_status_t connect_leader(struct opening *opening,
                                    struct iris_wait *wait)
{
    struct iris_link *link = find_link(opening->hub, opening->leader);
    int64_t cut_ns = iris_i_deadline(IRIS_CUT_MS - 1000);
    iris_status_t status;
    int sock, ret;

    do {
        ret = dial_leader(opening, &sock);
        status = ret == 0 ? prove_leader(opening, sock, wait)
                          : fail_dial(opening, ret);
        if (ret == EAGAIN || /* a full backlog */
            (iris_i_socket_is_cut(ret) && iris_i_now_ns() < cut_ns)) {
            status = IRIS_ERR_STATE;
        }
        if (status != IRIS_OK && sock >= 0) {
            close(sock);
        }
        if (status == IRIS_ERR_STATE) {
            ret = iris_i_wait_tick(wait);
            status = ret == IRIS_OK ? status : (iris_status_t)ret;
        }
    } while (status == IRIS_ERR_STATE);
    if (status == IRIS_OK) {
        (void)fcntl(sock, F_SETFL, O_NONBLOCK);
        add_link(opening->hub, link, sock);
    }
    return status;
}

/* Dials the lower leaders, and waits for the higher ones. Takes no longer than
 * the rest of the start. */
static iris_status_t connect_all(struct iris_hub *hub,
                                 struct iris_control *control,
                                 struct iris_rendezvous *rendezvous)
{
    static const struct iris_wait_type for_leader = {.pace = IRIS_PACE_SOCKET,
                                                     .fate = check_leaders,
                                                     .describe = print_leader,
                                                     .late = fail_late_leader};
    struct iris_waiter waiter = iris_i_peers_waiter(control);
    struct opening opening = {hub, control, rendezvous, 0};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_leader, &waiter, "iris_init", &opening);
    wait.begin_ns = rendezvous->begin;
    wait.deadline_ns = rendezvous->deadline;
    for (int i = 0; status == IRIS_OK && i < hub->num_links; i++) {
        opening.leader = hub->links[i].rank;
        if (opening.leader < hub->rank) {
            status = connect_leader(&opening, &wait);
        }
    }
    for (int i = 0; status == IRIS_OK && i < hub->num_links;) {
        opening.leader = hub->links[i].rank;
        if (atomic_load(&hub->links[i].has_come)) {
            i++;
        } else {
            status = iris_i_wait_tick(&wait);
        }
    }
    iris_i_wait_end(&wait, status);
    return status;
}

/* ---- Opening and closing ---- */

iris_status_t iris_i_hub_make(struct iris_hub *hub)
{
    size_t num_ranks = (size_t)hub->num_ranks;
    size_t num_links = (size_t)hub->mail->num_nodes - 1;
    int count = 0, is_whole;

    hub->links = calloc(num_links + 1, sizeof *hub->links);
    hub->polled = calloc(num_links + 2, sizeof *hub->polled);
    hub->sent = calloc(num_ranks * IRIS_PLACES, sizeof *hub->sent);
    hub->hashes = calloc(num_ranks, sizeof *hub->hashes);
    hub->rows = calloc(num_ranks, sizeof *hub->rows);
    hub->committed = 1;
    pthread_mutex_init(&hub->lock, NULL);
    is_whole = hub->links != NULL && hub->polled != NULL && hub->sent != NULL &&
               hub->hashes != NULL && hub->rows != NULL;
    hub->num_links = is_whole ? (int)num_links : 0;
    for (int rank = 0; hub->num_links != 0 && rank < hub->num_ranks; rank++) {
        if (hub->mail->ranks[rank].is_far &&
            hub->mail->ranks[rank].leader == rank) {
            hub->links[count].rank = rank;
            is_whole &= iris_i_session_open(&hub->links[count++].session,
                                            IRIS_MESSAGE_MOST);
        }
    }
    if (!is_whole) {
        iris_i_hub_free(hub);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for %zu connections", num_links);
    }
    return IRIS_OK;
}

void iris_i_hub_free(struct iris_hub *hub)
{
    close_listener(hub);
    for (int i = 0; i < hub->num_links; i++) {
        iris_i_rendezvous_close(&hub->links[i].session.sock);
        iris_i_session_close(&hub->links[i].session);
    }
    iris_i_rendezvous_close(&hub->wake);
    free(hub->links);
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
    hub->mail = control->mail;
    hub->table = control->segment;
    hub->listener = parts->fds.listener;
    hub->spare = parts->fds.spare;
    hub->wake = parts->fds.wake;
    parts->fds = (struct iris_control_fds)IRIS_CONTROL_NO_FDS;
    iris_i_rendezvous_key(rendezvous, "control", &hub->key);
    status = iris_i_hub_make(hub);
    if (status != IRIS_OK) {
        free(hub);
        return status;
    }
    status = iris_i_gate_open(&hub->gate, hub->listener, &hub->key,
                              hub->num_links + STRANGERS);
    hub->gate.admit = admit_leader;
    hub->gate.arg = hub;
    if (status == IRIS_OK) {
        status = start_threads(hub);
    }
    if (status != IRIS_OK) {
        iris_i_hub_free(hub);
        free(hub);
        return status;
    }
    status = connect_all(hub, control, rendezvous);
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
    iris_i_records_tell_hub(get_records(hub), 1);
    pthread_join(hub->sender, NULL);
    pthread_join(hub->receiver, NULL);
    iris_i_hub_free(hub);
    free(hub);
}
