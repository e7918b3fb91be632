/* SPDX-License-Identifier: MIT
 *
 * The control plane over stream sockets: this rank's copy of all ranks'
 * published states and posts, and the messages that update the others' copies.
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"
#include "base/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

/* Time that rank 0 stays for ranks that have not closed yet, so that all their
 * messages reach the others. It applies after rank 0 has finalized, and after
 * it left. */
#define STAY_MS 10000
#define STAY_LEFT_MS 500

struct socket_control {
    struct iris_control base;
    struct iris_segment *segment; /* used for its records only */
    unsigned char *elsewhere;     /* by rank: whether it is on another host */
    struct iris_mail mail;
    struct iris_hub hub;
};

static struct socket_control *of(struct iris_control *control)
{
    return (struct socket_control *)control;
}

static const struct iris_part none[2] = {{NULL, 0}, {NULL, 0}};

/* ---- Published state ---- */

static struct iris_board *own_board(struct iris_control *control)
{
    return iris_i_hub_board(&of(control)->hub.copy, control->rank);
}

static struct iris_board *record_board(struct iris_control *control)
{
    return iris_i_records_board(control->records, control->rank);
}

static void socket_publish(struct iris_control *control, unsigned parts,
                           const struct iris_shown *shown)
{
    iris_i_board_write(record_board(control), parts, shown);
    iris_i_board_write(own_board(control), parts, shown);
    iris_i_hub_show(&of(control)->hub, parts);
}

static void socket_wait_stream(struct iris_control *control, int change)
{
    atomic_fetch_add_explicit(&record_board(control)->streams, (unsigned)change,
                              memory_order_relaxed);
    atomic_fetch_add_explicit(&own_board(control)->streams, (unsigned)change,
                              memory_order_relaxed);
    iris_i_hub_show(&of(control)->hub, IRIS_SHOW_STREAMS);
}

static void socket_read(struct iris_control *control, int rank, unsigned parts,
                        struct iris_shown *shown_p)
{
    iris_i_board_read(iris_i_hub_board(&of(control)->hub.copy, rank), parts,
                      shown_p);
}

/* ---- Posts ---- */

static void say(struct iris_control *control, enum iris_message_type type,
                int place, uint64_t value)
{
    struct iris_message_head head =
        iris_i_message_head(type, control->rank, place, value, 0);

    iris_i_hub_say(&of(control)->hub, &head, none);
}

static void socket_post(struct iris_control *control,
                        const struct iris_post_id *id,
                        const struct iris_part parts[2], int expected)
{
    struct iris_hub *hub = &of(control)->hub;
    struct iris_message_head head =
        iris_i_message_head(IRIS_MESSAGE_POST, id->rank, id->place, id->seq,
                            parts[0].bytes + parts[1].bytes);

    head.members = (uint16_t)expected;
    (void)iris_i_place_post(iris_i_hub_place(&hub->copy, id->place), id, parts,
                            expected);
    iris_i_hub_say(hub, &head, parts);
}

static int socket_posted(struct iris_control *control,
                         const struct iris_post_id *id)
{
    return iris_i_place_posted(
        iris_i_hub_place(&of(control)->hub.copy, id->place), id);
}

static size_t socket_collect(struct iris_control *control,
                             const struct iris_post_id *id, size_t at, void *to,
                             size_t bytes)
{
    return iris_i_place_collect(
        iris_i_hub_place(&of(control)->hub.copy, id->place), id, at, to, bytes);
}

static void socket_wait(struct iris_control *control, int place, int64_t ns,
                        int (*done)(void *arg), void *arg)
{
    iris_i_place_wait(iris_i_hub_place(&of(control)->hub.copy, place), ns, done,
                      arg);
}

static unsigned socket_fail(struct iris_control *control, int place,
                            unsigned mark)
{
    unsigned first = iris_i_place_fail(
        iris_i_hub_place(&of(control)->hub.copy, place), mark);

    if (mark != 0 && first == mark) {
        say(control, IRIS_MESSAGE_FAIL, place, mark);
    }
    return first;
}

/* ---- Places ---- */

static iris_status_t socket_place_prepare(struct iris_control *control,
                                          int place, int *free_p)
{
    *free_p =
        iris_i_place_prepare(iris_i_hub_place(&of(control)->hub.copy, place));
    return IRIS_OK;
}

/* No member can use the place before all have come here. A failure mark and
 * counts are left from the last group. */
