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
    uint8_t lost;        /* no answer will come */
    atomic_uchar fenced; /* a fence to it is in flight */
    atomic_uint awaited; /* number of unanswered requests */
};

/* Why the proxy still needs the slot of a request that it took. */
enum slot_use {
    SLOT_DONE,   /* it does not */
    SLOT_LENT,   /* the channel needs the slot's data */
    SLOT_AWAITS, /* the answer has not come */
    SLOT_UNREAD, /* the lane may not have read the answer */
};

struct iris_proxy {
    const struct iris_log *log;
    struct iris_heap *heap;
    struct iris_channel *channel;
    struct iris_dev_ring *ring; /* lanes use it; its memory is ours */
    struct iris_dev_requests *requests;
    struct target *targets; /* for each rank */
    struct iris_target own; /* for requests of other ranks */
    uint8_t *refused_of;    /* 1: a put from that rank was refused here */
    int num_unclean;        /* number of targets that are dirty or fenced */
    uint64_t next;          /* the next ticket */
    uint64_t tail;          /* the slots of lower tickets are free */
    uint8_t uses[IRIS_RING_SLOTS]; /* enum slot_use, of tickets from `tail` to
                                    * `next` */
    uint64_t num_refused;          /* fences that learned of refusals */
    int is_held;                   /* its request waits for messages */
    struct iris_steps steps;       /* only a step uses the members above */
    atomic_int full;               /* a rank that does not take more now, + 1 */
    atomic_int flushes; /* 1: the host waits for arrivals; 2: no longer */
};

static uint64_t load_word(const uint64_t *word)
{
    return iris_d_ring_load(word, IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM);
}

static void store_word(uint64_t *word, uint64_t value)
{
    iris_d_ring_store(word, value, IRIS_SCOPE_SYSTEM);
}

static struct iris_dev_slot *slot_of(struct iris_proxy *proxy, uint64_t ticket)
{
    return &proxy->requests->slots[ticket % IRIS_RING_SLOTS];
}

static uint8_t *use_of(struct iris_proxy *proxy, uint64_t ticket)
{
    return &proxy->uses[ticket % IRIS_RING_SLOTS];
}

static int is_posted(struct iris_proxy *proxy)
{
    return (load_word(&slot_of(proxy, proxy->next)->commit) &
            IRIS_RING_PARITY) == iris_d_ring_parity(proxy->next);
}

static int op_of(const struct iris_dev_slot *slot)
{
    return (int)(slot->commit >> IRIS_RING_OP_SHIFT & 0xff);
}

static uint32_t bytes_of(const struct iris_dev_slot *slot)
{
    return (uint32_t)(slot->commit >> IRIS_RING_BYTES_SHIFT & 0xffffff);
}

