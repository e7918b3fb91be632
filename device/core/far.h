/* SPDX-License-Identifier: MIT
 *
 * Operations on ranks whose heaps are not mapped here: requests to this rank's
 * proxy (ring.h). Kernels for GPUs have them only if IRIS_FAR is 1: without it a
 * kernel has no code for them, and an access to such a rank faults. CPUs and
 * GPUs share all but the first section.
 */
#ifndef IRIS_DEVICE_FAR_H
#define IRIS_DEVICE_FAR_H

#include <iris/device/watch/op.h>
#include <iris/device/core/ring.h>
#include <iris/device/core/translate.h>
#include <iris/device/core/vector.h>

#if IRIS_ON_CPU || IRIS_FAR
/* 1 if the rank's heap is not mapped here. */
IRIS_DEVICE iris_bool_t iris_d_is_far(iris_dev_t dev, int rank)
{
    int known = iris_d_no_rank(dev, rank) ? dev.rank : rank;

    return iris_d_load_constant(&dev.heap_bases[known]) == 0;
}

/* The request of one operation to a rank. */
typedef struct iris_d_request {
    enum iris_op op;
    int rank;
    const void *ptr; /* on this rank's heap */
    size_t bytes;
    int kind; /* enum iris_d_kind; for atomics, like the next two */
    uint64_t value;
    uint64_t expected;
    iris_bool_t releases;
    iris_bool_t answered;
} iris_d_request_t;

/* ---- Differences between targets ---- */

#if IRIS_ON_CPU
/* A lane as a user of the ring: its workgroup. */
typedef struct iris_cpu_wg iris_d_far_t;
#define IRIS_D_FAR_APART IRIS_CPU_COLD

/* The workgroup of a lane. The target has one if the library does not run it. */
IRIS_DEVICE iris_d_far_t *iris_d_far_lane(struct iris_cpu_wg *cpu)
{
#if IRIS_D_WATCHED
    return cpu == NULL ? IRIS_D_FAR_OWN() : cpu;
#else
    return cpu;
#endif
}

#if IRIS_D_WATCHED
IRIS_DEVICE iris_dev_t iris_d_far_dev(const iris_d_far_t *self)
{
    static iris_dev_t none;
    iris_dev_t dev = none;

    dev.heap_bases = self->heap_bases;
    return dev;
}
#endif

IRIS_DEVICE void iris_d_far_copy(void *to, const void *from, size_t bytes)
{
    iris_d_copy_bytes(to, from, bytes);
}
#else
typedef struct iris_d_far {
    iris_dev_t dev;
    struct iris_dev_ring *ring;
    const char *heap_base;
    int rank;
    uint64_t awaited; /* as in struct iris_cpu_wg */
    iris_bool_t posted;
    uint32_t polls;
    uint64_t wait_start; /* 0: not known yet */
} iris_d_far_t;
#define IRIS_D_FAR_APART IRIS_DEVICE

IRIS_DEVICE iris_d_far_t iris_d_far_self(iris_dev_t dev)
{
    iris_d_far_t self = {dev, NULL, (const char *)dev.heap_base, dev.rank, 0, 0,
                         0,   0};

    self.ring =
        (struct iris_dev_ring *)iris_d_global((uintptr_t)iris_d_load_late(
            &iris_d_own_words(dev)[IRIS_CONTEXT_OWN_RING]));
    return self;
}

IRIS_DEVICE iris_dev_t iris_d_far_dev(const iris_d_far_t *self)
{
    return self->dev;
}

/* Words of 8 bytes where both sides allow it. */
IRIS_DEVICE void iris_d_far_copy(void *to, const void *from, size_t bytes)
{
    size_t at = 0;

    if ((((uintptr_t)to | (uintptr_t)from) & 7u) == 0) {
        for (; at + 8 <= bytes; at += 8) {
            *(iris_d_u64_t *)((char *)to + at) =
                *(const iris_d_u64_t *)((const char *)from + at);
        }
    }
    for (; at < bytes; at++) {
        ((char *)to)[at] = ((const char *)from)[at];
    }
}
#endif