static void socket_place_hold(struct iris_control *control, int place)
{
    struct iris_place *copy = iris_i_hub_place(&of(control)->hub.copy, place);

    if (place != 0 && !atomic_load(&of(control)->hub.lost)) {
        atomic_store(&copy->failed, 0);
        atomic_store(&copy->num_posts, 0);
    }
    iris_i_place_hold(copy, control->rank);
    say(control, IRIS_MESSAGE_HOLD, place, 0);
}

static void socket_place_release(struct iris_control *control, int place)
{
    iris_i_place_release(iris_i_hub_place(&of(control)->hub.copy, place));
    say(control, IRIS_MESSAGE_RELEASE, place, 0);
}

/* ---- Peers ---- */

/* A child of a dead process may hold its socket, so the process itself counts.
 * A process of this machine writes its state into the records before it tells
 * the hub: one that has left or finalized may end before its last messages have
 * come, and their end is that of its connection. */
static int socket_alive(struct iris_control *control, int rank)
{
    struct iris_shown shown;

    if (atomic_load(&of(control)->hub.copy.ended[rank])) {
        return 0;
    }
    if (iris_i_mail_alive(&of(control)->mail, rank)) {
        return 1;
    }
    iris_i_board_read(iris_i_records_board(control->records, rank),
                      IRIS_SHOW_STATE, &shown);
    return shown.state >= IRIS_RANK_FINALIZED;
}

static int socket_is_remote(struct iris_control *control, int rank)
{
    return iris_i_mail_is_remote(&of(control)->mail, rank);
}

static void socket_name(struct iris_control *control, int rank,
                        char name[IRIS_RANK_NAME_BYTES])
{
    iris_i_mail_name(&of(control)->mail, rank, name);
}

static int socket_send(struct iris_control *control, int rank, const void *data,
                       size_t bytes, int fd)
{
    return iris_i_mail_send(&of(control)->mail, rank, data, bytes, fd);
}

static iris_status_t socket_receive(struct iris_control *control, void *data,
                                    size_t bytes, int timeout_ms,
                                    struct iris_sender *sender_p)
{
    const struct iris_inbox inbox = {control->log, data, bytes, timeout_ms};

    return iris_i_mail_receive(&of(control)->mail, &inbox, sender_p);
}

/* ---- Opening and closing ---- */

static void socket_close(struct iris_control *control)
{
    struct socket_control *s = of(control);

    iris_i_hub_close(&s->hub, control->own.state == IRIS_RANK_FINALIZED
                                  ? STAY_MS
                                  : STAY_LEFT_MS);
    iris_i_mail_close(&s->mail);
    iris_i_segment_release(s->segment);
    free(s->elsewhere);
    free(s);
}

static const struct iris_control_ops ops = {
    .publish = socket_publish,
    .wait_stream = socket_wait_stream,
    .read = socket_read,
    .post = socket_post,
    .posted = socket_posted,
    .collect = socket_collect,
    .wait = socket_wait,
    .fail = socket_fail,
    .place_prepare = socket_place_prepare,
    .place_hold = socket_place_hold,
    .place_release = socket_place_release,
    .alive = socket_alive,
    .is_remote = socket_is_remote,
    .name = socket_name,
    .send = socket_send,
    .receive = socket_receive,
    .close = socket_close,
};

enum iris_control_kind iris_i_control_kind(const char *name)
{
    return strcmp(name, "socket") == 0 ? IRIS_CONTROL_UNIX
           : strcmp(name, "tcp") == 0  ? IRIS_CONTROL_TCP
                                       : IRIS_CONTROL_SHM;
}

void iris_i_control_fds_close(struct iris_control_fds *fds)
{
    const int all[] = {fds->listener, fds->spare, fds->wake};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] >= 0) {
            close(all[i]);
        }
    }
}

iris_status_t iris_i_control_socket_listen(enum iris_control_kind kind,
                                           struct iris_hello *hello,
                                           struct iris_control_fds *fds_p)
{
    struct iris_control_fds fds = IRIS_CONTROL_NO_FDS;
    iris_status_t status;

    /* Step by step: the first failure sets the message. */
    if ((fds.listener = iris_i_stream_socket(kind, &hello->control_address)) <
            0 ||
        (fds.spare = fcntl(fds.listener, F_DUPFD_CLOEXEC, 3)) < 0 ||
        (fds.wake = iris_i_fd_above_stdio(
             eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))) < 0) {
        status =
            iris_i_fail_fd(errno, "cannot make the control plane's socket");
    } else if ((status = iris_i_secret_random(hello->control_secret,
                                              sizeof hello->control_secret)) ==
               IRIS_OK) {
        status =
            iris_i_stream_listen(fds.listener, kind, &hello->control_address);
    }
    if (status != IRIS_OK) {
        iris_i_control_fds_close(&fds);
        return status;
    }
    *fds_p = fds;
    return IRIS_OK;
}

