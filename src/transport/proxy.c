/* SPDX-License-Identifier: MIT
 *
 * The proxy of one rank. It takes requests in the order of the ring, so a
 * release comes after all earlier requests. Messages to one rank stay in order.
 * A release to another rank waits until the earlier requests to other ranks
 * have reached their targets.
 */
#include "config.h"

#include "transport/internal.h"

#include <iris/device/core/far.h>

#include "base/base.h"
#include "control/control.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A slot whose data the channel still needs blocks the lane that comes to it a
 * lap later. The channel has to copy the data of slots that are older than
 * this number of requests, so that lanes always have the rest of the ring. */
#define LENT_MOST (3 * IRIS_RING_SLOTS / 4)

/* The most requests in a row before it serves other ranks again. */
#define BATCH 32

/* This rank's requests to one other rank. */
struct target {
    uint8_t dirty;       /* it needs a fence before its requests are known to
                          * be complete */
    uint8_t refused;     /* one was refused; the next fence here reports it */
    atomic_uchar fenced; /* a fence to it is in flight */
    atomic_uint awaited; /* number of unanswered requests */
};

struct iris_proxy {
    const struct iris_log *log;
    struct iris_heap *heap;
    struct iris_channel *channel;
    struct iris_dev_ring *ring;
    struct target *targets; /* for each rank */
    uint8_t *refused_of;    /* 1: a put from that rank was refused here */
    int num_unclean;        /* number of targets that are dirty or fenced */
    uint64_t next;          /* the next ticket */
    uint64_t oldest;        /* no earlier request's slot is lent */
    uint8_t is_lent[IRIS_RING_SLOTS]; /* the channel needs the slot's data */
    int is_held;                      /* its request waits for messages */
    struct iris_steps steps;          /* only a step uses the members above */
    atomic_int full;    /* a rank that does not take more now, + 1 */
    atomic_int flushes; /* 1: the host waits for arrivals; 2: no longer */
};

static uint64_t load_word(const uint64_t *word)
{
    return iris_d_load(word, sizeof *word, iris_d_ring_order(IRIS_ACQUIRE));
}

static void store_word(uint64_t *word, uint64_t value)
{
    iris_d_store(word, sizeof *word, value, iris_d_ring_order(IRIS_RELEASE));
}

static uint32_t exchange_word(uint32_t *word, uint32_t value)
{
    return (uint32_t)iris_d_fetch(word, sizeof *word, IRIS_D_FETCH_XCHG, value,
                                  iris_d_ring_order(IRIS_ACQ_REL));
}

static struct iris_dev_slot *slot_of(struct iris_proxy *proxy, uint64_t ticket)
{
    return &proxy->ring->slots[ticket % IRIS_RING_SLOTS];
}

static int is_posted(struct iris_proxy *proxy)
{
    return load_word(&slot_of(proxy, proxy->next)->turn) == proxy->next + 1;
}

/* ---- Requests that have reached their targets ---- */

static void mark_dirty(struct iris_proxy *proxy, int rank)
{
    struct target *target = &proxy->targets[rank];

    proxy->num_unclean += !target->dirty && !target->fenced;
    target->dirty = 1;
}

static void mark_clean(struct iris_proxy *proxy, int rank)
{
    struct target *target = &proxy->targets[rank];

    proxy->num_unclean -= target->dirty || target->fenced;
    target->dirty = 0;
    target->fenced = 0;
}

/* Whether all targets except `rank` are clean; otherwise sends them fences. A
 * target that is lost stays unclean, so that no release ever covers it. */
static int are_clean(struct iris_proxy *proxy, int rank)
{
    const struct iris_channel_ops *ops = proxy->channel->ops;
    const struct iris_far_message fence = {.op = IRIS_OP_FENCE};

    for (int i = 0; i < proxy->log->num_ranks && proxy->num_unclean != 0; i++) {
        struct target *target = &proxy->targets[i];

        if (i == rank || (!target->dirty && !target->fenced)) {
            continue;
        }
        if (!target->fenced) {
            target->fenced = 1;
            target->dirty = 0;
            (void)ops->send(proxy->channel, i, &fence, NULL, 0);
        }
    }
    return proxy->num_unclean == 0 ||
           (proxy->num_unclean == 1 && rank >= 0 &&
            (proxy->targets[rank].dirty || proxy->targets[rank].fenced));
}

/* ---- Requests of this rank's kernels ---- */

static void free_slot(struct iris_dev_slot *slot)
{
    store_word(&slot->turn, slot->turn - 1 + IRIS_RING_SLOTS);
}

static void send_answer(struct iris_dev_slot *slot, int refused)
{
    uint32_t state = refused ? IRIS_ANSWER_REFUSED : IRIS_ANSWER_HERE;

    if (exchange_word(&slot->answer, state) == IRIS_ANSWER_LEFT) {
        free_slot(slot);
    }
}

