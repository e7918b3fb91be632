/* SPDX-License-Identifier: MIT
 *
 * Operations on ranks whose heaps are not mapped here: requests to this rank's
 * proxy (ring.h). CPUs only so far; GPUs reach only mapped heaps.
 */
#ifndef IRIS_DEVICE_FAR_H
#define IRIS_DEVICE_FAR_H

#include <iris/device/watch/op.h>
#include <iris/device/core/ring.h>
#include <iris/device/core/translate.h>

#if IRIS_ON_CPU
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
    int kind; /* enum iris_d_kind; the other members are for atomics only */
    uint64_t value;
    uint64_t expected;
    iris_bool_t releases;
} iris_d_request_t;

IRIS_DEVICE iris_d_order_t iris_d_ring_order(iris_sem_t sem)
{
    return iris_d_order(sem, IRIS_SCOPE_SYSTEM);
}

/* Takes a free slot and its ticket. A workgroup that ends while the ring is
 * full has taken no ticket. */
IRIS_DEVICE struct iris_dev_slot *iris_d_ring_take(struct iris_cpu_wg *cpu,
                                                   struct iris_dev_ring *ring,
                                                   uint64_t *ticket_p)
{
    cpu->polls = 0;
    for (;;) {
        uint64_t ticket =
            iris_d_load(&ring->head, 8, iris_d_ring_order(IRIS_RELAXED));
        struct iris_dev_slot *slot = &ring->slots[ticket % IRIS_RING_SLOTS];
        int64_t ahead = (int64_t)(iris_d_load(&slot->turn, 8,
                                              iris_d_ring_order(IRIS_ACQUIRE)) -
                                  ticket);

        if (ahead < 0) {
            iris_cpu_poll(cpu);
        } else if (ahead == 0 &&
                   iris_d_cas(&ring->head, 8, ticket, ticket + 1,
                              iris_d_ring_order(IRIS_ACQ_REL)) == ticket) {
            *ticket_p = ticket;
            return slot;
        }
    }
}

/* Posts a request, with the bytes of a put. */
IRIS_DEVICE struct iris_dev_slot *iris_d_ring_post(struct iris_cpu_wg *cpu,
                                                   iris_d_request_t request,
                                                   const void *data,
                                                   iris_bool_t answered)
{
    struct iris_dev_ring *ring = cpu->ring;
    uint64_t ticket;
    struct iris_dev_slot *slot = iris_d_ring_take(cpu, ring, &ticket);

    slot->answer = IRIS_ANSWER_WAITING;
    slot->answered = answered;
    slot->op = (uint16_t)request.op;
    slot->kind = (uint16_t)request.kind;
    slot->rank = request.rank;
    slot->bytes = (uint32_t)request.bytes;
    slot->releases = request.releases;
    slot->offset = (uintptr_t)request.ptr - (uintptr_t)cpu->heap_base;
    slot->value = request.value;
    slot->expected = request.expected;
    if (data != NULL) {
        iris_d_copy_bytes(slot->data, data, request.bytes);
    }
    cpu->pending = answered ? slot : NULL;
    cpu->posted = 1;
    iris_d_store(&slot->turn, 8, ticket + 1, iris_d_ring_order(IRIS_RELEASE));
    iris_cpu_posted(cpu, request.op, request.bytes);
    return slot;
}

/* The answer to a request: its value, or with `to` its bytes. */
IRIS_DEVICE uint64_t iris_d_ring_answer(struct iris_cpu_wg *cpu,
                                        struct iris_dev_slot *slot, void *to)
{
    uint64_t answer, value;

    cpu->polls = 0;
    while ((answer = iris_d_load(&slot->answer, 4,
                                 iris_d_ring_order(IRIS_ACQUIRE))) ==
           IRIS_ANSWER_WAITING) {
        iris_cpu_poll(cpu);
    }
    value = slot->value;
    if (to != NULL) {
        iris_d_copy_bytes(to, slot->data, slot->bytes);
    }
    cpu->pending = NULL;
    iris_d_store(&slot->turn, 8, slot->turn - 1 + IRIS_RING_SLOTS,
                 iris_d_ring_order(IRIS_RELEASE));
    if (answer == IRIS_ANSWER_REFUSED) {
        iris_cpu_end(cpu, "an access to another node was refused: it touches "
                          "memory of its target that is not allocated");
    }
    return value;
}

