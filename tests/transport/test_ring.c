/* SPDX-License-Identifier: MIT
 *
 * The states of the ring's slots (device/core/ring.h), with the test as the
 * lane and a fake channel as the other rank.
 */
#include "config.h"

#include "transport/transport.h"

#include <iris/device/core/amo.h>

#include "support/harness.h"
#include "transport/internal.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LAPS 5

/* What the other rank does in the next turn. */
enum deed { NOTHING, ANSWERS, VANISHES };

static struct {
    struct iris_channel base;
    atomic_int sends; /* number of messages so far, fences included */
    atomic_int fences;
    struct iris_far_message last;   /* of those that are not fences */
    struct iris_far_message answer; /* for ANSWERS */
    atomic_int deed;                /* enum deed */
    atomic_int full;                /* 1: requests wait */
} fake;

static int fake_send(struct iris_channel *channel, int rank,
                     const struct iris_far_message *message, const void *data,
                     int stays)
{
    if (message->op == IRIS_OP_FENCE) {
        atomic_fetch_add(&fake.fences, 1);
    } else {
        fake.last = *message;
    }
    atomic_fetch_add(&fake.sends, 1);
    return 0;
}

static void fake_recall(struct iris_channel *channel, int rank)
{
}

static int fake_is_full(struct iris_channel *channel, int rank)
{
    return fake.full;
}

static int fake_turn(struct iris_channel *channel)
{
    int deed = atomic_load(&fake.deed);

    if (deed == ANSWERS) {
        channel->taken(channel->arg, 1, &fake.answer, &fake.answer.value);
    } else if (deed == VANISHES) {
        channel->lost(channel->arg, 1, "it has vanished");
    }
    atomic_store(&fake.deed, NOTHING);
    return deed != NOTHING;
}

static void fake_wait(struct iris_channel *channel, int timeout_ms)
{
    (void)iris_i_bell_wait(channel->bell, IRIS_NS_PER_MS);
}

static void fake_close(struct iris_channel *channel)
{
    close(channel->bell);
}

static const struct iris_log job = {.num_ranks = 2};
static struct iris_heap *heap;
static struct iris_proxy *proxy;
static struct iris_dev_ring *ring;

static void begin(void)
{
    static const struct iris_channel_ops ops = {.send = fake_send,
                                                .recall = fake_recall,
                                                .is_full = fake_is_full,
                                                .turn = fake_turn,
                                                .wait = fake_wait,
                                                .close = fake_close};

    memset(&fake, 0, sizeof fake);
    fake.base.ops = &ops;
    fake.base.bell = iris_i_bell_open();
    heap = calloc(1, sizeof *heap);
    heap->log = &job;
    assert_int_equal(iris_i_proxy_open(heap, &fake.base, NULL, &proxy),
                     IRIS_OK);
    ring = iris_i_proxy_far(proxy).ring;
}

static void end(void)
{
    iris_i_proxy_close(proxy);
    free(heap);
}

static uint64_t read_word(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_ACQUIRE);
}

static void await_word(const uint64_t *word, uint64_t value)
{
    while (read_word(word) != value) {
        sched_yield();
    }
}

/* A taken ticket's request; returns the ticket. */
static uint64_t post(enum iris_op op, uint64_t value, int answered)
{
    iris_d_request_t request = {op,
                                1,
                                NULL,
                                8,
                                IRIS_D_KIND_u64,
                                value,
                                0,
                                op == IRIS_OP_FENCE,
                                answered != 0};
    uint64_t ticket;

    while (!iris_d_ring_take(ring, &ticket)) {
        sched_yield();
    }
    iris_d_ring_post(ring, ticket, request, 8 * ticket);
    return ticket;
}

static void await_sends(int count)
{
    while (fake.sends != count) {
        sched_yield();
    }
}

/* The other rank's answer, in the proxy's next turn. */
static void answer(enum iris_op op, uint64_t ticket, uint64_t value,
                   int refused)
{
    fake.answer = (struct iris_far_message){.op = (uint8_t)op,
                                            .answers = 1,
                                            .refused = (uint8_t)refused,
                                            .bytes = 8,
                                            .ticket = ticket,
                                            .value = value};
    atomic_store(&fake.deed, ANSWERS);
    while (fake.deed != NOTHING) {
        sched_yield();
    }
}

static TEST(slots_carry_the_requests_of_many_laps)
{
    begin();
    for (uint64_t i = 0; i < LAPS * IRIS_RING_SLOTS; i++) {
        assert_int_equal(post(IRIS_OP_STORE, i + 7, 0), i);
        await_sends((int)i + 1);
        assert_int_equal(fake.last.op, IRIS_OP_STORE);
        assert_int_equal(fake.last.kind, IRIS_D_KIND_u64);
        assert_int_equal(fake.last.bytes, 8);
        assert_int_equal(fake.last.ticket, i);
        assert_int_equal(fake.last.offset, 8 * i);
        assert_int_equal(fake.last.value, i + 7);
    }
    await_word(&ring->requests->tail, LAPS * IRIS_RING_SLOTS);
    assert_int_equal(ring->requests->acked, 0);
    end();
}

