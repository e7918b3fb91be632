/* SPDX-License-Identifier: MIT
 *
 * The control plane of one rank: it shows its state, posts calls, reads the
 * others, watches their processes, and sends them descriptors.
 *
 * - Ranks of one node show and post in the node's table (table.c).
 * - In a job of several nodes the hub (hub.c) carries both between nodes.
 * - Other processes of this machine are watched by pidfds; descriptors go by
 *   local datagrams (mail.c).
 */
#include "config.h"

#include "control/internal.h"

#include "base/base.h"
#include "base/socket.h"
#include "control/records.h"

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

static const struct iris_part none[2] = {{NULL, 0}, {NULL, 0}};

static uint64_t next_id(void)
{
    static atomic_uint count;

    return ((uint64_t)getpid() << 32) + atomic_fetch_add(&count, 1) + 1;
}

/* ---- Published state ---- */

static struct iris_board *find_board(struct iris_control *control, int rank)
{
    return iris_i_records_board(&control->table->records, rank);
}

static struct iris_board *find_record_board(struct iris_control *control)
{
    return iris_i_records_board(control->records, control->rank);
}

void iris_i_control_publish(struct iris_control *control, unsigned parts,
                            const struct iris_shown *shown)
{
    iris_i_board_write(find_record_board(control), parts, shown);
    if (control->hub != NULL) {
        iris_i_board_write(find_board(control, control->rank), parts, shown);
        iris_i_hub_show(control->hub, parts);
    }
}

void iris_i_control_wait_stream(struct iris_control *control, int change)
{
    if (control == NULL) {
        return;
    }
    atomic_fetch_add_explicit(&find_record_board(control)->streams,
                              (unsigned)change, memory_order_relaxed);
    if (control->hub != NULL) {
        atomic_fetch_add_explicit(&find_board(control, control->rank)->streams,
                                  (unsigned)change, memory_order_relaxed);
        iris_i_hub_show(control->hub, IRIS_SHOW_STREAMS);
    }
}

void iris_i_control_read(struct iris_control *control, int rank, unsigned parts,
                         struct iris_shown *shown_p)
{
    iris_i_board_read(find_board(control, rank), parts, shown_p);
}

/* ---- Posts ---- */

static struct iris_place *find_place(struct iris_control *control, int place)
{
    return iris_i_segment_place(control->table, place);
}

static void say_change(struct iris_control *control,
                       enum iris_message_type type, int place, uint64_t value)
{
    struct iris_message_head head =
        iris_i_message_head(type, control->rank, place, value, 0);

    if (control->hub != NULL) {
        iris_i_hub_say(control->hub, &head, none);
    }
}

void iris_i_control_post(struct iris_control *control,
                         const struct iris_post_id *id,
                         const struct iris_part parts[2], int expected)
{
    struct iris_message_head head =
        iris_i_message_head(IRIS_MESSAGE_POST, id->rank, id->place, id->seq,
                            parts[0].bytes + parts[1].bytes);

    (void)iris_i_place_post(find_place(control, id->place), id, parts,
                            expected);
    if (control->hub != NULL) {
        head.members = (uint16_t)expected;
        iris_i_hub_say(control->hub, &head, parts);
    }
}

int iris_i_control_posted(struct iris_control *control,
                          const struct iris_post_id *id)
{
    return iris_i_place_posted(find_place(control, id->place), id);
}

size_t iris_i_control_collect(struct iris_control *control,
                              const struct iris_post_id *id, size_t at,
                              void *to, size_t bytes)
{
    return iris_i_place_collect(find_place(control, id->place), id, at, to,
                                bytes);
}

void iris_i_control_wait(struct iris_control *control, int place, int64_t ns,
                         int (*done)(void *arg), void *arg)
{
    iris_i_place_wait(find_place(control, place), ns, done, arg);
}

unsigned iris_i_control_fail(struct iris_control *control, int place,
                             unsigned mark)
{
    unsigned first = iris_i_place_fail(find_place(control, place), mark);

    if (mark != 0 && first == mark) {
        say_change(control, IRIS_MESSAGE_FAIL, place, mark);
    }
    return first;
}

/* ---- Places ---- */