#if IRIS_D_WATCHED
/* Ends the lane as another wait's end would, once it has left its slot. */
IRIS_DEVICE void iris_d_far_leave(iris_d_far_t *self)
{
    if (self->awaited != 0) {
        iris_d_store(&((struct iris_dev_requests *)iris_d_global(
                           (uintptr_t)self->ring->requests))
                          ->slots[(self->awaited - 1) % IRIS_RING_SLOTS]
                          .left,
                     8, self->awaited,
                     iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    }
    iris_d_end_lane();
}

/* Reports the wait for the proxy; all waiting lanes end. A refusal has no time. */
IRIS_DEVICE void iris_d_far_report(iris_d_far_t *self, uint64_t waited)
{
    struct iris_dev_watch *watch = iris_d_watch(iris_d_far_dev(self));
    int64_t *claim =
        &iris_d_own_words(iris_d_far_dev(self))[IRIS_CONTEXT_OWN_CLAIM];
    iris_d_order_t release = iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
    iris_bool_t first =
        watch != NULL &&
        iris_d_cas(claim, sizeof *claim, 0, 1,
                   iris_d_order(IRIS_RELAXED, IRIS_SCOPE_AGENT)) == 0;

    if (first) {
        watch->rank = self->rank;
        watch->op = IRIS_OP_FENCE;
        watch->cmp = IRIS_CMP_GE;
        watch->workgroup = iris_d_wg_id();
        watch->lane = iris_d_lane();
        watch->bytes = 8;
        watch->offset = 0;
        watch->expected = self->awaited;
        watch->seen = 0;
        watch->waited = waited;
    }
    if (watch != NULL) {
        iris_d_store(&watch->stop, sizeof watch->stop, 1, release);
    }
    if (first) {
        iris_d_store(&watch->ready, sizeof watch->ready, 1, release);
    }
    iris_d_far_leave(self);
}

/* Between two polls. A lost rank ends the wait: the host knows of it, too. */
IRIS_DEVICE void iris_d_far_look(iris_d_far_t *self)
{
    struct iris_dev_watch *watch;
    uint64_t timeout, now;

    iris_d_pause();
    IRIS_D_PAUSED();
    if (IRIS_UNLIKELY(++self->polls % IRIS_D_POLLS_PER_CHECK != 0)) {
        return;
    }
    watch = iris_d_watch(iris_d_far_dev(self));
    if (watch == NULL) {
        return;
    }
    if (iris_d_load(&watch->stop, sizeof watch->stop,
                    iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM)) != 0) {
        iris_d_far_leave(self);
    }
    timeout = (uint64_t)iris_d_load_late(
        &iris_d_own_words(iris_d_far_dev(self))[IRIS_CONTEXT_OWN_TIMEOUT]);
    now = iris_d_clock();
    self->wait_start = self->wait_start == 0 ? now : self->wait_start;
    if (timeout != 0 && now - self->wait_start >= timeout) {
        iris_d_far_report(self, now - self->wait_start);
    }
}

/* Whether GPUs' rules are the lane's. Their proxy polls while kernels run, and
 * another rank's loss ends their waits by the watch. */
IRIS_DEVICE iris_bool_t iris_d_far_is_watched(const iris_d_far_t *self)
{
#if IRIS_ON_CPU
    return self->heap_bases != NULL;
#else
    (void)self;
    return 1;
#endif
}
#endif

/* Before the first poll of a wait, and between two. */
IRIS_DEVICE void iris_d_far_restart(iris_d_far_t *self)
{
    self->polls = 0;
#if IRIS_D_WATCHED
    self->wait_start = 0;
#endif
}

IRIS_DEVICE void iris_d_far_poll(iris_d_far_t *self)
{
#if IRIS_D_WATCHED
    if (iris_d_far_is_watched(self)) {
        iris_d_far_look(self);
        return;
    }
#endif
#if IRIS_ON_CPU
    iris_cpu_poll(self);
#endif
}

/* The thread of a CPU's proxy may sleep. */
IRIS_DEVICE void iris_d_far_posted(iris_d_far_t *self, enum iris_op op,
                                   size_t bytes)
{
#if IRIS_D_WATCHED
    if (iris_d_far_is_watched(self)) {
        return;
    }
#endif
#if IRIS_ON_CPU
    iris_cpu_posted(self, op, bytes);
#else
    (void)op, (void)bytes;
#endif
}