/* The channel has the data of one of this ring's slots no longer. */
static void note_returned(void *arg, const void *data)
{
    struct iris_proxy *proxy = arg;
    size_t at = (size_t)((const char *)data - (char *)proxy->ring->slots);
    size_t i = at / sizeof proxy->ring->slots[0];

    proxy->is_lent[i] = 0;
    free_slot(&proxy->ring->slots[i]);
}

/* Ends loans that are too old. */
static void recall_slot(struct iris_proxy *proxy)
{
    for (; proxy->oldest < proxy->next; proxy->oldest++) {
        struct iris_dev_slot *slot = slot_of(proxy, proxy->oldest);
        uint8_t *is_lent = &proxy->is_lent[proxy->oldest % IRIS_RING_SLOTS];

        if (*is_lent && proxy->next - proxy->oldest < LENT_MOST) {
            break;
        }
        if (*is_lent) {
            proxy->channel->ops->recall(proxy->channel, slot->rank);
        }
    }
}

/* Returns 1 if the channel needs the slot's data for longer. */
static int send_request(struct iris_proxy *proxy,
                        const struct iris_dev_slot *slot)
{
    const struct iris_far_message message = {
        .op = (uint8_t)slot->op,
        .kind = (uint8_t)slot->kind,
        .bytes = (uint16_t)slot->bytes,
        .data = slot->op == IRIS_OP_PUT ? (uint16_t)slot->bytes : 0,
        .ticket = proxy->next,
        .offset = slot->offset,
        .value = slot->value,
        .expected = slot->expected};

    return proxy->channel->ops->send(proxy->channel, slot->rank, &message,
                                     slot->data, !slot->answered);
}

static int take_refused(struct iris_proxy *proxy)
{
    int refused = 0;

    for (int i = 0; i < proxy->log->num_ranks; i++) {
        refused |= proxy->targets[i].refused;
        proxy->targets[i].refused = 0;
    }
    return refused;
}

/* 0: the request has to wait. */
static int take_slot(struct iris_proxy *proxy, struct iris_dev_slot *slot)
{
    int is_fence = slot->op == IRIS_OP_FENCE, is_lent;

    if (slot->releases && !are_clean(proxy, is_fence ? -1 : slot->rank)) {
        return 0;
    }
    if (is_fence) {
        store_word(&proxy->ring->done, ++proxy->next);
        send_answer(slot, take_refused(proxy));
        return 1;
    }
    if (proxy->channel->ops->is_full(proxy->channel, slot->rank)) {
        atomic_store(&proxy->full, slot->rank + 1);
        return 0;
    }
    if (slot->answered) {
        atomic_fetch_add(&proxy->targets[slot->rank].awaited, 1);
    } else {
        mark_dirty(proxy, slot->rank);
    }
    is_lent = send_request(proxy, slot);
    atomic_store_explicit(&proxy->full, 0, memory_order_relaxed);
    proxy->is_lent[proxy->next++ % IRIS_RING_SLOTS] = (uint8_t)is_lent;
    if (!slot->answered && !is_lent) {
        free_slot(slot);
    }
    recall_slot(proxy);
    if (proxy->num_unclean == 0) {
        store_word(&proxy->ring->done, proxy->next);
    }
    return 1;
}

/* ---- Messages of other ranks ---- */

/* The answer to a request. Its sender may have invented it. */
static void take_answer(struct iris_proxy *proxy, int rank,
                        const struct iris_far_message *message,
                        const void *data)
{
    struct iris_dev_slot *slot = slot_of(proxy, message->ticket);

    if (message->op == IRIS_OP_FENCE) {
        proxy->targets[rank].refused |= message->refused != 0;
        if (proxy->targets[rank].fenced) {
            mark_clean(proxy, rank);
        }
        return;
    }
    if (load_word(&slot->turn) != message->ticket + 1 || !slot->answered ||
        slot->rank != rank || slot->op != message->op ||
        message->data > slot->bytes) {
        iris_i_warning(proxy->log,
                       "rank %d answers a request that was never made", rank);
        return;
    }
    atomic_fetch_sub(&proxy->targets[rank].awaited, 1);
    memcpy(slot->data, data, message->data);
    slot->value = message->value;
    send_answer(slot, message->refused);
}

static void note_taken(void *arg, int rank,
                       const struct iris_far_message *message, const void *data)
{
    struct iris_proxy *proxy = arg;
    struct iris_far_message reply;
    const void *reply_data;

    if (message->answers) {
        take_answer(proxy, rank, message, data);
        return;
    }
    iris_i_serve(proxy->heap, message, data, &reply, &reply_data);
    if (reply.answers) {
        if (message->op == IRIS_OP_FENCE) {
            reply.refused = proxy->refused_of[rank];
            proxy->refused_of[rank] = 0;
        }
        (void)proxy->channel->ops->send(proxy->channel, rank, &reply,
                                        reply_data, 0);
    } else {
        proxy->refused_of[rank] |= reply.refused != 0;
    }
}