iris_status_t iris_i_control_place_prepare(struct iris_control *control,
                                           int place, int *free_p)
{
    iris_status_t status = iris_i_segment_commit_place(control->table, place);

    if (status == IRIS_OK) {
        *free_p = iris_i_place_prepare(find_place(control, place));
    }
    return status;
}

/* No member can use the place before all have come here. A failure mark and
 * counts are left from the last group. */
void iris_i_control_place_hold(struct iris_control *control, int place)
{
    struct iris_place *held = find_place(control, place);

    if (control->hub != NULL && place != 0 &&
        !atomic_load(&control->hub->lost)) {
        atomic_store(&held->failed, 0);
        atomic_store(&held->num_posts, 0);
    }
    iris_i_place_hold(held, control->rank);
    say_change(control, IRIS_MESSAGE_HOLD, place, 0);
}

void iris_i_control_place_release(struct iris_control *control, int place)
{
    iris_i_place_release(find_place(control, place));
    say_change(control, IRIS_MESSAGE_RELEASE, place, 0);
}

/* ---- Peers ---- */

/* A child of a dead process may hold its socket, so the process itself counts.
 * A process of this machine writes its state into the records before it tells
 * the hub: one that has left or finalized may end before its last messages have
 * come, and their end is that of its connection. */
int iris_i_control_alive(struct iris_control *control, int rank)
{
    int alive = iris_i_mail_alive(control->mail, rank);
    struct iris_shown shown;

    if (control->hub == NULL) {
        return alive;
    }
    if (alive || atomic_load(&control->hub->copy.ended[rank])) {
        return !atomic_load(&control->hub->copy.ended[rank]);
    }
    iris_i_board_read(iris_i_records_board(control->records, rank),
                      IRIS_SHOW_STATE, &shown);
    return shown.state >= IRIS_RANK_FINALIZED;
}

int iris_i_control_is_remote(struct iris_control *control, int rank)
{
    return control != NULL && control->mail->ranks[rank].is_remote;
}

void iris_i_control_name(struct iris_control *control, int rank,
                         char name[IRIS_RANK_NAME_BYTES])
{
    iris_i_mail_name(control->mail, rank, name);
}

int iris_i_control_send(struct iris_control *control, int rank,
                        const void *data, size_t bytes, int fd)
{
    return iris_i_mail_send(control->mail, rank, data, bytes, fd);
}

iris_status_t iris_i_control_receive(struct iris_control *control, void *data,
                                     size_t bytes, int timeout_ms,
                                     struct iris_sender *sender_p)
{
    const struct iris_inbox inbox = {control->log, data, bytes, timeout_ms};

    return iris_i_mail_receive(control->mail, &inbox, sender_p);
}

/* ---- The connection to rank 0's hub ---- */

static void close_fds(struct iris_control_fds *fds)
{
    const int all[] = {fds->listener, fds->spare, fds->wake};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        if (all[i] >= 0) {
            close(all[i]);
        }
    }
}

static iris_status_t listen_for_ranks(enum iris_control_kind kind,
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
        close_fds(&fds);
        return status;
    }
    *fds_p = fds;
    return IRIS_OK;
}

static void print_answer(void *arg, char *text, size_t bytes)
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

static iris_status_t fail_gone(const struct iris_control *control)
{
    char name[IRIS_RANK_NAME_BYTES];

    iris_i_mail_name(control->mail, 0, name);
    return iris_i_fail(control->log, IRIS_ERR_PEER_LOST,
                       "%s died before it took rank %d into the control plane",
                       name, control->rank);
}

/* Children of a dead rank 0 may hold its connections. */
static iris_status_t check_root(void *arg)
{
    const struct iris_control *control = arg;

    return iris_i_mail_alive(control->mail, 0) ? IRIS_OK : fail_gone(control);
}

static iris_status_t fail_dial(const struct iris_control *control, int ret)
{
    if (ret == ECONNREFUSED || ret == ECONNRESET) {
        return fail_gone(control);
    }
    return ret == EMFILE || ret == ENFILE
               ? iris_i_fail_fd(ret, "cannot make a socket")
               : iris_i_fail_errno(control->log, IRIS_ERR_SYSTEM, ret,
                                   "cannot connect to rank 0's control plane");
}