IRIS_DEVICE void iris_d_far_refused(iris_d_far_t *self)
{
#if IRIS_D_WATCHED
    if (iris_d_far_is_watched(self)) {
        iris_d_far_report(self, 0);
    }
#endif
#if IRIS_ON_CPU
    iris_cpu_end(self, "an access to another node was refused: it touches "
                       "memory of its target that is not allocated");
#endif
}

/* ---- The ring (ring.h) ---- */

IRIS_DEVICE uint64_t iris_d_ring_load(const uint64_t *word, iris_sem_t sem,
                                      iris_scope_t scope)
{
    return iris_d_load(word, sizeof *word, iris_d_order(sem, scope));
}

IRIS_DEVICE void iris_d_ring_store(uint64_t *word, uint64_t value,
                                   iris_scope_t scope)
{
    iris_d_store(word, sizeof *word, value, iris_d_order(IRIS_RELEASE, scope));
}

IRIS_DEVICE struct iris_dev_requests *
iris_d_ring_requests(struct iris_dev_ring *ring)
{
    return (struct iris_dev_requests *)iris_d_global((uintptr_t)ring->requests);
}

IRIS_DEVICE struct iris_dev_slot *iris_d_ring_slot(struct iris_dev_ring *ring,
                                                   uint64_t ticket)
{
    return &iris_d_ring_requests(ring)->slots[ticket % IRIS_RING_SLOTS];
}

/* The parity of a ticket's commit word. */
IRIS_DEVICE uint64_t iris_d_ring_parity(uint64_t ticket)
{
    return ~(ticket / IRIS_RING_SLOTS) & IRIS_RING_PARITY;
}

/* Whether the slot of `ticket` is free. A lane that acquires `tail_seen` sees all
 * that the proxy did ahead of its release of `tail`. */
IRIS_DEVICE iris_bool_t iris_d_ring_has_room(struct iris_dev_ring *ring,
                                             uint64_t ticket)
{
    uint64_t tail =
        iris_d_ring_load(&ring->tail_seen, IRIS_ACQUIRE, IRIS_SCOPE_AGENT);

    if ((int64_t)(ticket - tail) < (int64_t)IRIS_RING_SLOTS) {
        return 1;
    }
    tail = iris_d_ring_load(&iris_d_ring_requests(ring)->tail, IRIS_ACQUIRE,
                            IRIS_SCOPE_SYSTEM);
    iris_d_ring_store(&ring->tail_seen, tail, IRIS_SCOPE_AGENT);
    return (int64_t)(ticket - tail) < (int64_t)IRIS_RING_SLOTS;
}

/* Tries to take a ticket. 0: the ring is full, or another lane was faster. */
IRIS_DEVICE iris_bool_t iris_d_ring_take(struct iris_dev_ring *ring,
                                         uint64_t *ticket_p)
{
    uint64_t ticket =
        iris_d_ring_load(&ring->head, IRIS_RELAXED, IRIS_SCOPE_AGENT);

    *ticket_p = ticket;
    return iris_d_ring_has_room(ring, ticket) &&
           iris_d_cas(&ring->head, sizeof ring->head, ticket, ticket + 1,
                      iris_d_order(IRIS_RELAXED, IRIS_SCOPE_AGENT)) == ticket;
}

/* Posts a taken request. Its data is in the slot already. */
IRIS_DEVICE void iris_d_ring_post(struct iris_dev_ring *ring, uint64_t ticket,
                                  iris_d_request_t request, uint64_t offset)
{
    struct iris_dev_slot *slot = iris_d_ring_slot(ring, ticket);
    uint64_t commit = iris_d_ring_parity(ticket) |
                      (request.answered ? IRIS_RING_ANSWERED : 0) |
                      (request.releases ? IRIS_RING_RELEASES : 0) |
                      (uint64_t)request.op << IRIS_RING_OP_SHIFT |
                      (uint64_t)request.kind << IRIS_RING_KIND_SHIFT |
                      (uint64_t)request.bytes << IRIS_RING_BYTES_SHIFT |
                      (uint64_t)request.rank << IRIS_RING_RANK_SHIFT;

    iris_d_store_pair((iris_d_u64_t *)&slot->offset, offset, request.expected);
    iris_d_release_pair((iris_d_u64_t *)&slot->value, request.value, commit);
}

