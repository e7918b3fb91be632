/* SPDX-License-Identifier: MIT
 *
 * The channel over MPI. Messages to a rank are collected in packets. A put goes
 * into the window only if the rank has completed all earlier messages. A
 * message after such puts is sent after a flush.
 */
#include "config.h"

#include "transport/internal.h"

#include "base/base.h"

#if HAVE_MPI

#include <iris/device/watch/op.h>

#include "control/control.h"
#include "heap/heap.h"
#include "transport/mpi_internal.h"

#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Number of packets in flight to a rank from which requests to it wait. */
#define FULL_PACKETS 16

/* Number of receives that are always posted. MPI matches them in this order. */
#define RECEIVES 8

/* MPI has no descriptor to wait for. An idle proxy polls after a pause, which
 * doubles up to this value. */
#define NAP_NS_MIN (50 * IRIS_NS_PER_US)
#define NAP_NS_MAX (800 * IRIS_NS_PER_US)

struct mpi_channel {
    struct iris_channel base;
    const struct iris_log *log;
    struct iris_control *control;
    MPI_Comm comm;
    struct iris_mpi_window *window; /* NULL: everything goes by messages */
    struct iris_mpi_link *links;    /* for each rank */
    struct iris_mpi_packet *unused;
    struct iris_mpi_packet *receives[RECEIVES];
    unsigned next;  /* the receive that completes next */
    int64_t nap_ns; /* the next pause */
};

static struct mpi_channel *mpi_of(struct iris_channel *channel)
{
    return (struct mpi_channel *)channel;
}

/* ---- Sending ---- */

/* 1: the block went into the window. */
static int put_message(struct mpi_channel *m, int rank,
                       const struct iris_far_message *message, const void *data)
{
    return m->window != NULL && message->op == IRIS_OP_PUT &&
           !message->answers && iris_i_mpi_link_is_quiet(&m->links[rank]) &&
           iris_i_mpi_window_put(m->window, rank, message->offset, data,
                                 message->data);
}

/* Whether a fence needs only a flush: the rank has no unfinished messages. */
static int is_flush(const struct mpi_channel *m, int rank,
                    const struct iris_far_message *message)
{
    return m->window != NULL && message->op == IRIS_OP_FENCE &&
           !message->answers && iris_i_mpi_link_is_quiet(&m->links[rank]);
}

/* No message may be missing in silence. */
static void report_lost(struct mpi_channel *m, int rank)
{
    struct iris_mpi_link *link = &m->links[rank];

    if (link->is_lost && !link->is_told && m->base.lost != NULL) {
        link->is_told = 1;
        m->base.lost(m->base.arg, rank,
                     link->why != NULL ? link->why
                                       : "a call of MPI has failed");
    }
}

static void lose_link(struct mpi_channel *m, int rank, const char *why)
{
    m->links[rank].is_lost = 1;
    m->links[rank].why = why;
    report_lost(m, rank);
}

static int mpi_send(struct iris_channel *channel, int rank,
                    const struct iris_far_message *message, const void *data,
                    int stays)
{
    const struct iris_far_message flushed = {.op = IRIS_OP_FENCE, .answers = 1};
    struct mpi_channel *m = mpi_of(channel);
    struct iris_mpi_link *link = &m->links[rank];
    int is_answered = 0;

    (void)stays;
    iris_i_mpi_enter();
    if (!iris_i_mpi_is_up()) {
        link->is_lost = 1;
        link->why = "MPI was finalized before this context";
    }
    if (!link->is_lost && !put_message(m, rank, message, data)) {
        if (m->window != NULL && !iris_i_mpi_window_flush(m->window, rank)) {
            link->is_lost = 1;
        }
        is_answered = !link->is_lost && is_flush(m, rank, message);
        if (!is_answered) {
            iris_i_mpi_link_append(link, message, data);
        }
    }
    iris_i_mpi_leave();
    report_lost(m, rank);
    if (is_answered) {
        m->base.taken(m->base.arg, rank, &flushed, NULL);
    }
    return 0;
}

/* send() leaves no data in place. */
static void mpi_recall(struct iris_channel *channel, int rank)
{
    (void)channel, (void)rank;
}