static void describe_answer(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "rank 0 to take it into the control plane");
}

/* One connection to rank 0, or an errno. */
static int dial_hub(const struct iris_hello *root, int *sock_p)
{
    int sock = iris_i_stream_socket((enum iris_control_kind)root->control,
                                    &root->control_address);
    int ret =
        sock < 0 ? errno : iris_i_stream_connect(sock, &root->control_address);

    if (ret != 0 && sock >= 0) {
        close(sock);
    }
    *sock_p = ret == 0 ? sock : -1;
    return ret;
}

static iris_status_t fail_gone(const struct socket_control *s)
{
    char name[IRIS_RANK_NAME_BYTES];

    iris_i_mail_name(&s->mail, 0, name);
    return iris_i_fail(s->base.log, IRIS_ERR_PEER_LOST,
                       "%s died before it took rank %d into the control plane",
                       name, s->base.rank);
}

/* Children of a dead rank 0 may hold its connections. */
static iris_status_t root_fate(void *arg)
{
    const struct socket_control *s = arg;

    return iris_i_mail_alive(&s->mail, 0) ? IRIS_OK : fail_gone(s);
}

static iris_status_t fail_dial(const struct socket_control *s, int ret)
{
    if (ret == ECONNREFUSED || ret == ECONNRESET) {
        return fail_gone(s);
    }
    return ret == EMFILE || ret == ENFILE
               ? iris_i_fail_fd(ret, "cannot make a socket")
               : iris_i_fail_errno(s->base.log, IRIS_ERR_SYSTEM, ret,
                                   "cannot connect to rank 0's control plane");
}

/* Proves this rank on a new connection. IRIS_ERR_STATE: rank 0 has dropped
 * it. */
static iris_status_t prove_peer(const struct socket_control *s, int sock,
                                struct iris_wait *wait)
{
    const struct iris_rank_claims claims = {.rank = s->base.rank,
                                            .num_ranks = s->base.num_ranks,
                                            .host = iris_i_host_id()};
    enum iris_proof_result result = IRIS_PROOF_PENDING;
    struct iris_proof proof;
    iris_status_t status =
        iris_i_proof_begin(&proof, IRIS_PROOF_CONNECTOR, sock, &s->hub.key,
                           &claims, sizeof claims, 0);

    wait->fd = sock;
    while (status == IRIS_OK && result == IRIS_PROOF_PENDING) {
        result = iris_i_proof_step(&proof);
        if (result == IRIS_PROOF_PENDING) {
            status = iris_i_wait_tick(wait);
        }
    }
    wait->fd = -1;
    if (status != IRIS_OK || result == IRIS_PROOF_PROVEN) {
        return status;
    }
    if (proof.why == IRIS_PROOF_GONE) {
        return IRIS_ERR_STATE;
    }
    return iris_i_fail(s->base.log,
                       proof.why == IRIS_PROOF_FULL ? IRIS_ERR_LIMIT
                                                    : IRIS_ERR_BOOTSTRAP,
                       proof.why == IRIS_PROOF_REFUSED
                           ? "rank 0 has refused rank %d's connection to the "
                             "control plane: it %s"
                           : "rank %d's connection to rank 0's control plane: "
                             "the other side %s",
                       s->base.rank, iris_i_proof_reason(&proof));
}

/* Rank 0 sends the published states once it has opened its link to this rank. A
 * post of another rank would be lost before that. */
static iris_status_t await_welcome(int sock, struct iris_wait *wait)
{
    iris_status_t status = IRIS_OK;

    wait->fd = sock;
    while (status == IRIS_OK && !iris_i_socket_is_readable(sock)) {
        status = iris_i_wait_tick(wait);
    }
    return status;
}

/* Takes no longer than the rest of the start. Rank 0's death refuses the
 * connection; the other ranks' states are not known yet. Rank 0 may drop a connection because strangers crowd it. */