/* Whether the answer to a request is here: enum iris_dev_answer, or 0. */
IRIS_DEVICE uint64_t iris_d_ring_answer(struct iris_dev_ring *ring,
                                        uint64_t ticket)
{
    uint64_t answer = iris_d_ring_load(&iris_d_ring_slot(ring, ticket)->answer,
                                       IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM);

    return answer >> IRIS_ANSWER_BITS == ticket
               ? answer & ((1u << IRIS_ANSWER_BITS) - 1)
               : 0;
}

/* The lane needs the slot of its answered request no longer. */
IRIS_DEVICE void iris_d_ring_leave(struct iris_dev_ring *ring, uint64_t ticket)
{
    iris_d_ring_store(&iris_d_ring_slot(ring, ticket)->left, ticket + 1,
                      IRIS_SCOPE_SYSTEM);
}

/* ---- Lanes ---- */

/* The most bytes of a put, and of a get's answer, that travel in `value` and
 * `result`. */
#define IRIS_D_FAR_WORD sizeof(uint64_t)

/* These bytes as a value, and back. No address of a value is taken, so that it
 * stays in a register. */
IRIS_DEVICE uint64_t iris_d_far_gather(const void *from, size_t bytes)
{
    uint64_t value = 0;
    size_t i;

    for (i = 0; i < bytes; i++) {
        value |= (uint64_t)((const unsigned char *)from)[i] << 8 * i;
    }
    return value;
}

IRIS_DEVICE void iris_d_far_scatter(void *to, uint64_t value, size_t bytes)
{
    size_t i;

    for (i = 0; i < bytes; i++) {
        ((unsigned char *)to)[i] = (unsigned char)(value >> 8 * i);
    }
}

/* Tries to post a request, with the bytes of a put. 0: not now. Lanes of a
 * wavefront may run in lockstep. A lane with a ticket must never wait for
 * a lane without one. So compilers must not move the steps after it behind
 * the loop around this. */
IRIS_DEVICE iris_bool_t iris_d_far_post(iris_d_far_t *self,
                                        iris_d_request_t request,
                                        const void *data, uint64_t *ticket_p)
{
    if (!iris_d_ring_take(self->ring, ticket_p)) {
        iris_d_far_posted(self, IRIS_OP_PUT, 0); /* the proxy frees slots */
        iris_d_far_poll(self);
        return 0;
    }
    if (data != NULL && request.bytes > IRIS_D_FAR_WORD) {
        iris_d_far_copy(iris_d_ring_slot(self->ring, *ticket_p)->data, data,
                        request.bytes);
    }
    iris_d_ring_post(self->ring, *ticket_p, request,
                     (uintptr_t)request.ptr - (uintptr_t)self->heap_base);
    self->awaited = request.answered ? *ticket_p + 1 : 0;
    self->posted = 1;
    iris_d_far_restart(self);
    iris_d_far_posted(self, request.op, request.bytes);
    return iris_d_hidden(1) != 0;
}

IRIS_DEVICE uint64_t iris_d_far_send_one(iris_d_far_t *self,
                                         iris_d_request_t request,
                                         const void *data)
{
    uint64_t ticket;

    iris_d_far_restart(self);
    while (!iris_d_far_post(self, request, data, &ticket)) {
    }
    return ticket;
}

/* The answer to a request: its value, or with `to` its bytes. One loop posts
 * and waits: if a lane of a wavefront has posted, it can leave its slot while
 * the other lanes still look for free ones. */
IRIS_DEVICE uint64_t iris_d_far_ask(iris_d_far_t *self,
                                    iris_d_request_t request, void *to)
{
    iris_bool_t posted = 0;
    uint64_t ticket = 0, answer = 0, value = 0;

    request.answered = 1;
    iris_d_far_restart(self);
    while (answer != IRIS_ANSWER_HERE) {
        if (!posted) {
            posted = iris_d_far_post(self, request, NULL, &ticket);
            continue;
        }
        answer = iris_d_ring_answer(self->ring, ticket);
        if (answer == IRIS_ANSWER_HERE) {
            struct iris_dev_slot *slot = iris_d_ring_slot(self->ring, ticket);

            value = slot->result;
            if (to != NULL) {
                iris_d_far_copy(to, slot->data, request.bytes);
            }
            self->awaited = 0;
            iris_d_ring_leave(self->ring, ticket);
            answer = iris_d_hidden(answer);
        } else if (answer == IRIS_ANSWER_REFUSED) {
            iris_d_far_refused(self);
        } else { /* also if the rank is lost */
            iris_d_far_poll(self);
        }
    }
    return value;
}

