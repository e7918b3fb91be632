/* SPDX-License-Identifier: MIT
 *
 * Stream sockets between the ranks of a job; and links between processes of
 * different nodes, for the hub and for transport.
 * Each is a session (base/session.c) over one connection at a time. A connection
 * that ends is replaced, and the session resumes:
 *
 *   CUT     no connection, but a way to one is sought (the state at first)
 *   JOINED  the session has a connection
 *   ENDED   both sides have sent their last record, and this one has taken the
 *           other's, or the connection ended meanwhile
 *   LOST    the owner has given the rank up
 *
 * Each rank listens as long as its context is open. The rank with the higher
 * number connects, and both prove that they know the job's key (base/proof.c).
 * Both claim the number of bytes that they have received; the connector claims
 * its rank and the number of this try, too. Before a side states its number of
 * bytes it ends its old connection, so that the number stays right. A try with a
 * lower number than an earlier one is refused: its statement is out of date.
 *
 * A side of which the other one learns nothing may be stopped, out of reach, or
 * gone:
 * - Gone: nothing listens at its address any more.
 * - It has given this side up, and refuses it.
 * - Out of reach: nothing accepts a connection for IRIS_CUT_MS.
 * - Stopped: its system accepts connections, but it proves nothing. This side
 *   waits, since the calls of both sides have their own deadlines.
 *
 * While a link is cut the side that accepts connects, too, and proves itself. It
 * only asks: the other side closes that connection, unless it has to refuse it.
 *
 * The last record of a side says that it has closed. The other one answers it by
 * its own, so a connection that ends without is a loss.
 *
 * All ways are tried at once, so a rank that is stopped holds up no other one.
 * Strangers may hold STRANGERS connections. One more closes the oldest; a rank
 * tries again. No function waits. The owner lets one thread at a time call them.
 */
#include "config.h"

#include "control/control.h"

#include "base/base.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define STRANGERS 64

/* Pause between two tries, and before the first one of the side that accepts. */
#define PAUSE_NS (20 * IRIS_NS_PER_MS)
#define PROBE_NS (100 * IRIS_NS_PER_MS)

/* A connection that is open for this time without a proof shows that the other
 * host answers. */
#define OPEN_NS IRIS_NS_PER_S

/* Tries in a row that find no listener. */
#define REFUSED_MOST 3

/* Time for tries after the other host was silent for long: a few round trips. */
#define LAST_NS (250 * IRIS_NS_PER_MS)

/* A resumption that takes longer is worth a warning. */
#define SLOW_NS IRIS_NS_PER_S

/* Time between looks at a connection. */
#define LOOK_NS (200 * IRIS_NS_PER_MS)

/* ---- Stream sockets ---- */

/* The system sends probes during silence, and gives up if the other side
 * acknowledges nothing. */
static void watch_silence(int sock)
{
    const struct {
        int level;
        int name;
        int value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},
        {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 1},
        {IPPROTO_TCP, TCP_KEEPINTVL, 1},
        {IPPROTO_TCP, TCP_KEEPCNT, IRIS_CUT_MS / 1000 - 1},
        {IPPROTO_TCP, TCP_USER_TIMEOUT, IRIS_CUT_MS - 1000},
    };

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        (void)setsockopt(sock, options[i].level, options[i].name,
                         &options[i].value, sizeof options[i].value);
    }
}

/* Where a socket of this kind is bound: at the given address, or by default on
 * the loopback. A local socket gets its name from the system. */