static int mpi_is_full(struct iris_channel *channel, int rank)
{
    return mpi_of(channel)->links[rank].num_sent >= FULL_PACKETS;
}

/* ---- Receiving ---- */

static int receive_into(struct mpi_channel *m, struct iris_mpi_packet *packet)
{
    return MPI_Irecv(packet->data, (int)IRIS_MPI_PACKET_BYTES, MPI_BYTE,
                     MPI_ANY_SOURCE, 0, m->comm,
                     &packet->request) == MPI_SUCCESS;
}

static void give_message(struct mpi_channel *m, int rank,
                         const unsigned char *data, size_t bytes)
{
    size_t at = 0;

    while (bytes - at >= sizeof(struct iris_far_message) &&
           !m->links[rank].is_lost) {
        struct iris_far_message message;

        memcpy(&message, data + at, sizeof message);
        at += sizeof message;
        if (message.data > bytes - at || message.data > IRIS_RING_BYTES) {
            lose_link(m, rank, "it sends data that is not a message");
            return;
        }
        m->links[rank].answered += message.answers != 0;
        m->base.taken(m->base.arg, rank, &message, data + at);
        at += message.data;
    }
    if (at != bytes && !m->links[rank].is_lost) {
        lose_link(m, rank, "it sends data that is not a message");
    }
}

/* Nobody knows whose message it would have been. */
static void lose_all(struct mpi_channel *m)
{
    for (int rank = 0; rank < m->log->num_ranks; rank++) {
        if (rank != m->log->rank && !m->links[rank].is_lost) {
            lose_link(m, rank, "MPI has failed to receive");
        }
    }
}

/* The next packet; NULL: it has not arrived. */
static struct iris_mpi_packet *receive_message(struct mpi_channel *m,
                                               int *rank_p)
{
    struct iris_mpi_packet *packet = m->receives[m->next];
    int done = 0, bytes = 0, good = 1;
    MPI_Status status;

    iris_i_mpi_enter();
    if (iris_i_mpi_is_up()) {
        good = packet->request != MPI_REQUEST_NULL &&
               MPI_Test(&packet->request, &done, &status) == MPI_SUCCESS;
    }
    if (!good || !done) {
        packet = NULL;
    } else {
        MPI_Get_count(&status, MPI_BYTE, &bytes);
        packet->bytes = (size_t)bytes;
        *rank_p = status.MPI_SOURCE;
        if (m->window != NULL) {
            iris_i_mpi_window_see(m->window);
        }
    }
    iris_i_mpi_leave();
    if (!good) {
        lose_all(m);
    }
    return packet;
}

static void receive_again(struct mpi_channel *m)
{
    int good = 1;

    iris_i_mpi_enter();
    if (iris_i_mpi_is_up()) {
        good = receive_into(m, m->receives[m->next]);
    }
    iris_i_mpi_leave();
    if (!good) {
        lose_all(m);
    }
    m->next = (m->next + 1) % RECEIVES;
}

static int send_all(struct mpi_channel *m)
{
    int count = 0;

    iris_i_mpi_enter();
    for (int rank = 0; rank < m->log->num_ranks && iris_i_mpi_is_up(); rank++) {
        count += iris_i_mpi_link_send(&m->links[rank]);
        count += iris_i_mpi_link_reap(&m->links[rank]);
    }
    iris_i_mpi_leave();
    for (int rank = 0; rank < m->log->num_ranks; rank++) {
        report_lost(m, rank);
    }
    return count;
}

static int mpi_turn(struct iris_channel *channel)
{
    struct mpi_channel *m = mpi_of(channel);
    int count = send_all(m), got = 0, rank;
    struct iris_mpi_packet *packet;

    while (got < RECEIVES && (packet = receive_message(m, &rank)) != NULL) {
        give_message(m, rank, packet->data, packet->bytes);
        receive_again(m);
        got++;
    }
    count += got + (got != 0 ? send_all(m) : 0);
    m->nap_ns = count != 0 ? NAP_NS_MIN : m->nap_ns;
    return count;
}

static void mpi_wait(struct iris_channel *channel, int timeout_ms)
{
    struct mpi_channel *m = mpi_of(channel);

    (void)timeout_ms;
    (void)iris_i_bell_wait(channel->bell, m->nap_ns);
    m->nap_ns *= m->nap_ns < NAP_NS_MAX ? 2 : 1;
}

