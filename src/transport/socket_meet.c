/* SPDX-License-Identifier: MIT
 *
 * How ranks of different nodes connect, at the start and after a connection has
 * ended. Each rank listens as long as its context is open. The rank with the
 * higher number connects, and both prove that they know the job's key
 * (base/proof.c). Their claims are:
 *
 *   connector  its number, the number of ranks, the number of this try, and the
 *              number of bytes that it has received
 *   acceptor   the number of bytes that it has received
 *
 * Before a side states its number of bytes it ends its old connection, so that
 * the number stays right. A try with a lower number than an earlier one is
 * refused: its statement is out of date.
 *
 * A side of which the other one learns nothing may be stopped, out of reach, or
 * gone:
 * - Gone: the control plane says so.
 * - Out of reach: nothing accepts a connection for IRIS_CUT_MS. The connector
 *   gives up. The acceptor hears of that by the control plane.
 * - Stopped: its system accepts connections, but it proves nothing. The
 *   connector waits, since the calls of both sides have their own deadlines.
 *
 * All sockets are served at once. Strangers may hold ACCEPTED_MOST connections
 * for PROOF_MS each. One more closes the oldest; a rank tries again.
 */
#include "config.h"

#include "transport/internal.h"

#include "base/base.h"
#include "base/link.h"
#include "control/control.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTED_MOST 64
#define PROOF_MS 2000

#define PAUSE_NS (20 * IRIS_NS_PER_MS)

/* A connection that is open for this time without a proof shows that the other
 * host answers. */
#define OPEN_NS (IRIS_NS_PER_S)

struct connector_claims {
    uint32_t rank;
    uint32_t num_ranks;
    uint64_t number;
    uint64_t received;
};

struct acceptor_claims {
    uint64_t received;
};

/* An accepted connection. */
struct accepted {
    int sock; /* -1: unused */
    int rank; /* after its proof */
    uint64_t received;
    int64_t since_ns;
    struct iris_proof proof;
};

/* This rank's way to a rank with a lower number. */
struct caller {
    int is_wanted;
    int sock; /* -1: none */
    int is_connected;
    uint64_t number;     /* the last try's number */
    int64_t since_ns;    /* begin of the try, or of the proof */
    int64_t next_ns;     /* time of the next try */
    int64_t deadline_ns; /* the host has to answer until then */
    struct iris_address address;
    struct iris_proof proof;
};

struct iris_meet {
    const struct iris_log *log;
    struct iris_meet_owner owner;
    enum iris_control_kind kind;
    struct iris_secret key;
    int (*is_far)(void *arg, int rank);
    void *is_far_arg;
    int listener;
    int watch;
    void *mark;
    int num_wanted;
    int num_accepted;
    uint64_t *numbers;      /* by rank: the last try that was accepted, + 1 */
    struct caller *callers; /* for each rank with a lower number */
    struct accepted accepted[ACCEPTED_MOST];
};

static int watch_socket(struct iris_meet *meet, int sock, int how,
                        uint32_t events)
{
    struct epoll_event event = {.events = events, .data.ptr = meet->mark};

    return epoll_ctl(meet->watch, how, sock, &event) == 0;
}

static void close_socket(struct iris_meet *meet, int *sock)
{
    if (*sock >= 0) {
        (void)epoll_ctl(meet->watch, EPOLL_CTL_DEL, *sock, NULL);
        close(*sock);
        *sock = -1;
    }
}

/* Passes on a connection with both sides' proof. */
static void join(struct iris_meet *meet, int rank, int sock, uint64_t theirs)
{
    (void)epoll_ctl(meet->watch, EPOLL_CTL_DEL, sock, NULL);
    iris_i_stream_settle(sock);
    meet->owner.joined(meet->owner.arg, rank, sock, theirs);
}

/* ---- The acceptor ---- */

static void drop_accepted(struct iris_meet *meet, struct accepted *a)
{
    close_socket(meet, &a->sock);
    meet->num_accepted--;
}

static struct accepted *find_place(struct iris_meet *meet)
{
    struct accepted *oldest = &meet->accepted[0];

    for (int i = 0; i < ACCEPTED_MOST; i++) {
        struct accepted *a = &meet->accepted[i];

        if (a->sock < 0) {
            return a;
        }
        oldest = a->since_ns < oldest->since_ns ? a : oldest;
    }
    drop_accepted(meet, oldest);
    return oldest;
}

static void accept_all(struct iris_meet *meet)
{
    for (int i = 0; i < ACCEPTED_MOST; i++) {
        int sock = iris_i_fd_socket(
            accept4(meet->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK));
        struct accepted *a;

        if (sock < 0) {
            return;
        }
        a = find_place(meet);
        a->sock = sock;
        a->rank = -1;
        a->since_ns = iris_i_now_ns();
        meet->num_accepted++;
        if (iris_i_proof_begin(&a->proof, IRIS_PROOF_ACCEPTOR, sock, &meet->key,
                               NULL, 0, PROOF_MS) != IRIS_OK ||
            !watch_socket(meet, sock, EPOLL_CTL_ADD, EPOLLIN)) {
            drop_accepted(meet, a);
        }
    }
}