/* Proves this rank on a new connection. IRIS_ERR_STATE: rank 0 has dropped
 * it. */
static iris_status_t prove_peer(const struct iris_control *control, int sock,
                                struct iris_wait *wait)
{
    const struct iris_rank_claims claims = {.rank = control->rank,
                                            .num_ranks = control->num_ranks,
                                            .host = iris_i_host_id()};
    enum iris_proof_result result = IRIS_PROOF_PENDING;
    struct iris_proof proof;
    iris_status_t status =
        iris_i_proof_begin(&proof, IRIS_PROOF_CONNECTOR, sock,
                           &control->hub->key, &claims, sizeof claims, 0);

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
    return iris_i_fail(control->log,
                       proof.why == IRIS_PROOF_FULL ? IRIS_ERR_LIMIT
                                                    : IRIS_ERR_BOOTSTRAP,
                       proof.why == IRIS_PROOF_REFUSED
                           ? "rank 0 has refused rank %d's connection to the "
                             "control plane: it %s"
                           : "rank %d's connection to rank 0's control plane: "
                             "the other side %s",
                       control->rank, iris_i_proof_reason(&proof));
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
static iris_status_t connect_hub(struct iris_control *control,
                                 const struct iris_rendezvous *rendezvous,
                                 int *sock_p)
{
    static const struct iris_wait_type for_answer = {
        .pace = IRIS_PACE_SOCKET, .fate = check_root, .describe = print_answer};
    struct iris_waiter waiter = iris_i_peers_waiter(control);
    struct iris_wait wait;
    iris_status_t status;
    int sock, ret;

    iris_i_wait_begin(&wait, &for_answer, &waiter, "iris_init", control);
    wait.begin_ns = rendezvous->begin;
    wait.deadline_ns = rendezvous->deadline;
    do {
        ret = dial_hub(&rendezvous->hellos[0], &sock);
        if (ret == EAGAIN) { /* a full backlog */
            status = iris_i_wait_tick(&wait);
            status = status == IRIS_OK ? IRIS_ERR_STATE : status;
        } else {
            status = ret == 0 ? prove_peer(control, sock, &wait)
                              : fail_dial(control, ret);
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

/* ---- Opening and closing ---- */

/* The lowest rank of a host publishes the states of other hosts' ranks to the
 * tools on its own host. */
static iris_status_t open_mirror(struct iris_control *control,
                                 const struct iris_rendezvous *rendezvous)
{
    struct iris_hub *hub = control->hub;
    const struct iris_hello *own = &rendezvous->hellos[control->rank];
    int lowest = 0;

    hub->elsewhere = calloc((size_t)control->num_ranks, 1);
    if (hub->elsewhere == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    while (!iris_i_hello_same_host(&rendezvous->hellos[lowest], own)) {
        lowest++;
    }
    for (int rank = 0; rank < control->num_ranks; rank++) {
        hub->elsewhere[rank] =
            !iris_i_hello_same_host(&rendezvous->hellos[rank], own);
        if (hub->elsewhere[rank]) {
            iris_i_records_mark_elsewhere(&rendezvous->segment->records, rank);
        }
    }
    hub->copy.rank = control->rank;
    hub->copy.mail = control->mail;
    hub->copy.records = &rendezvous->segment->records;
    hub->copy.elsewhere = hub->elsewhere;
    hub->copy.writes_boards = lowest == control->rank;
    return IRIS_OK;
}

static iris_status_t open_hub(struct iris_control *control,
                              const struct iris_rendezvous *rendezvous,
                              const struct iris_control_fds *fds)
{
    struct iris_hub *hub = calloc(1, sizeof *hub);
    iris_status_t status;
    int sock = -1;

    if (hub == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    hub->log = control->log;
    hub->rank = control->rank;
    hub->num_ranks = control->num_ranks;
    control->hub = hub;
    iris_i_rendezvous_key(rendezvous, "control", &hub->key);
    status = open_mirror(control, rendezvous);
    if (status == IRIS_OK && control->rank != 0) {
        status = connect_hub(control, rendezvous, &sock);
    }
    if (status == IRIS_OK) {
        status = iris_i_hub_open(hub, fds, sock);
        if (status != IRIS_OK && sock >= 0) {
            close(sock);
        }
    }
    if (status != IRIS_OK) {
        control->hub = NULL;
        free(hub->elsewhere);
        free(hub);
    }
    return status;
}

static void close_hub(struct iris_control *control)
{
    struct iris_hub *hub = control->hub;

    if (hub != NULL) {
        iris_i_hub_close(hub, control->own.state == IRIS_RANK_FINALIZED
                                  ? STAY_MS
                                  : STAY_LEFT_MS);
        free(hub->elsewhere);
        free(hub);
    }
}

void iris_i_control_close(struct iris_control *control)
{
    if (control == NULL) {
        return;
    }
    close_hub(control);
    iris_i_mail_close(control->mail);
    iris_i_segment_release(control->segment);
    free(control->mail);
    free(control);
}

iris_status_t iris_i_control_prepare(enum iris_control_kind kind,
                                     struct iris_hello *hello_p,
                                     struct iris_control_parts *parts)
{
    hello_p->control = (int32_t)kind;
    return kind == IRIS_CONTROL_SHM || hello_p->rank != 0
               ? IRIS_OK
               : listen_for_ranks(kind, hello_p, &parts->fds);
}

static void open_record(struct iris_control *control)
{
    control->record = iris_i_records_open(control->records, control->rank);
    if (control->record == NULL) {
        iris_i_warning(control->log,
                       "no flight record of this rank, so that reports of "
                       "hangs say less: %s",
                       iris_last_error());
        return;
    }
    memcpy(control->record->host, control->mail->ranks[control->rank].host,
           sizeof control->record->host);
}

/* The control plane without its descriptors. NULL: no memory. */
static struct iris_control *make_control(const struct iris_log *log,
                                         int num_ranks)
{
    struct iris_control *control = calloc(1, sizeof *control);
    struct iris_mail *mail = calloc(1, sizeof *mail);

    if (control == NULL || mail == NULL) {
        free(control);
        free(mail);
        return NULL;
    }
    control->mail = mail;
    control->log = log;
    control->rank = log->rank;
    control->num_ranks = num_ranks;
    return control;
}

static iris_status_t join_control(struct iris_control *control,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts)
{
    int has_hub = rendezvous->hellos[0].control != IRIS_CONTROL_SHM;
    iris_status_t status = iris_i_mail_open(control->mail, rendezvous);

    if (status == IRIS_OK) {
        status = iris_i_mail_watch(control->mail);
    }
    if (status == IRIS_OK && has_hub) {
        status = open_hub(control, rendezvous, &parts->fds);
    }
    if (status != IRIS_OK) {
        return status;
    }
    control->segment = rendezvous->segment;
    rendezvous->segment = NULL;
    control->records = &control->segment->records;
    control->table = has_hub ? control->hub->copy.segment : control->segment;
    control->mail->endpoint = parts->endpoint;
    open_record(control);
    for (int rank = 1;
         control->rank == 0 && has_hub && rank < control->num_ranks; rank++) {
        control->serves |= iris_i_control_is_remote(control, rank);
    }
    if (control->rank == 0) {
        control->own.id = next_id();
        iris_i_control_publish(control, IRIS_SHOW_ID, &control->own);
    }
    return IRIS_OK;
}

iris_status_t iris_i_control_open(const struct iris_log *log,
                                  struct iris_rendezvous *rendezvous,
                                  struct iris_control_parts *parts,
                                  struct iris_control **control_p)
{
    struct iris_control *control = make_control(log, rendezvous->num_ranks);
    iris_status_t status =
        control == NULL
            ? iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for %d ranks",
                          rendezvous->num_ranks)
            : join_control(control, rendezvous, parts);

    if (status == IRIS_OK) {
        *parts = (struct iris_control_parts)IRIS_CONTROL_NO_PARTS;
        *control_p = control;
        return IRIS_OK;
    }
    iris_i_control_close(control); /* it has not taken over the parts */
    iris_i_control_parts_close(parts);
    return status;
}

void iris_i_control_parts_close(struct iris_control_parts *parts)
{
    iris_i_endpoint_close(parts->endpoint);
    close_fds(&parts->fds);
    *parts = (struct iris_control_parts)IRIS_CONTROL_NO_PARTS;
}