/* ---- Opening and closing ---- */

static void free_all(struct mpi_channel *m)
{
    for (int i = 0; i < RECEIVES; i++) {
        free(m->receives[i]);
    }
    for (int i = 0; m->links != NULL && i < m->log->num_ranks; i++) {
        free(m->links[i].open);
    }
    iris_i_mpi_packets_free(m->unused);
    free(m->links);
    if (m->base.bell >= 0) {
        close(m->base.bell);
    }
    free(m);
}

static void describe_close(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "all ranks to close their windows of MPI");
}

static iris_status_t late_close(const struct iris_wait *wait)
{
    (void)wait;
    return IRIS_ERR_TIMEOUT;
}

/* Waits until all ranks are here, as long as the end of the context may take;
 * 0: some are not. */
static int all_close(struct mpi_channel *m)
{
    static const struct iris_wait_type to_close = {
        .pace = IRIS_PACE_MPI, .describe = describe_close, .late = late_close};
    const struct iris_waiter waiter = iris_i_peers_waiter(m->control);
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;
    MPI_Request request;
    int done = 0;

    if (MPI_Ibarrier(m->comm, &request) != MPI_SUCCESS) {
        return 0;
    }
    iris_i_wait_begin(&wait, &to_close, &waiter, "iris_finalize", NULL);
    while (status == IRIS_OK &&
           MPI_Test(&request, &done, MPI_STATUS_IGNORE) == MPI_SUCCESS &&
           !done) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    return done;
}

/* After a death, memory that MPI may still access is not freed. */
static void mpi_close(struct iris_channel *channel)
{
    struct mpi_channel *m = mpi_of(channel);
    int is_clean;

    iris_i_mpi_enter();
    is_clean = iris_i_mpi_is_up();
    for (int rank = 0; is_clean && rank < m->log->num_ranks; rank++) {
        (void)iris_i_mpi_link_reap(&m->links[rank]);
        is_clean = !m->links[rank].is_lost && m->links[rank].sent == NULL;
    }
    if (is_clean && all_close(m)) {
        for (int i = 0; i < RECEIVES; i++) {
            MPI_Cancel(&m->receives[i]->request);
            MPI_Wait(&m->receives[i]->request, MPI_STATUS_IGNORE);
        }
        iris_i_mpi_window_close(m->window);
        MPI_Comm_free(&m->comm);
        free_all(m);
    } else {
        iris_i_debug(m->log, "MPI's messages are left as they are");
    }
    iris_i_mpi_leave();
}

static const struct iris_channel_ops ops = {
    .send = mpi_send,
    .recall = mpi_recall,
    .is_full = mpi_is_full,
    .turn = mpi_turn,
    .wait = mpi_wait,
    .close = mpi_close,
};

/* Opening makes MPI calls that wait for other ranks without limit. A thread
 * makes them. If it does not return in time, the thread and its data are left
 * as they are. */
struct opening {
    struct mpi_channel *channel;
    struct iris_heap *heap;
    int puts;
    int good;
    atomic_int done;
    atomic_int
        abandoned; /* iris_init has failed, and its heap and log are gone */
};

static void open_together(struct opening *opening)
{
    struct mpi_channel *m = opening->channel;

    if (MPI_Comm_dup(MPI_COMM_WORLD, &m->comm) != MPI_SUCCESS ||
        atomic_load(&opening->abandoned)) {
        return;
    }
    MPI_Comm_set_errhandler(m->comm, MPI_ERRORS_RETURN);
    for (int rank = 0; rank < m->log->num_ranks; rank++) {
        m->links[rank].rank = rank;
        m->links[rank].comm = m->comm;
        m->links[rank].unused = &m->unused;
    }
    opening->good = 1;
    if (opening->puts) {
        m->window = iris_i_mpi_window_open(opening->heap, m->comm);
    }
    for (int i = 0; i < RECEIVES; i++) {
        opening->good &= receive_into(m, m->receives[i]);
    }
}

static void *run_opening(void *arg)
{
    struct opening *opening = arg;

    iris_i_mpi_enter();
    open_together(opening);
    iris_i_mpi_leave();
    atomic_store(&opening->done, 1);
    return NULL;
}