static iris_status_t connect_root(struct socket_control *s,
                                  const struct iris_rendezvous *rendezvous,
                                  int *sock_p)
{
    static const struct iris_wait_type for_answer = {.pace = IRIS_PACE_SOCKET,
                                                     .fate = root_fate,
                                                     .describe =
                                                         describe_answer};
    struct iris_waiter waiter = iris_i_peers_waiter(&s->base);
    struct iris_wait wait;
    iris_status_t status;
    int sock, ret;

    iris_i_wait_begin(&wait, &for_answer, &waiter, "iris_init", s);
    wait.begin_ns = rendezvous->begin;
    wait.deadline_ns = rendezvous->deadline;
    do {
        ret = dial_hub(&rendezvous->hellos[0], &sock);
        if (ret == EAGAIN) { /* a full backlog */
            status = iris_i_wait_tick(&wait);
            status = status == IRIS_OK ? IRIS_ERR_STATE : status;
        } else {
            status = ret == 0 ? prove_peer(s, sock, &wait) : fail_dial(s, ret);
            status = status == IRIS_OK ? await_welcome(sock, &wait) : status;
        }
        if (status != IRIS_OK && sock >= 0) {
            close(sock);
        }
    } while (status == IRIS_ERR_STATE);
    iris_i_wait_end(&wait, status);
    if (status == IRIS_OK) {
        (void)fcntl(sock, F_SETFL, O_NONBLOCK);
        *sock_p = sock;
    }
    return status;
}

/* The lowest rank of a host publishes the states of other hosts' ranks to the
 * tools on its own host. */
static iris_status_t open_mirror(struct socket_control *s,
                                 const struct iris_rendezvous *rendezvous)
{
    const struct iris_hello *own = &rendezvous->hellos[s->base.rank];
    int lowest = 0;

    s->elsewhere = calloc((size_t)s->base.num_ranks, 1);
    if (s->elsewhere == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    while (!iris_i_hello_same_host(&rendezvous->hellos[lowest], own)) {
        lowest++;
    }
    for (int rank = 0; rank < s->base.num_ranks; rank++) {
        s->elsewhere[rank] =
            !iris_i_hello_same_host(&rendezvous->hellos[rank], own);
        if (s->elsewhere[rank]) {
            iris_i_records_mark_elsewhere(&rendezvous->segment->records, rank);
        }
    }
    s->hub.copy.rank = s->base.rank;
    s->hub.copy.mail = &s->mail;
    s->hub.copy.records = &rendezvous->segment->records;
    s->hub.copy.elsewhere = s->elsewhere;
    s->hub.copy.writes_boards = lowest == s->base.rank;
    return IRIS_OK;
}

static iris_status_t open_hub(struct socket_control *s,
                              const struct iris_rendezvous *rendezvous,
                              const struct iris_control_fds *fds)
{
    iris_status_t status = IRIS_OK;
    int sock = -1;

    s->hub.log = s->base.log;
    s->hub.rank = s->base.rank;
    s->hub.num_ranks = s->base.num_ranks;
    iris_i_rendezvous_key(rendezvous, "control", &s->hub.key);
    if (s->base.rank != 0) {
        status = connect_root(s, rendezvous, &sock);
    }
    if (status != IRIS_OK) {
        return status;
    }
    status = iris_i_hub_open(&s->hub, fds, sock);
    if (status != IRIS_OK && s->base.rank != 0) {
        close(sock);
    }
    return status;
}

iris_status_t iris_i_control_socket_open(const struct iris_log *log,
                                         struct iris_rendezvous *rendezvous,
                                         struct iris_endpoint *endpoint,
                                         const struct iris_control_fds *fds,
                                         struct iris_control **control_p)
{
    struct socket_control *s = calloc(1, sizeof *s);
    iris_status_t status;

    if (s == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    s->base.ops = &ops;
    s->base.mail = &s->mail;
    s->base.log = log;
    s->base.rank = log->rank;
    s->base.num_ranks = rendezvous->num_ranks;
    status = iris_i_mail_open(&s->mail, rendezvous);
    if (status == IRIS_OK) {
        status = iris_i_mail_watch(&s->mail, 0);
    }
    if (status == IRIS_OK) {
        status = open_mirror(s, rendezvous);
    }
    if (status == IRIS_OK) {
        status = open_hub(s, rendezvous, fds);
    }
    if (status != IRIS_OK) {
        iris_i_mail_close(&s->mail);
        free(s->elsewhere);
        free(s);
        return status;
    }
    s->segment = rendezvous->segment;
    rendezvous->segment = NULL;
    s->mail.endpoint = endpoint;
    iris_i_control_open_record(&s->base, &s->segment->records);
    if (s->base.record != NULL) {
        memcpy(s->base.record->host, s->mail.ranks[log->rank].host,
               sizeof s->base.record->host);
    }
    for (int rank = 1; log->rank == 0 && rank < log->num_ranks; rank++) {
        s->base.serves |= iris_i_mail_is_remote(&s->mail, rank);
    }
    if (log->rank == 0) {
        s->base.own.id = iris_i_control_next_id();
        socket_publish(&s->base, IRIS_SHOW_ID, &s->base.own);
    }
    *control_p = &s->base;
    return IRIS_OK;
}