#if !IRIS_ON_CPU
/* A ticket, for a request that several lanes write. */
IRIS_DEVICE uint64_t iris_d_far_take(iris_d_far_t *self)
{
    uint64_t ticket;

    iris_d_far_restart(self);
    while (!iris_d_ring_take(self->ring, &ticket)) {
        iris_d_far_poll(self);
    }
    self->posted = 1;
    return ticket;
}

/* Waits for the answer to a posted request, and leaves it in the slot. */
IRIS_DEVICE void iris_d_far_answer(iris_d_far_t *self, uint64_t ticket)
{
    uint64_t answer;

    iris_d_far_restart(self);
    while ((answer = iris_d_ring_answer(self->ring, ticket)) !=
           IRIS_ANSWER_HERE) {
        if (answer == IRIS_ANSWER_REFUSED) {
            iris_d_far_refused(self);
        }
        iris_d_far_poll(self);
    }
}
#endif

/* Copies from this rank's `from`, which may be overwritten once this
 * returns. */
IRIS_D_FAR_APART void iris_d_far_put(iris_d_far_t *self, const void *from,
                                     const void *to_ptr, size_t bytes, int rank)
{
    iris_d_request_t request = {IRIS_OP_PUT, rank, to_ptr, 0, 0, 0, 0, 0, 0};
    size_t at;

    for (at = 0; at < bytes; at += request.bytes) {
        request.ptr = (const char *)to_ptr + at;
        request.bytes =
            bytes - at < IRIS_RING_BYTES ? bytes - at : IRIS_RING_BYTES;
        request.value =
            request.bytes <= IRIS_D_FAR_WORD
                ? iris_d_far_gather((const char *)from + at, request.bytes)
                : 0;
        (void)iris_d_far_send_one(self, request, (const char *)from + at);
    }
}

/* Copies to this rank's `to`. The bytes have arrived when this returns. */
IRIS_D_FAR_APART void iris_d_far_get(iris_d_far_t *self, void *to,
                                     const void *from_ptr, size_t bytes,
                                     int rank)
{
    iris_d_request_t request = {IRIS_OP_GET, rank, from_ptr, 0, 0, 0, 0, 0, 1};
    size_t at;

    for (at = 0; at < bytes; at += request.bytes) {
        request.ptr = (const char *)from_ptr + at;
        request.bytes =
            bytes - at < IRIS_RING_BYTES ? bytes - at : IRIS_RING_BYTES;
        if (request.bytes <= IRIS_D_FAR_WORD) {
            iris_d_far_scatter((char *)to + at,
                               iris_d_far_ask(self, request, NULL),
                               request.bytes);
        } else {
            (void)iris_d_far_ask(self, request, (char *)to + at);
        }
    }
}

/* An atomic; an atomic store returns 0 without an answer. */
IRIS_D_FAR_APART uint64_t iris_d_far_amo(iris_d_far_t *self,
                                         iris_d_request_t request)
{
    if (request.op != IRIS_OP_STORE) {
        return iris_d_far_ask(self, request, NULL);
    }
    (void)iris_d_far_send_one(self, request, NULL);
    return 0;
}

/* Ends the kernel if requests were refused that no lane has reported. */
IRIS_DEVICE void iris_d_far_tell_refused(iris_d_far_t *self)
{
    struct iris_dev_ring *ring = self->ring;
    uint64_t told =
        iris_d_ring_load(&ring->told, IRIS_RELAXED, IRIS_SCOPE_AGENT);
    uint64_t refused = iris_d_ring_load(&iris_d_ring_requests(ring)->refused,
                                        IRIS_RELAXED, IRIS_SCOPE_SYSTEM);

    if (told < refused &&
        iris_d_cas(&ring->told, sizeof ring->told, told, refused,
                   iris_d_order(IRIS_RELAXED, IRIS_SCOPE_AGENT)) == told) {
        iris_d_far_refused(self);
    }
}

/* Waits until all requests that this rank's kernels have posted, as far as this
 * lane knows, have reached their targets. */