/* The connector has proven its claims. 0: they are refused. */
static int take_claims(struct iris_meet *meet, struct accepted *a)
{
    struct acceptor_claims own = {0};
    struct connector_claims claims;
    int rank;

    if (!iris_i_proof_claims(&a->proof, &claims, sizeof claims) ||
        claims.num_ranks != (uint32_t)meet->log->num_ranks ||
        claims.rank >= claims.num_ranks) {
        return 0;
    }
    rank = (int)claims.rank;
    if (rank <= meet->log->rank || !meet->is_far(meet->is_far_arg, rank) ||
        claims.number < meet->numbers[rank]) {
        return 0;
    }
    for (int i = 0; i < ACCEPTED_MOST; i++) { /* an earlier try */
        struct accepted *other = &meet->accepted[i];

        if (other != a && other->sock >= 0 && other->rank == rank) {
            drop_accepted(meet, other);
        }
    }
    meet->numbers[rank] = claims.number + 1;
    a->rank = rank;
    a->received = claims.received;
    own.received = meet->owner.received(meet->owner.arg, rank);
    iris_i_proof_answer(&a->proof, &own, sizeof own);
    return 1;
}

static void serve_accepted(struct iris_meet *meet, struct accepted *a)
{
    enum iris_proof_result result = iris_i_proof_step(&a->proof);
    int sock = a->sock;

    if (result == IRIS_PROOF_CLAIMED) {
        result = take_claims(meet, a) ? iris_i_proof_step(&a->proof)
                                      : IRIS_PROOF_FAILED;
    }
    if (result == IRIS_PROOF_PROVEN) {
        a->sock = -1;
        meet->num_accepted--;
        join(meet, a->rank, sock, a->received);
    } else if (result != IRIS_PROOF_PENDING) {
        drop_accepted(meet, a);
    }
}

/* ---- The connector ---- */

/* The next try begins after a pause. */
static void end_try(struct iris_meet *meet, struct caller *caller)
{
    close_socket(meet, &caller->sock);
    caller->next_ns = iris_i_now_ns() + PAUSE_NS;
}

static void begin_try(struct iris_meet *meet, struct caller *caller)
{
    int good;

    caller->sock = iris_i_stream_socket(meet->kind, &caller->address);
    caller->is_connected = 0;
    caller->number++;
    caller->since_ns = iris_i_now_ns();
    if (caller->sock < 0) {
        end_try(meet, caller);
        return;
    }
    (void)fcntl(caller->sock, F_SETFL, O_NONBLOCK);
    good = connect(caller->sock, (const struct sockaddr *)caller->address.data,
                   caller->address.bytes) == 0 ||
           errno == EINPROGRESS || errno == EINTR;
    if (!good ||
        !watch_socket(meet, caller->sock, EPOLL_CTL_ADD, EPOLLIN | EPOLLOUT)) {
        end_try(meet, caller);
    }
}

/* Begins the proof once the connection is there. */
static void check_connected(struct iris_meet *meet, int rank)
{
    struct caller *caller = &meet->callers[rank];
    struct connector_claims own = {.rank = (uint32_t)meet->log->rank,
                                   .num_ranks = (uint32_t)meet->log->num_ranks,
                                   .number = caller->number};
    struct pollfd polled = {.fd = caller->sock, .events = POLLOUT};
    int error = 0;
    socklen_t bytes = sizeof error;

    if (poll(&polled, 1, 0) <= 0) {
        if (iris_i_now_ns() - caller->since_ns >
            IRIS_CONNECT_MS * IRIS_NS_PER_MS) {
            end_try(meet, caller);
        }
        return;
    }
    own.received = meet->owner.received(meet->owner.arg, rank);
    if (getsockopt(caller->sock, SOL_SOCKET, SO_ERROR, &error, &bytes) != 0 ||
        error != 0 ||
        iris_i_proof_begin(&caller->proof, IRIS_PROOF_CONNECTOR, caller->sock,
                           &meet->key, &own, sizeof own, 0) != IRIS_OK ||
        !watch_socket(meet, caller->sock, EPOLL_CTL_MOD, EPOLLIN)) {
        end_try(meet, caller);
        return;
    }
    caller->is_connected = 1;
    caller->since_ns = iris_i_now_ns();
}