static TEST(a_full_ring_gives_no_ticket)
{
    uint64_t ticket;

    begin();
    fake.full = 1;
    for (uint64_t i = 0; i < IRIS_RING_SLOTS; i++) {
        assert_int_equal(post(IRIS_OP_STORE, 0, 0), i);
    }
    assert_false(iris_d_ring_take(ring, &ticket));
    assert_int_equal(ring->head, IRIS_RING_SLOTS);
    fake.full = 0;
    while (!iris_d_ring_take(ring, &ticket)) {
        sched_yield();
    }
    assert_int_equal(ticket, IRIS_RING_SLOTS);
    end();
}

/* In both orders; later slots that are done do not pass it. */
static TEST(an_answered_slot_is_free_once_its_lane_has_left_it)
{
    begin();
    for (uint64_t i = 0; i < 2; i++) {
        uint64_t ticket = post(IRIS_OP_LOAD, 0, 1);

        assert_int_equal(post(IRIS_OP_STORE, 0, 0), ticket + 1);
        await_sends(2 * (int)i + 2);
        assert_int_equal(iris_d_ring_answer(ring, ticket), 0);
        if (i == 0) {
            iris_d_ring_leave(ring, ticket);
        }
        answer(IRIS_OP_ATOMIC_ADD, ticket, 0, 0); /* of another request */
        answer(IRIS_OP_LOAD, ticket + 1, 0, 0);
        answer(IRIS_OP_LOAD, ticket + 2, 0, 0);
        assert_int_equal(iris_d_ring_answer(ring, ticket), 0);
        assert_int_equal(read_word(&ring->requests->tail), ticket);
        answer(IRIS_OP_LOAD, ticket, 42 + i, 0);
        assert_int_equal(iris_d_ring_answer(ring, ticket), IRIS_ANSWER_HERE);
        assert_int_equal(iris_d_ring_slot(ring, ticket)->result, 42 + i);
        if (i == 1) {
            assert_int_equal(read_word(&ring->requests->tail), ticket);
            iris_d_ring_leave(ring, ticket);
        }
        await_word(&ring->requests->tail, ticket + 2);
    }
    end();
}

/* Only a fence that its targets have answered is acked, after the count of what
 * they refused. */
static TEST(refusals_are_counted_before_the_fence_is_acked)
{
    begin();
    (void)post(IRIS_OP_STORE, 0, 0);
    assert_int_equal(post(IRIS_OP_FENCE, 0, 0), 1);
    while (fake.fences != 1) {
        sched_yield();
    }
    assert_int_equal(read_word(&ring->requests->acked), 0);
    answer(IRIS_OP_FENCE, 0, 0, 1);
    await_word(&ring->requests->acked, 2);
    assert_int_equal(ring->requests->refused, 1);
    (void)post(IRIS_OP_STORE, 0, 0);
    (void)post(IRIS_OP_FENCE, 0, 0);
    while (fake.fences != 2) {
        sched_yield();
    }
    answer(IRIS_OP_FENCE, 0, 0, 0);
    await_word(&ring->requests->acked, 4);
    assert_int_equal(ring->requests->refused, 1);
    end();
}

static TEST(a_request_that_its_target_refuses_says_so)
{
    uint64_t ticket;

    begin();
    ticket = post(IRIS_OP_ATOMIC_ADD, 1, 1);
    await_sends(1);
    answer(IRIS_OP_ATOMIC_ADD, ticket, 0, 1);
    assert_int_equal(iris_d_ring_answer(ring, ticket), IRIS_ANSWER_REFUSED);
    end();
}

/* Requests before and after the loss are answered. No ack covers the store. */
static TEST(a_lost_rank_answers_nothing_but_the_ring_does)
{
    uint64_t ticket;

    begin();
    ticket = post(IRIS_OP_LOAD, 0, 1);
    (void)post(IRIS_OP_STORE, 0, 0);
    await_sends(2);
    atomic_store(&fake.deed, VANISHES);
    await_word(&ring->requests->lost, 2);
    assert_int_equal(iris_d_ring_answer(ring, ticket), IRIS_ANSWER_LOST);
    iris_d_ring_leave(ring, ticket);
    ticket = post(IRIS_OP_LOAD, 0, 1);
    while (iris_d_ring_answer(ring, ticket) != IRIS_ANSWER_LOST) {
        sched_yield();
    }
    iris_d_ring_leave(ring, ticket);
    await_word(&ring->requests->tail, ticket + 1);
    assert_true(ring->requests->acked <= 1); /* not the second request */
    end();
}

TEST_GROUP(unit);