/* All ranks learn of it; this one's waits end. */
static void note_lost_rank(void *arg, int rank, const char *why)
{
    struct iris_proxy *proxy = arg;

    iris_i_peers_lose(proxy->heap->memory.control, rank, why);
}

int iris_i_proxy_silent(const struct iris_proxy *proxy)
{
    for (int i = 0; proxy != NULL && i < proxy->log->num_ranks; i++) {
        const struct target *target = &proxy->targets[i];

        if (atomic_load(&target->fenced) || atomic_load(&target->awaited)) {
            return i;
        }
    }
    return proxy == NULL ? -1 : atomic_load(&proxy->full) - 1;
}

int iris_i_proxy_flush(struct iris_proxy *proxy)
{
    int asked = 0;

    if (proxy != NULL &&
        atomic_compare_exchange_strong(&proxy->flushes, &asked, 1)) {
        iris_i_bell_ring(proxy->channel->bell);
    }
    return proxy == NULL || atomic_load(&proxy->flushes) == 2;
}

/* ---- Steps ---- */

static int step_proxy(void *arg)
{
    struct iris_proxy *proxy = arg;
    int count = 0, messages;

    proxy->is_held = 0;
    while (count < BATCH && !proxy->is_held && is_posted(proxy)) {
        proxy->is_held = !take_slot(proxy, slot_of(proxy, proxy->next));
        count += !proxy->is_held;
    }
    if (atomic_load_explicit(&proxy->flushes, memory_order_relaxed) == 1 &&
        !is_posted(proxy) && are_clean(proxy, -1)) {
        atomic_store(&proxy->flushes, 2);
    }
    messages = proxy->channel->ops->turn(proxy->channel);
    proxy->is_held &= messages == 0; /* they may be those it waits for */
    return count + messages;
}

static int has_work(void *arg)
{
    struct iris_proxy *proxy = arg;

    return !proxy->is_held && is_posted(proxy);
}

/* ---- Opening and closing ---- */

static void free_proxy(struct iris_proxy *proxy)
{
    proxy->channel->ops->close(proxy->channel);
    if (proxy->ring != NULL) {
        munmap(proxy->ring, sizeof *proxy->ring);
    }
    free(proxy->targets);
    free(proxy->refused_of);
    free(proxy);
}

/* Unused slots take no memory. */
static struct iris_dev_ring *make_ring(void)
{
    struct iris_dev_ring *ring =
        mmap(NULL, sizeof *ring, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (ring == MAP_FAILED) {
        return NULL;
    }
    for (uint64_t i = 0; i < IRIS_RING_SLOTS; i++) {
        ring->slots[i].turn = i;
    }
    return ring;
}

iris_status_t iris_i_proxy_open(struct iris_heap *heap,
                                struct iris_channel *channel,
                                struct iris_proxy **proxy_p)
{
    size_t num_ranks = (size_t)heap->log->num_ranks;
    struct iris_proxy *proxy = calloc(1, sizeof *proxy);
    iris_status_t status = IRIS_ERR_NO_MEMORY;

    if (proxy == NULL) {
        channel->ops->close(channel);
        return iris_i_fail(NULL, status, "no memory for a proxy");
    }
    proxy->log = heap->log;
    proxy->heap = heap;
    proxy->channel = channel;
    channel->taken = note_taken;
    channel->lost = note_lost_rank;
    channel->returned = note_returned;
    channel->arg = proxy;
    proxy->ring = make_ring();
    proxy->targets = calloc(num_ranks, sizeof proxy->targets[0]);
    proxy->refused_of = calloc(num_ranks, sizeof proxy->refused_of[0]);
    if (proxy->ring == NULL || proxy->targets == NULL ||
        proxy->refused_of == NULL) {
        iris_i_fail(NULL, status, "no memory for a proxy");
    } else {
        proxy->steps.channel = channel;
        proxy->steps.step = step_proxy;
        proxy->steps.has_work = has_work;
        proxy->steps.arg = proxy;
        status = iris_i_steps_start(&proxy->steps);
    }
    if (status != IRIS_OK) {
        free_proxy(proxy);
        return status;
    }
    *proxy_p = proxy;
    return IRIS_OK;
}

struct iris_far iris_i_proxy_far(struct iris_proxy *proxy)
{
    return (struct iris_far){proxy->ring, &proxy->steps, iris_i_steps_posted,
                             iris_i_steps_carry, iris_i_steps_leave};
}

void iris_i_proxy_close(struct iris_proxy *proxy)
{
    const struct iris_control *control =
        proxy == NULL ? NULL : proxy->heap->memory.control;

    if (proxy == NULL) {
        return;
    }
    if (iris_i_steps_stop(&proxy->steps,
                          control == NULL ? 0 : control->by_ns)) {
        free_proxy(proxy);
    } else {
        iris_i_warning(proxy->log, "the proxy to other nodes does not end; its "
                                   "memory is left to it");
    }
}
