/* SPDX-License-Identifier: MIT
 *
 * The channel over an engine (MPI or UCX) that carries packets between any two
 * ranks in order. Messages to a rank are collected in packets, which leave in the
 * order of their begin. If the engine has a window, a put goes into it once the
 * rank has completed all earlier messages, and a message after such puts is sent
 * after a flush.
 */
#include "config.h"

#include "transport/internal.h"

#include <iris/device/watch/op.h>

#include "base/base.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Number of packets in flight to a rank from which requests to it wait. */
#define FULL_PACKETS 16

/* Number of receives that are always posted. The engine matches them in this
 * order. */
#define RECEIVES 8

struct packet_link {
    struct iris_packet *open; /* collects messages; NULL: no packet was begun */
    struct iris_packet *sent; /* in flight, the oldest first */
    struct iris_packet *newest; /* the last of those */
    int num_sent;               /* of those */
    uint64_t asked;             /* number of requests that need an answer */
    uint64_t answered; /* number of answers to them, which come in order */
    uint64_t unasked;  /* other requests since the last of them */
    int is_lost;       /* a message to the rank, or from it, is lost */
    int is_told;       /* the proxy knows it */
    const char *why;   /* NULL: the engine knows */
};

struct packet_channel {
    struct iris_channel base;
    const struct iris_log *log;
    struct iris_engine *engine;
    struct packet_link *links; /* for each rank */
    struct iris_packet *unused;
    struct iris_packet *receives[RECEIVES];
    unsigned next; /* the receive that completes next */
};

static struct packet_channel *packets_of(struct iris_channel *channel)
{
    return (struct packet_channel *)channel;
}

/* No message may be missing in silence. */
static void report_lost(struct packet_channel *p, int rank)
{
    struct packet_link *link = &p->links[rank];

    if (link->is_lost && !link->is_told && p->base.lost != NULL) {
        link->is_told = 1;
        p->base.lost(p->base.arg, rank,
                     link->why != NULL
                         ? link->why
                         : p->engine->ops->explain(p->engine, rank));
    }
}

static void lose_link(struct packet_channel *p, int rank, const char *why)
{
    p->links[rank].is_lost = 1;
    p->links[rank].why = why;
    report_lost(p, rank);
}

/* Whether the rank has completed all requests. */
static int is_quiet(const struct packet_link *link)
{
    return link->asked == link->answered && link->unasked == 0;
}

/* ---- Packets ---- */

static struct iris_packet *take_packet(struct packet_channel *p)
{
    struct iris_packet *packet = p->unused;

    if (packet == NULL) {
        packet = malloc(sizeof *packet);
    } else {
        p->unused = packet->next;
    }
    if (packet != NULL) {
        packet->next = NULL;
        packet->bytes = 0;
    }
    return packet;
}

static void drop_packet(struct packet_channel *p, struct iris_packet *packet)
{
    packet->next = p->unused;
    p->unused = packet;
}

/* Sends the pending packet. Returns 1 if there was one. */
static int send_packet(struct packet_channel *p, int rank)
{
    struct packet_link *link = &p->links[rank];
    struct iris_packet *packet = link->open;

    if (packet == NULL) {
        return 0;
    }
    link->open = NULL;
    if (!p->engine->ops->send(p->engine, rank, packet)) {
        link->is_lost = 1;
        drop_packet(p, packet);
        return 1;
    }
    if (link->sent == NULL) {
        link->sent = packet;
    } else {
        link->newest->next = packet;
    }
    link->newest = packet;
    link->num_sent++;
    return 1;
}

/* Reclaims sent packets. Returns their number. */
static int reap_packets(struct packet_channel *p, int rank)
{
    struct packet_link *link = &p->links[rank];
    int count = 0;

    while (link->sent != NULL) {
        struct iris_packet *packet = link->sent;
        int done = p->engine->ops->is_sent(p->engine, packet);

        if (done == 0) {
            break;
        }
        link->is_lost |= done < 0;
        link->sent = packet->next;
        link->num_sent--;
        drop_packet(p, packet);
        count++;
    }
    return count;
}

/* Adds the message to a packet. The packet is sent when it is full, or by
 * packets_turn(). */