IRIS_D_FAR_APART void iris_d_far_flush(iris_d_far_t *self)
{
    iris_d_request_t request = {
        IRIS_OP_FENCE, self->rank, self->heap_base, 0, 0, 0, 0, 1, 0};
    struct iris_dev_ring *ring = self->ring;
    uint64_t issue =
        iris_d_ring_load(&ring->head, IRIS_RELAXED, IRIS_SCOPE_AGENT);

    if (iris_d_ring_load(&iris_d_ring_requests(ring)->acked, IRIS_ACQUIRE,
                         IRIS_SCOPE_SYSTEM) < issue) {
        issue = iris_d_far_send_one(self, request, NULL) + 1;
        while (iris_d_ring_load(&iris_d_ring_requests(ring)->acked,
                                IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM) < issue) {
            iris_d_far_poll(self);
        }
    }
    iris_d_far_tell_refused(self);
}

#if IRIS_ON_CPU
/* ---- Single elements ------------------------------------------------------
 *
 * Lane operations are compiled for addresses in mapped memory. If a rank is
 * far, the hooks replace the address by that of a word of the workgroup. They
 * fetch the word before a load, and send it after a store. */

/* Whether `place` is `ptr` translated to a heap that is not mapped. */
IRIS_DEVICE iris_bool_t iris_d_place_is_far(const struct iris_cpu_wg *cpu,
                                            const void *ptr, const void *place)
{
    return cpu != NULL && cpu->ring != NULL &&
           (uintptr_t)place == (uintptr_t)ptr - (uintptr_t)cpu->heap_base;
}

IRIS_CPU_COLD const void *iris_d_far_from(struct iris_cpu_wg *cpu,
                                          const void *ptr, const void *place,
                                          int rank, size_t bytes)
{
    if (!iris_d_place_is_far(cpu, ptr, place)) {
        return place;
    }
    iris_d_far_get(cpu, &cpu->words[0], ptr, bytes, rank);
    return &cpu->words[0];
}

IRIS_CPU_COLD void *iris_d_far_to(struct iris_cpu_wg *cpu, const void *ptr,
                                  void *place)
{
    return iris_d_place_is_far(cpu, ptr, place) ? &cpu->words[2] : place;
}

IRIS_CPU_COLD void iris_d_far_send(struct iris_cpu_wg *cpu, const void *ptr,
                                   const void *place, int rank, size_t bytes)
{
    if (cpu != NULL && place == (const void *)&cpu->words[2]) {
        iris_d_far_put(cpu, place, ptr, bytes, rank);
    }
}

#define IRIS_D_FAR_FROM(dev, ptr, place, rank, bytes) \
    ((place) =                                        \
         iris_d_far_from(iris_d_far_lane((dev).cpu), ptr, place, rank, bytes))
#define IRIS_D_FAR_TO(dev, ptr, place) \
    ((place) = iris_d_far_to(iris_d_far_lane((dev).cpu), ptr, place))
#define IRIS_D_FAR_SEND(dev, ptr, place, rank, bytes) \
    iris_d_far_send(iris_d_far_lane((dev).cpu), ptr, place, rank, bytes)
/* Ahead of a release that ranks with mapped heaps see. */
#define IRIS_D_FAR_RELEASE(dev, order)                                  \
    do {                                                                \
        if (IRIS_UNLIKELY((dev).ring != 0) && iris_d_releases(order) && \
            (order).scope == IRIS_SCOPE_SYSTEM) {                       \
            iris_d_far_flush(iris_d_far_lane((dev).cpu));               \
        }                                                               \
    } while (0)
#else /* single elements on GPUs, as values: no address of one is taken */
IRIS_DEVICE_APART uint64_t iris_d_far_load(iris_dev_t dev, const void *ptr,
                                           size_t bytes, int rank)
{
    iris_d_far_t self = iris_d_far_self(dev);
    iris_d_request_t request = {IRIS_OP_GET, rank, ptr, bytes, 0, 0, 0, 0, 1};

    return iris_d_far_ask(&self, request, NULL);
}

IRIS_DEVICE_APART void iris_d_far_store(iris_dev_t dev, const void *ptr,
                                        uint64_t bits, size_t bytes, int rank)
{
    iris_d_far_t self = iris_d_far_self(dev);
    iris_d_request_t request = {IRIS_OP_PUT, rank, ptr, bytes, 0,
                                bits,        0,    0,   0};

    (void)iris_d_far_send_one(&self, request, NULL);
}