static struct iris_address bind_address(enum iris_control_kind kind,
                                        const struct iris_address *given)
{
    const sa_family_t local = AF_UNIX;
    const struct sockaddr_in loopback = {.sin_family = AF_INET,
                                         .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct iris_address address = {.bytes = 0};

    if (kind != IRIS_CONTROL_TCP) {
        address.bytes = sizeof local;
        memcpy(address.data, &local, sizeof local);
    } else if (given->bytes == 0) {
        address.bytes = sizeof loopback;
        memcpy(address.data, &loopback, sizeof loopback);
    } else {
        address = *given;
    }
    return address;
}

int iris_i_stream_socket(enum iris_control_kind kind,
                         const struct iris_address *address)
{
    const struct iris_address own = bind_address(kind, address);
    sa_family_t family;
    int sock;

    memcpy(&family, own.data, sizeof family);
    sock = iris_i_fd_socket(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (sock >= 0 && kind == IRIS_CONTROL_TCP) {
        watch_silence(sock);
    }
    return sock;
}

iris_status_t iris_i_stream_listen(int sock, enum iris_control_kind kind,
                                   struct iris_address *address_p)
{
    struct iris_address own = bind_address(kind, address_p);
    socklen_t bytes = sizeof own.data;
    int on = 1;

    if (address_p->bytes != 0) {
        setsockopt(sock, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    }
    if (bind(sock, (const struct sockaddr *)own.data, own.bytes) != 0 ||
        listen(sock, SOMAXCONN) != 0) {
        return iris_i_fail_errno(NULL, IRIS_ERR_SYSTEM, errno,
                                 "cannot listen for other ranks");
    }
    if (getsockname(sock, (struct sockaddr *)own.data, &bytes) != 0 ||
        bytes > sizeof own.data) {
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "a socket for other ranks has no address");
    }
    own.bytes = bytes;
    *address_p = own;
    return IRIS_OK;
}

int iris_i_dial_begin(struct iris_dial *dial, enum iris_control_kind kind,
                      const struct iris_address *address)
{
    *dial = (struct iris_dial){.sock = -1, .since_ns = iris_i_now_ns()};
    if (address->bytes == 0 || address->bytes > sizeof address->data) {
        return ECONNREFUSED;
    }
    dial->sock = iris_i_stream_socket(kind, address);
    if (dial->sock < 0) {
        return errno;
    }
    (void)fcntl(dial->sock, F_SETFL, O_NONBLOCK);
    return connect(dial->sock, (const struct sockaddr *)address->data,
                   address->bytes) == 0 ||
                   errno == EINPROGRESS || errno == EINTR
               ? 0
               : errno;
}

/* Whether the connection is made. */
static int check_connected(struct iris_dial *dial)
{
    struct pollfd pollfd = {.fd = dial->sock, .events = POLLOUT};
    socklen_t bytes = sizeof dial->error;

    if (poll(&pollfd, 1, 0) <= 0) {
        if (iris_i_now_ns() - dial->since_ns >
            IRIS_CONNECT_MS * IRIS_NS_PER_MS) {
            dial->error = ETIMEDOUT;
        }
        return 0;
    }
    if (getsockopt(dial->sock, SOL_SOCKET, SO_ERROR, &dial->error, &bytes) !=
        0) {
        dial->error = errno;
    }
    return dial->error == 0;
}

enum iris_proof_result iris_i_dial_step(struct iris_dial *dial,
                                        const struct iris_secret *key,
                                        const void *claims, size_t bytes)
{
    enum iris_proof_result result;

    if (!dial->is_connected && check_connected(dial)) {
        dial->is_connected = 1;
        dial->since_ns = iris_i_now_ns();
        if (iris_i_proof_begin(&dial->proof, IRIS_PROOF_CONNECTOR, dial->sock,
                               key, claims, bytes, 0) != IRIS_OK) {
            dial->error = EIO;
        }
    }
    if (!dial->is_connected || dial->error != 0) {
        return dial->error == 0 ? IRIS_PROOF_PENDING : IRIS_PROOF_FAILED;
    }
    result = iris_i_proof_step(&dial->proof);
    if (result == IRIS_PROOF_FAILED && dial->proof.why == IRIS_PROOF_GONE) {
        dial->error = dial->proof.error != 0 ? dial->proof.error : ECONNRESET;
    }
    return result;
}

/* A connection of the job, whose receiver may be stopped for any time: the system
 * does not end it while it answers. TCP_USER_TIMEOUT also ends a connection whose receiver reads nothing, though
 * its system answers. */
static void settle_stream(int sock)
{
    const unsigned none = 0;

    (void)setsockopt(sock, IPPROTO_TCP, TCP_USER_TIMEOUT, &none, sizeof none);
}

int iris_i_stream_is_silent(int sock)
{
    struct tcp_info info = {0};
    socklen_t bytes = sizeof info;

    return getsockopt(sock, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 &&
           (info.tcpi_retransmits != 0 || info.tcpi_probes != 0);
}

/* 0: the other host has not answered packets for IRIS_CUT_MS - 1 s. A host
 * whose process is stopped answers. Looks seldom, so it may be called often.
 *
 * The system counts packets and probes without an answer, and an answer resets
 * both counts. So a host answers that never had a count for the whole time. */
static int does_answer(struct iris_stream_check *check, int sock)
{
    int64_t now = iris_i_now_ns();

    if (now < check->next_ns) {
        return 1;
    }
    check->next_ns = now + LOOK_NS;
    if (!iris_i_stream_is_silent(sock)) {
        check->silent_ns = 0;
        return 1;
    }
    check->silent_ns = check->silent_ns == 0 ? now : check->silent_ns;
    return now - check->silent_ns < (IRIS_CUT_MS - 1000) * IRIS_NS_PER_MS;
}

/* ---- Links ---- */

void iris_i_rendezvous_key(const struct iris_rendezvous *rendezvous,
                           const char *label, struct iris_secret *key_p)
{
    const struct iris_bootstrap *bootstrap = rendezvous->bootstrap;
    struct iris_secret salted;

    iris_i_hmac_sha256(bootstrap->secret.bytes, sizeof bootstrap->secret.bytes,
                       rendezvous->hellos[0].control_secret,
                       sizeof rendezvous->hellos[0].control_secret,
                       salted.bytes);
    iris_i_secret_derive(&salted, label, key_p);
}

static int watch_socket(const struct iris_links *links, int sock, int how,
                        uint32_t events)
{
    struct epoll_event event = {.events = events, .data.fd = sock};

    return epoll_ctl(links->poll, how, sock, &event) == 0;
}

static struct iris_link *find_link(const struct iris_links *links, int rank)
{
    for (int i = 0; i < links->count; i++) {
        if (links->all[i].rank == rank) {
            return &links->all[i];
        }
    }
    return NULL;
}

/* ---- The states of a link ---- */

/* The next try begins after a pause. */
static void end_try(struct iris_links *links, struct iris_link *link)
{
    if (link->dial.sock >= 0) {
        (void)watch_socket(links, link->dial.sock, EPOLL_CTL_DEL, 0);
        iris_i_fd_close(&link->dial.sock);
    }
    link->next_ns = iris_i_now_ns() + PAUSE_NS;
}

static int is_connector(const struct iris_links *links,
                        const struct iris_link *link)
{
    return link->rank < links->log->rank;
}

/* A host that was silent already has little time left, or the rest of its time
 * if the owner is patient. */
static void seek_way(struct iris_links *links, struct iris_link *link)
{
    int64_t now = iris_i_now_ns(), silent_ns = link->check.silent_ns;
    int64_t last_ns = now + LAST_NS,
            by_ns = (silent_ns != 0 ? silent_ns : now) +
                    IRIS_CUT_MS * IRIS_NS_PER_MS;

    link->is_sought = is_connector(links, link) ||
                      (link->has_come && !links->owner.is_patient);
    link->num_refused = 0;
    link->next_ns = is_connector(links, link) ? 0 : now + PROBE_NS;
    link->deadline_ns =
        by_ns < last_ns || (silent_ns != 0 && !links->owner.is_patient)
            ? last_ns
            : by_ns;
}

void iris_i_link_leave(struct iris_links *links, struct iris_link *link,
                       enum iris_link_state next)
{
    if (link->session.sock >= 0) {
        links->owner.left(links->owner.arg, link);
        /* A child of the process has it, too. */
        shutdown(link->session.sock, SHUT_RDWR);
        iris_i_fd_close(&link->session.sock);
    }
    atomic_fetch_add(&links->num_cut,
                     (next == IRIS_LINK_CUT) - (link->state == IRIS_LINK_CUT));
    link->state = next;
    if (next != IRIS_LINK_CUT) {
        end_try(links, link);
        link->is_sought = 0;
        iris_i_session_abandon(&link->session);
    }
}

static void cut_link(struct iris_links *links, struct iris_link *link,
                     const char *why)
{
    if (link->has_end) {
        iris_i_link_leave(links, link, IRIS_LINK_ENDED);
        return;
    }
    iris_i_info(links->log, "the connection to rank %d is cut: %s", link->rank,
                why);
    iris_i_link_leave(links, link, IRIS_LINK_CUT);
    link->cut_ns = iris_i_now_ns();
    seek_way(links, link);
}

static void lose_link(struct iris_links *links, struct iris_link *link,
                      enum iris_link_loss loss, const char *why)
{
    links->owner.lost(links->owner.arg, link, loss, why);
    if (link->state != IRIS_LINK_LOST) {
        iris_i_link_leave(links, link, IRIS_LINK_LOST);
    }
}

static void log_joined(const struct iris_links *links,
                       const struct iris_link *link, uint64_t resent)
{
    int64_t ns = iris_i_now_ns() - link->cut_ns;
    char text[128];

    snprintf(text, sizeof text,
             "the connection to rank %d is resumed after %.3f s; %llu bytes "
             "are sent again",
             link->rank, (double)ns / IRIS_NS_PER_S,
             (unsigned long long)resent);
    if (link->cut_ns == 0) {
        iris_i_debug(links->log, "connected to rank %d", link->rank);
    } else if (ns > SLOW_NS) {
        iris_i_warning(links->log, "%s", text);
    } else {
        iris_i_info(links->log, "%s", text);
    }
}

/* A connection with both sides' proof. The other side has received `theirs`
 * bytes. */
static void join_link(struct iris_links *links, struct iris_link *link,
                      int sock, uint64_t theirs)
{
    uint64_t high = link->session.high;

    end_try(links, link);
    link->is_sought = 0;
    if (!iris_i_session_resume(&link->session, sock, theirs)) {
        close(sock);
        lose_link(links, link, IRIS_LINK_NONSENSE,
                  "it has not received what was sent to it");
        return;
    }
    settle_stream(sock);
    link->check = (struct iris_stream_check){0};
    link->errno_value = 0;
    atomic_fetch_sub(&links->num_cut, 1);
    link->state = IRIS_LINK_JOINED;
    link->has_come = 1;
    log_joined(links, link, high - theirs);
    links->owner.joined(links->owner.arg, link);
}

/* ---- The acceptor ---- */

/* The reason to refuse these claims; NULL: none. */
static const char *find_objection(const struct iris_links *links,
                                  const struct iris_rank_claims *claims,
                                  const struct iris_link *link)
{
    if (claims->num_ranks != links->log->num_ranks || link == NULL) {
        return "is no rank of this job that is to come";
    }
    if (link->state == IRIS_LINK_ENDED || link->state == IRIS_LINK_LOST) {
        return "is cut off, since its connection has been given up";
    }
    return !is_connector(links, link) && claims->number < link->number
               ? "has a rank that has connected already"
               : NULL;
}

static const char *admit_link(void *arg, const struct iris_proof_claims *theirs,
                              struct iris_proof_claims *own_p)
{
    struct iris_rank_claims claims, own = {.rank = -1};
    struct iris_links *links = arg;
    struct iris_link *link;
    const char *why;

    if (theirs->bytes != sizeof claims) {
        return "is of another version of Iris";
    }
    memcpy(&claims, theirs->data, sizeof claims);
    link = find_link(links, claims.rank);
    why = find_objection(links, &claims, link);
    if (why != NULL) {
        return why;
    }
    if (!is_connector(links, link)) {
        link->number = claims.number + 1;
        if (link->state == IRIS_LINK_JOINED) {
            cut_link(links, link, "replaced by a new connection");
        }
    }
    own.received = link->session.received;
    own_p->bytes = sizeof own;
    memcpy(own_p->data, &own, sizeof own);
    return NULL;
}

/* A later try may have been admitted meanwhile. A side that accepts asks only. */
static void welcome_rank(struct iris_links *links,
                         const struct iris_gate_entry *entry)
{
    struct iris_rank_claims claims;
    struct iris_link *link;

    memcpy(&claims, entry->claims.data, sizeof claims);
    link = find_link(links, claims.rank);
    if (is_connector(links, link) || link->number != claims.number + 1 ||
        link->state != IRIS_LINK_CUT) {
        close(entry->sock);
        return;
    }
    join_link(links, link, entry->sock, claims.received);
}

/* Uses the reserved descriptor to tell a rank why it is refused. */
static void refuse_rank(struct iris_links *links)
{
    if (links->spare >= 0) {
        close(links->spare);
        iris_i_gate_turn_away(&links->gate);
        links->spare =
            iris_i_fd_socket(fcntl(links->gate.listener, F_DUPFD_CLOEXEC, 3));
    }
}

static void accept_ranks(struct iris_links *links)
{
    unsigned failed = links->gate.num_failed;
    struct iris_gate_entry entry;
    iris_status_t status;

    do {
        status = iris_i_gate_step(&links->gate, &entry);
        if (entry.sock >= 0) {
            welcome_rank(links, &entry);
        }
    } while (entry.sock >= 0);
    if (status == IRIS_ERR_LIMIT) {
        refuse_rank(links);
    }
    /* The first one only, since anybody can cause them. */
    if (failed == 0 && links->gate.num_failed != 0) {
        iris_i_warning(links->log,
                       "refused a connection of another node: the other "
                       "side %s",
                       links->gate.why);
    }
}

/* ---- The connector, and the side that asks ---- */

static void begin_try(struct iris_links *links, struct iris_link *link)
{
    int error = iris_i_dial_begin(&link->dial, links->kind, &link->address);

    link->number += is_connector(links, link);
    if (error != 0 || !watch_socket(links, link->dial.sock, EPOLL_CTL_ADD,
                                    EPOLLIN | EPOLLOUT)) {
        link->num_refused += error == ECONNREFUSED;
        end_try(links, link);
    }
}

static void fail_try(struct iris_links *links, struct iris_link *link)
{
    const struct iris_dial *dial = &link->dial;
    enum iris_link_loss loss =
        dial->proof.why == IRIS_PROOF_FULL ? IRIS_LINK_FULL : IRIS_LINK_REFUSED;
    char why[200];

    if (dial->error != 0) {
        link->num_refused += dial->error == ECONNREFUSED;
    } else if (links->owner.is_patient ||
               (link->has_come && loss == IRIS_LINK_FULL)) {
        iris_i_debug(links->log, "rank %d %s", link->rank,
                     iris_i_proof_reason(&dial->proof));
    } else {
        snprintf(why, sizeof why,
                 dial->proof.why == IRIS_PROOF_REFUSED
                     ? "it has refused rank %d's connection: rank %d %s"
                     : "the process at its address, to which rank %d connects, "
                       "is not rank %d: it %s",
                 links->log->rank,
                 dial->proof.why == IRIS_PROOF_REFUSED ? links->log->rank
                                                       : link->rank,
                 iris_i_proof_reason(&dial->proof));
        lose_link(links, link, loss, why);
        return;
    }
    end_try(links, link);
}

static void step_try(struct iris_links *links, struct iris_link *link)
{
    const struct iris_rank_claims own = {.rank = links->log->rank,
                                         .num_ranks = links->log->num_ranks,
                                         .host = iris_i_host_id(),
                                         .number = link->number,
                                         .received = link->session.received};
    int was_connected = link->dial.is_connected, sock = link->dial.sock;
    enum iris_proof_result result =
        iris_i_dial_step(&link->dial, &links->gate.secret, &own, sizeof own);
    struct iris_rank_claims theirs;

    if (result == IRIS_PROOF_PROVEN && !is_connector(links, link)) {
        end_try(links, link);
        link->num_refused = 0;
        link->next_ns = iris_i_now_ns() + PROBE_NS;
        link->deadline_ns = iris_i_deadline(IRIS_CUT_MS);
        return;
    }
    if (result == IRIS_PROOF_PROVEN &&
        iris_i_proof_claims(&link->dial.proof, &theirs, sizeof theirs)) {
        (void)watch_socket(links, sock, EPOLL_CTL_DEL, 0);
        link->dial.sock = -1;
        join_link(links, link, sock, theirs.received);
        return;
    }
    if (result != IRIS_PROOF_PENDING) {
        fail_try(links, link);
        return;
    }
    if (link->dial.is_connected && !was_connected) {
        link->num_refused = 0;
        (void)watch_socket(links, sock, EPOLL_CTL_MOD, EPOLLIN);
    }
    if (link->dial.is_connected &&
        iris_i_now_ns() - link->dial.since_ns > OPEN_NS) {
        link->deadline_ns = iris_i_deadline(IRIS_CUT_MS);
    }
}

static void call_rank(struct iris_links *links, struct iris_link *link)
{
    int64_t now = iris_i_now_ns();
    char why[128];

    if (link->dial.sock < 0 && now >= link->next_ns) {
        begin_try(links, link);
    }
    if (link->dial.sock >= 0) {
        step_try(links, link);
    }
    if (!link->is_sought) {
        return;
    }
    if (link->num_refused >= REFUSED_MOST && !links->owner.is_patient) {
        lose_link(links, link, IRIS_LINK_GONE, "nothing listens there");
    } else if (now >= link->deadline_ns) {
        snprintf(why, sizeof why,
                 "it accepts no connection since %.1f s; is there a route "
                 "between the hosts?",
                 IRIS_CUT_MS / 1e3);
        lose_link(links, link, IRIS_LINK_SILENT, why);
    }
}

void iris_i_links_turn(struct iris_links *links)
{
    accept_ranks(links);
    for (int i = 0; i < links->count; i++) {
        struct iris_link *link = &links->all[i];

        if (link->state == IRIS_LINK_JOINED &&
            !does_answer(&link->check, link->session.sock)) {
            link->errno_value = ETIMEDOUT;
            cut_link(links, link, "its host does not answer");
        }
        if (link->is_sought) {
            call_rank(links, link);
        }
    }
}

/* ---- Sending and receiving ---- */

int iris_i_link_send(struct iris_links *links, struct iris_link *link)
{
    int sent = link->state == IRIS_LINK_JOINED && link->errno_value == 0
                   ? iris_i_session_send(&link->session)
                   : 0;

    if (sent < 0) {
        link->errno_value = errno;
    }
    if (link->state == IRIS_LINK_JOINED && link->has_end &&
        link->session.sent == link->session.end) {
        iris_i_link_leave(links, link, IRIS_LINK_ENDED);
    }
    return sent != 0;
}

void iris_i_link_end(struct iris_links *links, struct iris_link *link)
{
    link->has_end = 1;
    if (!link->session.is_last && !iris_i_session_put_end(&link->session)) {
        iris_i_link_leave(links, link, IRIS_LINK_ENDED);
    }
    while (iris_i_link_send(links, link)) {
    }
}

/* A side that closes with unread data resets the connection, but its earlier
 * bytes may still be readable. */
int iris_i_link_receive(struct iris_links *links, struct iris_link *link)
{
    char text[64];
    int got;

    if (link->state != IRIS_LINK_JOINED) {
        return 0;
    }
    got = iris_i_session_receive(&link->session);
    if (got < 0 && errno == ECONNRESET) {
        got = iris_i_session_receive(&link->session);
    }
    if (got > 0 || (got == 0 && link->errno_value == 0)) {
        return got;
    }
    link->errno_value = got < 0 ? errno : link->errno_value;
    cut_link(links, link,
             link->errno_value == 0
                 ? "closed by the other side"
                 : strerror_r(link->errno_value, text, sizeof text));
    return -1;
}

/* ---- Opening and closing ---- */

static int make_links(struct iris_links *links,
                      const struct iris_links_params *params)
{
    const struct iris_hello *hellos = params->rendezvous->hellos;
    int num_ranks = params->log->num_ranks;

    links->all = calloc((size_t)num_ranks, sizeof *links->all);
    for (int rank = 0; links->all != NULL && rank < num_ranks; rank++) {
        const struct iris_address *address =
            (const struct iris_address *)(const void
                                              *)((const char *)&hellos[rank] +
                                                 params->address_at);
        struct iris_link *link = &links->all[links->count];

        if (!params->is_linked(links->owner.arg, rank)) {
            continue;
        }
        links->count++;
        link->rank = rank;
        link->dial.sock = -1;
        link->address = *address;
        if (!iris_i_session_open(&link->session, params->record_bytes) ||
            address->bytes > sizeof address->data) {
            return 0;
        }
        seek_way(links, link);
    }
    atomic_store(&links->num_cut, links->count);
    return links->all != NULL;
}

iris_status_t iris_i_links_open(const struct iris_links_params *params,
                                const struct iris_links_owner *owner,
                                struct iris_links *links)
{
    struct iris_secret key;
    iris_status_t status;

    *links = (struct iris_links){.log = params->log, .owner = *owner};
    links->kind = (enum iris_control_kind)params->rendezvous->hellos[0].control;
    links->gate.listener = params->listener;
    links->spare =
        iris_i_fd_socket(fcntl(params->listener, F_DUPFD_CLOEXEC, 3));
    links->poll = iris_i_fd_above_stdio(epoll_create1(EPOLL_CLOEXEC));
    if (links->spare < 0 || links->poll < 0) {
        status = iris_i_fail_fd(errno, "cannot watch connections");
    } else if (!make_links(links, params)) {
        status = iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                             "no memory for connections to other nodes");
    } else {
        iris_i_rendezvous_key(params->rendezvous, params->label, &key);
        status = iris_i_gate_open(&links->gate, params->listener, &key,
                                  links->count + STRANGERS);
    }
    links->gate.admit = admit_link;
    links->gate.arg = links;
    if (status == IRIS_OK &&
        !watch_socket(links, links->gate.poll, EPOLL_CTL_ADD, EPOLLIN)) {
        status = iris_i_fail_fd(errno, "cannot watch connections");
    }
    if (status != IRIS_OK) {
        iris_i_links_close(links);
    }
    return status;
}

void iris_i_links_close(struct iris_links *links)
{
    if (links->log == NULL) {
        return;
    }
    for (int i = 0; i < links->count; i++) {
        end_try(links, &links->all[i]);
        iris_i_fd_close(&links->all[i].session.sock);
        iris_i_session_close(&links->all[i].session);
    }
    iris_i_gate_close(&links->gate);
    iris_i_fd_close(&links->gate.listener);
    iris_i_fd_close(&links->spare);
    iris_i_fd_close(&links->poll);
    free(links->all);
    *links = (struct iris_links){.log = NULL};
}