static void prove(struct iris_meet *meet, int rank)
{
    struct caller *caller = &meet->callers[rank];
    enum iris_proof_result result = iris_i_proof_step(&caller->proof);
    struct acceptor_claims claims;
    int sock = caller->sock;
    int64_t now;

    if (result == IRIS_PROOF_PROVEN &&
        iris_i_proof_claims(&caller->proof, &claims, sizeof claims)) {
        caller->sock = -1;
        iris_i_meet_forget(meet, rank);
        join(meet, rank, sock, claims.received);
        return;
    }
    if (result != IRIS_PROOF_PENDING) {
        iris_i_debug(meet->log, "rank %d %s", rank,
                     iris_i_proof_reason(&caller->proof));
        end_try(meet, caller);
        return;
    }
    now = iris_i_now_ns();
    if (now - caller->since_ns > OPEN_NS) {
        caller->deadline_ns = now + IRIS_CUT_MS * IRIS_NS_PER_MS;
    }
}

static void call(struct iris_meet *meet, int rank)
{
    struct caller *caller = &meet->callers[rank];
    int64_t now = iris_i_now_ns();
    char why[96];

    if (caller->sock < 0 && now >= caller->next_ns) {
        begin_try(meet, caller);
    }
    if (caller->sock >= 0 && !caller->is_connected) {
        check_connected(meet, rank);
    }
    if (caller->sock >= 0 && caller->is_connected) {
        prove(meet, rank);
    }
    if (caller->is_wanted && now >= caller->deadline_ns) {
        iris_i_meet_forget(meet, rank);
        snprintf(why, sizeof why,
                 "it accepts no connection since %.1f s; is there a route "
                 "between the hosts?",
                 IRIS_CUT_MS / 1e3);
        meet->owner.failed(meet->owner.arg, rank, why);
    }
}

void iris_i_meet_seek(struct iris_meet *meet, int rank)
{
    struct caller *caller = &meet->callers[rank];

    if (rank < meet->log->rank && !caller->is_wanted) {
        caller->is_wanted = 1;
        caller->next_ns = 0;
        caller->deadline_ns = iris_i_deadline(IRIS_CUT_MS);
        meet->num_wanted++;
    }
}

void iris_i_meet_forget(struct iris_meet *meet, int rank)
{
    if (rank < meet->log->rank && meet->callers[rank].is_wanted) {
        close_socket(meet, &meet->callers[rank].sock);
        meet->callers[rank].is_wanted = 0;
        meet->num_wanted--;
    }
}

/* ---- Both ---- */

int iris_i_meet_turn(struct iris_meet *meet)
{
    accept_all(meet);
    for (int i = 0; i < ACCEPTED_MOST && meet->num_accepted != 0; i++) {
        if (meet->accepted[i].sock >= 0) {
            serve_accepted(meet, &meet->accepted[i]);
        }
    }
    for (int rank = 0; rank < meet->log->rank && meet->num_wanted != 0;
         rank++) {
        if (meet->callers[rank].is_wanted) {
            call(meet, rank);
        }
    }
    return meet->num_wanted != 0 || meet->num_accepted != 0;
}

iris_status_t iris_i_meet_open(const struct iris_channel_params *params,
                               const struct iris_meet_owner *owner, int watch,
                               void *mark, struct iris_meet **meet_p)
{
    const struct iris_hello *hellos = params->rendezvous->hellos;
    size_t num_ranks = (size_t)params->log->num_ranks;
    struct iris_meet *meet = calloc(1, sizeof *meet);
    int good = meet != NULL;

    if (!good) {
        close(params->listener);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory");
    }
    meet->log = params->log;
    meet->owner = *owner;
    meet->kind = (enum iris_control_kind)hellos[0].control;
    meet->is_far = params->is_far;
    meet->is_far_arg = params->arg;
    meet->listener = params->listener;
    meet->watch = watch;
    meet->mark = mark;
    iris_i_rendezvous_key(params->rendezvous, "transport", &meet->key);
    meet->numbers = calloc(num_ranks, sizeof *meet->numbers);
    meet->callers = calloc(num_ranks, sizeof *meet->callers);
    good = meet->numbers != NULL && meet->callers != NULL &&
           watch_socket(meet, meet->listener, EPOLL_CTL_ADD, EPOLLIN);
    for (int i = 0; i < ACCEPTED_MOST; i++) {
        meet->accepted[i].sock = -1;
    }
    for (size_t rank = 0; good && rank < num_ranks; rank++) {
        meet->callers[rank].sock = -1;
        meet->callers[rank].address = hellos[rank].far_address;
        good = hellos[rank].far_address.bytes <=
               sizeof hellos[rank].far_address.data;
    }
    if (!good) {
        iris_i_meet_close(meet);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for connections to other nodes");
    }
    *meet_p = meet;
    return IRIS_OK;
}

void iris_i_meet_close(struct iris_meet *meet)
{
    if (meet == NULL) {
        return;
    }
    for (int i = 0; i < ACCEPTED_MOST; i++) {
        close_socket(meet, &meet->accepted[i].sock);
    }
    for (int rank = 0; meet->callers != NULL && rank < meet->log->num_ranks;
         rank++) {
        if (rank < meet->log->rank) {
            close_socket(meet, &meet->callers[rank].sock);
        }
    }
    close_socket(meet, &meet->listener);
    free(meet->numbers);
    free(meet->callers);
    free(meet);
}