static int rank_of(const struct iris_dev_slot *slot)
{
    return (int)(slot->commit >> IRIS_RING_RANK_SHIFT);
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

/* The lane reads it if it has not left the slot yet. */
static void send_answer(struct iris_proxy *proxy, uint64_t ticket,
                        enum iris_dev_answer answer)
{
    *use_of(proxy, ticket) = SLOT_UNREAD;
    store_word(&slot_of(proxy, ticket)->answer,
               ticket << IRIS_ANSWER_BITS | answer);
}

/* The channel has the data of one of this ring's slots no longer. */
static void note_returned(void *arg, const void *data)
{
    struct iris_proxy *proxy = arg;
    size_t at = (size_t)((const char *)data - (char *)proxy->requests->slots);

    proxy->uses[at / sizeof proxy->requests->slots[0]] = SLOT_DONE;
}

/* Whether the slot at the tail is done. Ends loans that are too old. */
static int is_tail_done(struct iris_proxy *proxy)
{
    struct iris_dev_slot *slot = slot_of(proxy, proxy->tail);
    uint8_t *use = use_of(proxy, proxy->tail);

    if (*use == SLOT_LENT && proxy->next - proxy->tail >= LENT_MOST) {
        proxy->channel->ops->recall(proxy->channel, rank_of(slot));
    }
    return *use == SLOT_DONE ||
           (*use == SLOT_UNREAD && load_word(&slot->left) == proxy->tail + 1);
}

static void free_slots(struct iris_proxy *proxy)
{
    uint64_t tail = proxy->tail;

    while (proxy->tail < proxy->next && is_tail_done(proxy)) {
        proxy->tail++;
    }
    if (proxy->tail != tail) {
        store_word(&proxy->requests->tail, proxy->tail);
    }
}

/* Returns 1 if the channel needs the slot's data for longer. */
static int send_request(struct iris_proxy *proxy,
                        const struct iris_dev_slot *slot, uint64_t ticket)
{
    uint32_t bytes = bytes_of(slot);
    const struct iris_far_message message = {
        .op = (uint8_t)op_of(slot),
        .kind = (uint8_t)(slot->commit >> IRIS_RING_KIND_SHIFT),
        .bytes = (uint16_t)bytes,
        .data = op_of(slot) == IRIS_OP_PUT ? (uint16_t)bytes : 0,
        .ticket = ticket,
        .offset = slot->offset,
        .value = slot->value,
        .expected = slot->expected};

    return proxy->channel->ops->send(
        proxy->channel, rank_of(slot), &message,
        bytes <= IRIS_D_FAR_WORD ? (const void *)&slot->value : slot->data,
        !(slot->commit & IRIS_RING_ANSWERED));
}

/* An answer may come while the request is sent, or the rank be lost. */
static void ask_target(struct iris_proxy *proxy,
                       const struct iris_dev_slot *slot)
{
    struct target *target = &proxy->targets[rank_of(slot)];
    uint64_t ticket = proxy->next++;

    atomic_fetch_add(&target->awaited, 1);
    *use_of(proxy, ticket) = SLOT_AWAITS;
    (void)send_request(proxy, slot, ticket);
    if (target->lost && *use_of(proxy, ticket) == SLOT_AWAITS) {
        send_answer(proxy, ticket, IRIS_ANSWER_LOST);
    }
}

/* 0: the request has to wait. */
static int take_slot(struct iris_proxy *proxy, const struct iris_dev_slot *slot)
{
    int is_fence = op_of(slot) == IRIS_OP_FENCE, rank = rank_of(slot);

    if ((slot->commit & IRIS_RING_RELEASES) != 0 &&
        !are_clean(proxy, is_fence ? -1 : rank)) {
        return 0;
    }
    if (!is_fence && proxy->channel->ops->is_full(proxy->channel, rank)) {
        atomic_store(&proxy->full, rank + 1);
        return 0;
    }
    if (is_fence) {
        *use_of(proxy, proxy->next++) = SLOT_DONE;
    } else if ((slot->commit & IRIS_RING_ANSWERED) != 0) {
        ask_target(proxy, slot);
    } else {
        uint64_t ticket = proxy->next++;

        mark_dirty(proxy, rank);
        *use_of(proxy, ticket) =
            send_request(proxy, slot, ticket) ? SLOT_LENT : SLOT_DONE;
    }
    atomic_store_explicit(&proxy->full, 0, memory_order_relaxed);
    if (proxy->num_unclean == 0) {
        store_word(&proxy->requests->acked, proxy->next);
    }
    free_slots(proxy);
    return 1;
}

/* ---- Messages of other ranks ---- */

/* The answer to a request. Its sender may have invented it. */
static void take_answer(struct iris_proxy *proxy, int rank,
                        const struct iris_far_message *message,
                        const void *data)
{
    uint64_t ticket = message->ticket;
    struct iris_dev_slot *slot = slot_of(proxy, ticket);

    if (message->op == IRIS_OP_FENCE) {
        if (message->refused) {
            store_word(&proxy->requests->refused, ++proxy->num_refused);
        }
        if (proxy->targets[rank].fenced) {
            mark_clean(proxy, rank);
        }
        return;
    }
    if (ticket < proxy->tail || ticket >= proxy->next ||
        *use_of(proxy, ticket) != SLOT_AWAITS || rank_of(slot) != rank ||
        op_of(slot) != message->op || message->data > bytes_of(slot)) {
        iris_i_warning(proxy->log,
                       "rank %d answers a request that was never made", rank);
        return;
    }
    atomic_fetch_sub(&proxy->targets[rank].awaited, 1);
    slot->result = message->value;
    memcpy(message->data <= IRIS_D_FAR_WORD ? (void *)&slot->result
                                            : slot->data,
           data, message->data);
    send_answer(proxy, ticket,
                message->refused ? IRIS_ANSWER_REFUSED : IRIS_ANSWER_HERE);
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
    iris_i_serve(&proxy->own, message, data, &reply, &reply_data);
    if (reply.answers) {
        if (message->op == IRIS_OP_FENCE) {
            reply.refused |= proxy->refused_of[rank];
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

    proxy->targets[rank].lost = 1;
    for (uint64_t t = proxy->tail; t < proxy->next; t++) {
        if (*use_of(proxy, t) == SLOT_AWAITS &&
            rank_of(slot_of(proxy, t)) == rank) {
            send_answer(proxy, t, IRIS_ANSWER_LOST);
        }
    }
    store_word(&proxy->requests->lost, (uint64_t)rank + 1);
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
    free_slots(proxy);
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
    if (proxy->own.update != NULL) {
        iris_i_target_device_close(&proxy->own);
    } else if (proxy->requests != NULL) {
        munmap(proxy->requests, sizeof *proxy->requests);
    }
    free(proxy->ring);
    free(proxy->targets);
    free(proxy->refused_of);
    free(proxy);
}

/* Unused slots take no memory. The ring of a GPU's kernels is on its heap. */
static iris_status_t make_ring(struct iris_proxy *proxy)
{
    void *requests;
    iris_status_t status;

    if (proxy->own.update != NULL) {
        status = iris_i_target_device_open(&proxy->own);
        proxy->requests =
            status == IRIS_OK ? &proxy->own.shared->requests : NULL;
        return status;
    }
    proxy->own.ops = &iris_i_target_cpu;
    requests = mmap(NULL, sizeof *proxy->requests, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    proxy->ring = calloc(1, sizeof *proxy->ring);
    proxy->requests = requests == MAP_FAILED ? NULL : requests;
    if (proxy->ring == NULL || proxy->requests == NULL) {
        return iris_i_fail(NULL, IRIS_ERR_NO_MEMORY, "no memory for a proxy");
    }
    proxy->ring->requests = requests;
    return IRIS_OK;
}

iris_status_t iris_i_proxy_open(struct iris_heap *heap,
                                struct iris_channel *channel,
                                const struct iris_kernel *update,
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
    proxy->own = (struct iris_target){.heap = heap, .update = update};
    channel->taken = note_taken;
    channel->lost = note_lost_rank;
    channel->returned = note_returned;
    channel->arg = proxy;
    proxy->targets = calloc(num_ranks, sizeof proxy->targets[0]);
    proxy->refused_of = calloc(num_ranks, sizeof proxy->refused_of[0]);
    if (proxy->targets == NULL || proxy->refused_of == NULL) {
        iris_i_fail(NULL, status, "no memory for a proxy");
    } else {
        status = make_ring(proxy);
    }
    if (status == IRIS_OK) {
        proxy->steps.channel = channel;
        proxy->steps.polls = update != NULL;
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

uint64_t iris_i_proxy_requests(const struct iris_proxy *proxy)
{
    return proxy->own.pinned.device +
           offsetof(struct iris_far_shared, requests);
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