static void describe_opening(void *arg, char *text, size_t bytes)
{
    (void)arg;
    snprintf(text, bytes, "all ranks to open their windows of MPI");
}

static iris_status_t fail_late_ranks(const struct iris_wait *wait)
{
    return iris_i_fail(NULL, IRIS_ERR_TIMEOUT,
                       "MPI's part of IRIS_TRANSPORT has not opened within "
                       "%lld ms (IRIS_TIMEOUT_MS); set it alike on all ranks, "
                       "or to mpi-messages or socket",
                       (long long)wait->waiter->timeout_ms);
}

static iris_status_t await_ranks(struct opening *opening, pthread_t thread,
                                 const struct iris_waiter *waiter)
{
    static const struct iris_wait_type for_all = {.pace = IRIS_PACE_MPI,
                                                  .describe = describe_opening,
                                                  .late = fail_late_ranks};
    iris_status_t status = IRIS_OK;
    struct iris_wait wait;

    iris_i_wait_begin(&wait, &for_all, waiter, "iris_init", NULL);
    while (status == IRIS_OK && !atomic_load(&opening->done)) {
        status = iris_i_wait_tick(&wait);
    }
    iris_i_wait_end(&wait, status);
    if (status == IRIS_OK) {
        pthread_join(thread, NULL);
    } else {
        atomic_store(&opening->abandoned, 1);
        pthread_detach(thread);
    }
    return status;
}

static struct mpi_channel *make_channel(const struct iris_log *log)
{
    struct mpi_channel *m = calloc(1, sizeof *m);
    int good = m != NULL;

    if (!good) {
        return NULL;
    }
    m->base.ops = &ops;
    m->log = log;
    m->nap_ns = NAP_NS_MIN;
    m->links = calloc((size_t)log->num_ranks, sizeof m->links[0]);
    m->base.bell = iris_i_bell_open();
    good = m->links != NULL && m->base.bell >= 0;
    for (int i = 0; i < RECEIVES; i++) {
        m->receives[i] = calloc(1, sizeof *m->receives[i]);
        good &= m->receives[i] != NULL;
    }
    if (!good) {
        free_all(m);
        return NULL;
    }
    return m;
}

iris_status_t
iris_i_channel_mpi_open(const struct iris_channel_mpi_params *params,
                        struct iris_channel **channel_p)
{
    const struct iris_log *log = params->heap->log;
    iris_status_t status = iris_i_mpi_check_calls(log->rank, log->num_ranks);
    struct opening *opening;
    pthread_t thread;

    if (status != IRIS_OK) {
        return status;
    }
    opening = calloc(1, sizeof *opening);
    if (opening == NULL || (opening->channel = make_channel(log)) == NULL) {
        free(opening);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for messages by MPI");
    }
    opening->heap = params->heap;
    opening->puts = params->puts;
    opening->channel->control = params->heap->memory.control;
    if (iris_i_thread_start(&thread, "iris-mpi", 0, run_opening, opening) !=
        0) {
        free_all(opening->channel);
        free(opening);
        return iris_i_fail(NULL, IRIS_ERR_LIMIT, "no thread to open MPI");
    }
    status = await_ranks(opening, thread, params->waiter);
    if (status == IRIS_OK && !opening->good) {
        status = iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                             "MPI cannot make a communicator for the proxy; "
                             "set IRIS_TRANSPORT=socket");
    }
    if (status != IRIS_OK) {
        return status;
    }
    *channel_p = &opening->channel->base;
    if (log->rank == 0) {
        iris_i_info(log, "blocks are sent to other nodes by %s",
                    opening->channel->window != NULL
                        ? "MPI_Put (passive target)"
                        : "MPI's two-sided messages");
    }
    free(opening);
    return IRIS_OK;
}

#else /* !HAVE_MPI */

iris_status_t
iris_i_channel_mpi_open(const struct iris_channel_mpi_params *params,
                        struct iris_channel **channel_p)
{
    (void)params;
    (void)channel_p;
    return iris_i_fail(NULL, IRIS_ERR_UNSUPPORTED,
                       "IRIS_TRANSPORT asks for MPI, but this library was "
                       "built without it; configure --with-mpi, or set "
                       "IRIS_TRANSPORT=socket");
}

#endif