static void append_message(struct packet_channel *p, int rank,
                           const struct iris_far_message *message,
                           const void *data)
{
    struct packet_link *link = &p->links[rank];
    size_t bytes = sizeof *message + message->data;
    unsigned char *at;

    if (link->open != NULL && IRIS_PACKET_BYTES - link->open->bytes < bytes) {
        (void)send_packet(p, rank);
    }
    link->open = link->open != NULL ? link->open : take_packet(p);
    if (link->open == NULL) {
        link->is_lost = 1;
        link->why = "there is no memory for messages to it";
        return;
    }
    at = link->open->data + link->open->bytes;
    memcpy(at, message, sizeof *message);
    if (message->data != 0) {
        memcpy(at + sizeof *message, data, message->data);
    }
    link->open->bytes += bytes;
    if (message->answers) {
        return;
    }
    if (message->op == IRIS_OP_PUT || message->op == IRIS_OP_STORE) {
        link->unasked++;
    } else {
        link->asked++;
        link->unasked = 0;
    }
}

/* ---- Sending ---- */

/* Whether the window does all that the request asks for: it takes a put, and a
 * flush of it is a fence if the rank has no unfinished messages. Sets *answered_p
 * for a fence. */
static int use_window(struct packet_channel *p, int rank,
                      const struct iris_far_message *message, const void *data,
                      int *answered_p)
{
    const struct iris_engine_ops *engine = p->engine->ops;
    struct packet_link *link = &p->links[rank];
    int may = !message->answers && is_quiet(link);

    if (!p->engine->has_window) {
        return 0;
    }
    if (may && message->op == IRIS_OP_PUT &&
        engine->put(p->engine, rank, message->offset, data, message->data)) {
        return 1;
    }
    if (!engine->flush(p->engine, rank)) {
        link->is_lost = 1;
        return 1;
    }
    *answered_p = may && message->op == IRIS_OP_FENCE;
    return *answered_p;
}

static int packets_send(struct iris_channel *channel, int rank,
                        const struct iris_far_message *message,
                        const void *data, int stays)
{
    const struct iris_far_message flushed = {.op = IRIS_OP_FENCE, .answers = 1};
    struct packet_channel *p = packets_of(channel);
    struct packet_link *link = &p->links[rank];
    int is_answered = 0;

    (void)stays;
    link->is_lost |= !p->engine->ops->enter(p->engine);
    if (!link->is_lost && !use_window(p, rank, message, data, &is_answered)) {
        append_message(p, rank, message, data);
    }
    p->engine->ops->leave(p->engine);
    report_lost(p, rank);
    if (is_answered) {
        p->base.taken(p->base.arg, rank, &flushed, NULL);
    }
    return 0;
}

/* send() leaves no data in place. */
static void packets_recall(struct iris_channel *channel, int rank)
{
    (void)channel, (void)rank;
}

static int packets_is_full(struct iris_channel *channel, int rank)
{
    return packets_of(channel)->links[rank].num_sent >= FULL_PACKETS;
}

/* ---- Receiving ---- */

static void unpack_messages(struct packet_channel *p, int rank,
                            const unsigned char *data, size_t bytes)
{
    size_t at = 0;

    while (bytes - at >= sizeof(struct iris_far_message) &&
           !p->links[rank].is_lost) {
        struct iris_far_message message;

        memcpy(&message, data + at, sizeof message);
        at += sizeof message;
        if (message.data > bytes - at || message.data > IRIS_RING_BYTES) {
            lose_link(p, rank, "it sends data that is not a message");
            return;
        }
        p->links[rank].answered += message.answers != 0;
        p->base.taken(p->base.arg, rank, &message, data + at);
        at += message.data;
    }
    if (at != bytes && !p->links[rank].is_lost) {
        lose_link(p, rank, "it sends data that is not a message");
    }
}

/* Nobody knows whose message it would have been. */
static void lose_all(struct packet_channel *p)
{
    for (int rank = 0; rank < p->log->num_ranks; rank++) {
        if (rank != p->log->rank && !p->links[rank].is_lost) {
            lose_link(p, rank, NULL);
        }
    }
}

/* Takes the next packet, if it has arrived, and posts its receive again. */
static int receive_packet(struct packet_channel *p)
{
    const struct iris_engine_ops *engine = p->engine->ops;
    struct iris_packet *packet = p->receives[p->next];
    int rank = -1, got;

    got = engine->enter(p->engine)
              ? engine->is_received(p->engine, packet, &rank)
              : 0;
    engine->leave(p->engine);
    if (got > 0 && rank >= 0 && rank < p->log->num_ranks) {
        unpack_messages(p, rank, packet->data, packet->bytes);
    }
    if (got > 0) {
        got = !engine->enter(p->engine) || engine->receive(p->engine, packet)
                  ? 1
                  : -1;
        engine->leave(p->engine);
        p->next = (p->next + 1) % RECEIVES;
    }
    if (got < 0) {
        lose_all(p);
    }
    return got > 0;
}