/* Ahead of a release that ranks with mapped heaps see. */
IRIS_DEVICE_APART void iris_d_far_quiet(iris_dev_t dev)
{
    iris_d_far_t self = iris_d_far_self(dev);

    if (self.ring != NULL) {
        iris_d_far_flush(&self);
    }
}

#define IRIS_D_FAR_READ_BITS(dev, ptr, rank, bytes, access) \
    (IRIS_UNLIKELY(iris_d_is_far(dev, rank))                \
         ? iris_d_far_load(dev, ptr, bytes, rank)           \
         : (access))
#define IRIS_D_FAR_READ(name, dev, ptr, rank, access)           \
    (IRIS_UNLIKELY(iris_d_is_far(dev, rank))                    \
         ? iris_d_value_##name(                                 \
               iris_d_far_load(dev, ptr, sizeof(access), rank)) \
         : (access))
#define IRIS_D_FAR_WRITE(dev, ptr, rank, bits, bytes, access) \
    do {                                                      \
        if (IRIS_UNLIKELY(iris_d_is_far(dev, rank))) {        \
            iris_d_far_store(dev, ptr, bits, bytes, rank);    \
        } else {                                              \
            access;                                           \
        }                                                     \
    } while (0)
#define IRIS_D_FAR_READ_QUAD(value, dev, ptr, rank, access)     \
    do {                                                        \
        if (IRIS_UNLIKELY(iris_d_is_far(dev, rank))) {          \
            IRIS_D_UNROLL                                       \
            for (int i = 0; i < 4; i++) {                       \
                (value).words[i] = (uint32_t)iris_d_far_load(   \
                    dev, (const char *)(ptr) + 4 * i, 4, rank); \
            }                                                   \
        } else {                                                \
            (value) = (access);                                 \
        }                                                       \
    } while (0)
#define IRIS_D_FAR_WRITE_QUAD(value, dev, ptr, rank, access)                   \
    do {                                                                       \
        if (IRIS_UNLIKELY(iris_d_is_far(dev, rank))) {                         \
            IRIS_D_UNROLL                                                      \
            for (int i = 0; i < 4; i++) {                                      \
                iris_d_far_store(dev, (char *)(ptr) + 4 * i, (value).words[i], \
                                 4, rank);                                     \
            }                                                                  \
        } else {                                                               \
            access;                                                            \
        }                                                                      \
    } while (0)
#define IRIS_D_FAR_FROM(dev, ptr, place, rank, bytes) ((void)0)
#define IRIS_D_FAR_TO(dev, ptr, place) ((void)0)
#define IRIS_D_FAR_SEND(dev, ptr, place, rank, bytes) ((void)0)
#define IRIS_D_FAR_RELEASE(dev, order)                                      \
    do {                                                                    \
        if (iris_d_releases(order) && (order).scope == IRIS_SCOPE_SYSTEM) { \
            iris_d_far_quiet(dev);                                          \
        }                                                                   \
    } while (0)
#endif /* single elements */
#else  /* no code for ranks of other nodes */
IRIS_DEVICE iris_bool_t iris_d_is_far(iris_dev_t dev, int rank)
{
    (void)dev, (void)rank;
    return 0;
}
#define IRIS_D_FAR_FROM(dev, ptr, place, rank, bytes) ((void)0)
#define IRIS_D_FAR_TO(dev, ptr, place) ((void)0)
#define IRIS_D_FAR_SEND(dev, ptr, place, rank, bytes) ((void)0)
#define IRIS_D_FAR_RELEASE(dev, order) ((void)0)
#endif

#ifndef IRIS_D_FAR_READ /* the hooks do it, or there is nothing to do */
#define IRIS_D_FAR_READ_BITS(dev, ptr, rank, bytes, access) (access)
#define IRIS_D_FAR_READ(name, dev, ptr, rank, access) (access)
#define IRIS_D_FAR_WRITE(dev, ptr, rank, bits, bytes, access) (access)
#define IRIS_D_FAR_READ_QUAD(value, dev, ptr, rank, access) ((value) = (access))
#define IRIS_D_FAR_WRITE_QUAD(value, dev, ptr, rank, access) (access)
#endif

#endif /* IRIS_DEVICE_FAR_H */
