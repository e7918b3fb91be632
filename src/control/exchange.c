/* SPDX-License-Identifier: MIT
 *
 * The exchange of handles: every rank sends all of its offers to every other
 * process, and takes theirs in any order of arrival.
 */
#include "config.h"

#include "control/control.h"

#include "base/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* No event tells that a peer's queue has space again. */
#define FULL_MS 1

/* The most messages taken in a row, from any sender, before peers are
 * checked. */
#define MOST_RECEIVED 256

/* A process that ends closes its socket before its end can be seen. This is the
 * time allowed in between. */
#define ENDING_NS 100000000LL

struct peer {
    int64_t ending;  /* time when its socket was first missing; 0: it has one */
    size_t sent;     /* number of offers, in this exchange */
    size_t received; /* number of its offers */
};

struct message {
    int32_t rank;   /* the offering rank; first member, as ops.receive needs */
    int32_t status; /* status of the rank; not OK: there is no offer */
    uint64_t seq;   /* number of the preceding agreement */
    uint64_t index; /* index of the offer */
    struct iris_offer offer;
};

/* An exchange in progress. */
struct state {
    const struct iris_exchange *exchange;
    struct iris_control *control;
    struct peer *peers;
    int moved;            /* messages in the last turn */
    int full;             /* a peer's queue has no space for the remaining
                           * messages */
    iris_status_t broken; /* no message can arrive any more */
    iris_status_t own;    /* the status that peers are sent */
    iris_status_t first;  /* to go wrong */
    char text[IRIS_MESSAGE_BYTES];
};

static void note_failure(struct state *x, iris_status_t status)
{
    if (status != IRIS_OK && x->first == IRIS_OK) {
        x->first = status;
        snprintf(x->text, sizeof x->text, "%s", iris_last_error());
    }
}

static int takes_part(const struct state *x, int rank)
{
    const struct iris_exchange *exchange = x->exchange;

    return iris_i_control_is_remote(x->control, rank) &&
           (exchange->reachable == NULL || exchange->reachable[rank]);
}

/* ---- Sending ---- */

static iris_status_t fail_send(const struct state *x, int rank, int errno_value)
{
    char name[IRIS_RANK_NAME_BYTES];

    iris_i_control_name(x->control, rank, name);
    return iris_i_fail_errno(x->control->log, IRIS_ERR_SYSTEM, errno_value,
                             "cannot offer new memory to %s", name);
}

/* A peer to which nothing can ever be sent. Notes the reason, and removes the
 * peer from the remaining work, for the sake of the others. */
static void give_up_rank(struct state *x, int rank, int errno_value)
{
    struct peer *peer = &x->peers[rank];
    char name[IRIS_RANK_NAME_BYTES];

    peer->sent = x->exchange->num_offers;
    if (peer->ending == 0) {
        note_failure(x, fail_send(x, rank, errno_value));
        return;
    }
    peer->received = x->exchange->num_offers;
    note_failure(x, iris_i_peers_check(x->control, rank));
    iris_i_control_name(x->control, rank, name);
    note_failure(
        x, iris_i_fail_errno(
               x->control->log, IRIS_ERR_PEER_LOST, errno_value,
               "%s has closed the socket by which it is offered "
               "new memory; the job cannot go on: finalize and restart it",
               name));
}

/* Handles the failure to send a message. */
static void judge_rank(struct state *x, int rank, int errno_value)
{
    struct peer *peer = &x->peers[rank];

    switch (errno_value) {
    case EAGAIN: /* its queue is full */
    case EINTR:
    case ENOBUFS:
    case ENOMEM:
    case ETOOMANYREFS: /* too many descriptors are in transit */
        break;
    case ECONNREFUSED:
    case ECONNRESET:
    case ENOTCONN:
    case EPIPE:
        if (peer->ending == 0) {
            peer->ending = iris_i_now_ns();
        } else if (iris_i_now_ns() - peer->ending > ENDING_NS) {
            give_up_rank(x, rank, errno_value);
        }
        break;
    default: /* perhaps the offer's descriptor: the next message has no descriptor */
        if (x->own != IRIS_OK) {
            give_up_rank(x, rank, errno_value);
            break;
        }
        x->own = IRIS_ERR_SYSTEM;
        note_failure(x, fail_send(x, rank, errno_value));
    }
}

/* Sends a peer as much as it takes; returns the number of offers sent. */
static int send_offers(struct state *x, int rank)
{
    struct peer *peer = &x->peers[rank];
    int count = 0;

    while (peer->sent < x->exchange->num_offers) {
        struct message message = {.rank = x->control->rank,
                                  .status = x->own,
                                  .seq = x->exchange->seq,
                                  .index = peer->sent,
                                  .offer = x->exchange->offers[peer->sent]};
        int ret;

        if (x->own != IRIS_OK) {
            message.offer.handle = (struct iris_heap_handle){.fd = -1};
        }
        ret = iris_i_control_send(x->control, rank, &message, sizeof message,
                                  message.offer.handle.fd);
        if (ret != 0) {
            judge_rank(x, rank, ret);
            break;
        }
        peer->sent++;
        peer->ending = 0;
        count++;
    }
    return count;
}