static int send_all(struct packet_channel *p)
{
    int count = 0, is_up = p->engine->ops->enter(p->engine);

    for (int rank = 0; rank < p->log->num_ranks && is_up; rank++) {
        count += send_packet(p, rank);
        count += reap_packets(p, rank);
        p->links[rank].is_lost |= !is_quiet(&p->links[rank]) &&
                                  p->engine->ops->is_broken(p->engine, rank);
    }
    p->engine->ops->leave(p->engine);
    for (int rank = 0; rank < p->log->num_ranks; rank++) {
        report_lost(p, rank);
    }
    return count;
}

static int packets_turn(struct iris_channel *channel)
{
    struct packet_channel *p = packets_of(channel);
    int count = send_all(p), got = 0;

    while (got < RECEIVES && receive_packet(p)) {
        got++;
    }
    count += got + (got != 0 ? send_all(p) : 0);
    p->engine->was_busy |= count != 0;
    return count;
}

static void packets_wait(struct iris_channel *channel, int timeout_ms)
{
    struct iris_engine *engine = packets_of(channel)->engine;

    engine->ops->wait(engine, channel->bell, timeout_ms);
    engine->was_busy = 0;
}

/* ---- Opening and closing ---- */

static void free_packets(struct iris_packet *packet)
{
    while (packet != NULL) {
        struct iris_packet *next = packet->next;

        free(packet);
        packet = next;
    }
}

static void free_all(struct packet_channel *p)
{
    for (int i = 0; i < RECEIVES; i++) {
        free(p->receives[i]);
    }
    for (int i = 0; p->links != NULL && i < p->log->num_ranks; i++) {
        free(p->links[i].open);
        free_packets(p->links[i].sent);
    }
    free_packets(p->unused);
    free(p->links);
    if (p->base.bell >= 0) {
        close(p->base.bell);
    }
    free(p);
}

/* Memory that the engine may still access is not freed. */
static void packets_close(struct iris_channel *channel)
{
    struct packet_channel *p = packets_of(channel);
    int is_clean = p->engine->ops->enter(p->engine);

    for (int rank = 0; is_clean && rank < p->log->num_ranks; rank++) {
        (void)reap_packets(p, rank);
        is_clean = !p->links[rank].is_lost && p->links[rank].sent == NULL;
    }
    p->engine->ops->leave(p->engine);
    if (p->engine->ops->close(p->engine, is_clean, p->receives, RECEIVES)) {
        free_all(p);
    } else {
        iris_i_debug(p->log, "packets to other nodes are left as they are");
    }
}

static const struct iris_channel_ops ops = {
    .send = packets_send,
    .recall = packets_recall,
    .is_full = packets_is_full,
    .turn = packets_turn,
    .wait = packets_wait,
    .close = packets_close,
};

static struct packet_channel *make_channel(const struct iris_log *log)
{
    struct packet_channel *p = calloc(1, sizeof *p);
    int good = p != NULL;

    if (!good) {
        return NULL;
    }
    p->base.ops = &ops;
    p->log = log;
    p->links = calloc((size_t)log->num_ranks, sizeof p->links[0]);
    p->base.bell = iris_i_bell_open();
    good = p->links != NULL && p->base.bell >= 0;
    for (int i = 0; i < RECEIVES; i++) {
        p->receives[i] = calloc(1, sizeof *p->receives[i]);
        good &= p->receives[i] != NULL;
    }
    if (!good) {
        free_all(p);
        return NULL;
    }
    return p;
}

iris_status_t iris_i_channel_packets_open(const struct iris_log *log,
                                          struct iris_engine *engine,
                                          struct iris_channel **channel_p)
{
    struct packet_channel *p = make_channel(log);
    int good = p != NULL;

    if (!good) {
        (void)engine->ops->close(engine, 1, NULL, 0);
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY,
                           "no memory for messages to other nodes");
    }
    p->engine = engine;
    (void)engine->ops->enter(engine);
    for (int i = 0; i < RECEIVES; i++) {
        good &= engine->ops->receive(engine, p->receives[i]);
    }
    engine->ops->leave(engine);
    if (!good) {
        packets_close(&p->base);
        return iris_i_fail(NULL, IRIS_ERR_SYSTEM,
                           "%s cannot receive messages of other nodes; set "
                           "IRIS_TRANSPORT=socket",
                           engine->ops->name);
    }
    *channel_p = &p->base;
    return IRIS_OK;
}