/* Copies from this rank's `from`, which may be overwritten once this
 * returns. */
IRIS_CPU_COLD void iris_d_far_put(struct iris_cpu_wg *cpu, const void *from,
                                  const void *to_ptr, size_t bytes, int rank)
{
    iris_d_request_t request = {IRIS_OP_PUT, rank, to_ptr, 0, 0, 0, 0, 0};
    size_t at;

    for (at = 0; at < bytes; at += request.bytes) {
        request.ptr = (const char *)to_ptr + at;
        request.bytes =
            bytes - at < IRIS_RING_BYTES ? bytes - at : IRIS_RING_BYTES;
        (void)iris_d_ring_post(cpu, request, (const char *)from + at, 0);
    }
}

/* Copies to this rank's `to`. The bytes have arrived when this returns. */
IRIS_CPU_COLD void iris_d_far_get(struct iris_cpu_wg *cpu, void *to,
                                  const void *from_ptr, size_t bytes, int rank)
{
    iris_d_request_t request = {IRIS_OP_GET, rank, from_ptr, 0, 0, 0, 0, 0};
    size_t at;

    for (at = 0; at < bytes; at += request.bytes) {
        request.ptr = (const char *)from_ptr + at;
        request.bytes =
            bytes - at < IRIS_RING_BYTES ? bytes - at : IRIS_RING_BYTES;
        (void)iris_d_ring_answer(cpu, iris_d_ring_post(cpu, request, NULL, 1),
                                 (char *)to + at);
    }
}

/* An atomic; an atomic store returns 0 without an answer. */
IRIS_CPU_COLD uint64_t iris_d_far_amo(struct iris_cpu_wg *cpu,
                                      iris_d_request_t request)
{
    iris_bool_t answered = request.op != IRIS_OP_STORE;
    struct iris_dev_slot *slot = iris_d_ring_post(cpu, request, NULL, answered);

    return answered ? iris_d_ring_answer(cpu, slot, NULL) : 0;
}

/* Waits until all requests that this rank's kernels have posted, as far as this
 * lane knows, have reached their targets. */
IRIS_CPU_COLD void iris_d_far_flush(struct iris_cpu_wg *cpu)
{
    iris_d_request_t request = {
        IRIS_OP_FENCE, cpu->rank, cpu->heap_base, 0, 0, 0, 0, 1};
    struct iris_dev_ring *ring = cpu->ring;

    if (iris_d_load(&ring->head, 8, iris_d_ring_order(IRIS_ACQUIRE)) !=
        iris_d_load(&ring->done, 8, iris_d_ring_order(IRIS_ACQUIRE))) {
        (void)iris_d_ring_answer(cpu, iris_d_ring_post(cpu, request, NULL, 1),
                                 NULL);
    }
}

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
    ((place) = iris_d_far_from((dev).cpu, ptr, place, rank, bytes))
#define IRIS_D_FAR_TO(dev, ptr, place) \
    ((place) = iris_d_far_to((dev).cpu, ptr, place))
#define IRIS_D_FAR_SEND(dev, ptr, place, rank, bytes) \
    iris_d_far_send((dev).cpu, ptr, place, rank, bytes)
/* Ahead of a release that ranks with mapped heaps see. */
#define IRIS_D_FAR_RELEASE(dev, order)                                  \
    do {                                                                \
        if (IRIS_UNLIKELY((dev).ring != 0) && iris_d_releases(order) && \
            (order).scope == IRIS_SCOPE_SYSTEM) {                       \
            iris_d_far_flush((dev).cpu);                                \
        }                                                               \
    } while (0)
#else
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

#endif /* IRIS_DEVICE_FAR_H */