/* ---- Receiving ---- */

static iris_status_t accept_offer(struct state *x,
                                  const struct message *message)
{
    const struct iris_exchange *exchange = x->exchange;
    struct peer *peer = &x->peers[message->rank];
    const struct iris_offer *own = &exchange->offers[peer->received];

    if (message->index != peer->received ||
        message->offer.offset != own->offset) {
        peer->received = exchange->num_offers;
        return iris_i_fail(x->control->log, IRIS_ERR_MISMATCH,
                           "rank %d has new memory at heap offset %zu, this "
                           "rank at %zu: their heaps differ",
                           message->rank, message->offer.offset, own->offset);
    }
    peer->received++;
    /* The next agreement reports why a peer has no offer. */
    return x->first == IRIS_OK && message->status == IRIS_OK
               ? exchange->take(exchange->arg, message->rank, &message->offer)
               : IRIS_OK;
}

/* Takes one message, if one arrives within the time. An earlier failed exchange
 * may have left some. */
static iris_status_t receive_offers(struct state *x, int timeout_ms,
                                    int *taken_p)
{
    struct message message;
    struct iris_sender sender;
    int expects_fd;
    iris_status_t status = iris_i_control_receive(
        x->control, &message, sizeof message, timeout_ms, &sender);

    *taken_p = sender.rank >= 0;
    if (status == IRIS_ERR_LIMIT) {
        note_failure(x, status);
        status = IRIS_OK;
    }
    if (sender.rank < 0) {
        return status;
    }
    if (message.seq == x->exchange->seq &&
        x->peers[sender.rank].received < x->exchange->num_offers) {
        expects_fd = message.offer.handle.fd >= 0;
        message.offer.handle.fd = sender.fd;
        if (expects_fd && sender.fd < 0) {
            note_failure(
                x, iris_i_fail_fd(EMFILE, "cannot take a peer's descriptor"));
        }
        note_failure(x, accept_offer(x, &message));
    }
    iris_i_fd_close(&sender.fd);
    return status;
}

/* ---- The exchange ---- */

/* The first rank with which the exchange is not complete in both directions;
 * -1: all are complete. */
static int first_open(const struct state *x)
{
    for (int rank = 0; rank < x->control->num_ranks; rank++) {
        const struct peer *peer = &x->peers[rank];

        if (takes_part(x, rank) && (peer->sent < x->exchange->num_offers ||
                                    peer->received < x->exchange->num_offers)) {
            return rank;
        }
    }
    return -1;
}

/* Sends and receives as much as possible now. */
static void make_progress(struct state *x)
{
    int taken = 1;

    x->moved = x->full = 0;
    for (int rank = 0; rank < x->control->num_ranks; rank++) {
        if (takes_part(x, rank)) {
            x->moved += send_offers(x, rank);
            x->full |= x->peers[rank].sent < x->exchange->num_offers;
        }
    }
    for (int i = 0; x->broken == IRIS_OK && taken && i < MOST_RECEIVED; i++) {
        x->broken = receive_offers(x, 0, &taken);
        x->moved += taken;
    }
}

static void await_message(void *arg, int64_t ns)
{
    struct state *x = arg;
    int64_t ms = ns / IRIS_NS_PER_MS;
    int taken;

    if (x->moved == 0 && x->broken == IRIS_OK) {
        x->broken = receive_offers(
            x, (int)(x->full && ms > FULL_MS ? FULL_MS : ms), &taken);
    }
}

static void describe_owing(void *arg, char *text, size_t bytes)
{
    snprintf(text, bytes, "rank %d to share its own", first_open(arg));
}

static iris_status_t fail_late_offers(const struct iris_wait *wait)
{
    const struct state *x = wait->arg;

    return iris_i_fail(x->control->log, IRIS_ERR_TIMEOUT,
                       "rank %d has not shared its new memory within %lld ms "
                       "(IRIS_TIMEOUT_MS)",
                       first_open(x), (long long)x->control->timeout_ms);
}

static void run_exchange(struct state *x)
{
    static const struct iris_wait_type for_offers = {.pace = IRIS_PACE_MESSAGE,
                                                     .describe = describe_owing,
                                                     .late = fail_late_offers,
                                                     .sleep = await_message};
    struct iris_waiter waiter = iris_i_peers_waiter(x->control);
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_offers, &waiter, "new memory: this rank", x);
    while (status == IRIS_OK && first_open(x) >= 0) {
        make_progress(x);
        status = x->broken;
        if (status == IRIS_OK && first_open(x) >= 0) {
            status = iris_i_wait_tick(&wait);
        }
    }
    iris_i_wait_end(&wait, status);
    note_failure(x, status);
}

iris_status_t iris_i_exchange(const struct iris_exchange *exchange,
                              iris_status_t status)
{
    struct peer peers[exchange->control->num_ranks];
    struct state x = {
        .exchange = exchange, .control = exchange->control, .own = status};

    note_failure(&x, status);
    memset(peers, 0, sizeof peers);
    x.peers = peers;
    run_exchange(&x);
    return x.first == IRIS_OK ? IRIS_OK : iris_i_fail_again(x.first, x.text);
}
