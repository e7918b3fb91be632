/* SPDX-License-Identifier: MIT
 *
 * Who carries requests to other nodes: the proxy's thread and lanes take turns,
 * one at a time, and each request leaves without help from others. The channel
 * is a fake.
 */
#include "config.h"

#include "transport/transport.h"

#include <iris/device/core/far.h>

#include "support/harness.h"
#include "transport/internal.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LANES 3
#define STEPS 2000 /* by lanes */

static _Thread_local int is_lane;

/* The fake channel, and calls of it so far: [1] by lanes, [0] by the thread. */
static struct {
    struct iris_channel base;
    atomic_int inside; /* number of threads that are in a call */
    atomic_int overlaps;
    atomic_int turns[2];
    atomic_int sends[2];
    atomic_int waits;    /* 1: the thread waits */
    atomic_int full;     /* 1: requests wait until a lane takes a message */
    atomic_int refusals; /* number of requests that wait, or did */
    atomic_int closes;
    atomic_int lends; /* 1: send() leaves the data in place */
    const void *lent; /* the first such data */
} fake;

static int fake_send(struct iris_channel *channel, int rank,
                     const struct iris_far_message *message, const void *data,
                     int stays)
{
    int is_lent = stays && atomic_exchange(&fake.lends, 0);

    fake.lent = is_lent ? data : fake.lent;
    atomic_fetch_add(&fake.sends[is_lane], 1);
    return is_lent;
}

static void fake_recall(struct iris_channel *channel, int rank)
{
    assert_int_equal(rank, 1);
    channel->returned(channel->arg, fake.lent);
    fake.lent = NULL;
}

static int fake_is_full(struct iris_channel *channel, int rank)
{
    atomic_fetch_add(&fake.refusals, fake.full);
    return fake.full;
}

static int fake_turn(struct iris_channel *channel)
{
    atomic_fetch_add(&fake.overlaps, atomic_fetch_add(&fake.inside, 1));
    sched_yield();
    atomic_fetch_add(&fake.turns[is_lane], 1);
    atomic_fetch_sub(&fake.inside, 1);
    return is_lane && atomic_exchange(&fake.full, 0);
}

/* Only a ring ends it. */
static void fake_wait(struct iris_channel *channel, int timeout_ms)
{
    fake.waits = 1;
    (void)iris_i_bell_wait(channel->bell, INT64_MAX);
    fake.waits = 0;
}

static void fake_close(struct iris_channel *channel)
{
    close(channel->bell);
    atomic_fetch_add(&fake.closes, 1);
}

static const struct iris_log job = {.num_ranks = 2};
static struct iris_heap *heap;
static struct iris_proxy *proxy;

static int begin(int any_thread)
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
    fake.base.any_thread = any_thread;
    heap = calloc(1, sizeof *heap);
    heap->log = &job;
    return iris_i_proxy_open(heap, &fake.base, NULL, &proxy);
}

static void end(void)
{
    iris_i_proxy_close(proxy);
    assert_int_equal(fake.closes, 1);
    free(heap);
}

static int carry(void)
{
    const struct iris_far far = iris_i_proxy_far(proxy);

    return far.carry(far.steps);
}

/* Posts a request as a lane does. */
static void post(enum iris_op op, size_t bytes)
{
    const struct iris_far far = iris_i_proxy_far(proxy);
    struct iris_dev_ring *ring = far.ring;
    iris_d_request_t request = {op, 1, NULL, bytes, 0, 0, 0, 0, 0};

    iris_d_ring_post(ring, ring->head++, request, 0);
    far.posted(far.steps, op, bytes);
}

static int sent(void)
{
    return fake.sends[0] + fake.sends[1];
}

static void *run_lane(void *arg)
{
    is_lane = 1;
    while (fake.turns[1] < STEPS) {
        (void)carry();
    }
    return NULL;
}

static TEST(lanes_and_the_thread_exclude_each_other)
{
    pthread_t lanes[LANES];

    assert_int_equal(begin(1), IRIS_OK);
    for (int i = 0; i < LANES; i++) {
        assert_int_equal(pthread_create(&lanes[i], NULL, run_lane, NULL), 0);
    }
    for (int i = 0; i < LANES; i++) {
        pthread_join(lanes[i], NULL);
    }
    while (fake.turns[0] == 0) {
        sched_yield();
    }
    assert_int_equal(fake.overlaps, 0);
    end();
}

/* Once lanes stop, the thread goes on. */
static TEST(the_thread_sends_puts_after_a_nap)
{
    assert_int_equal(begin(1), IRIS_OK);
    for (int i = 1; i <= 20; i++) {
        is_lane = 1;
        carry();
        is_lane = 0;
        post(IRIS_OP_PUT, 8);
        while (sent() != i) {
            sched_yield();
        }
    }
    assert_int_equal(fake.sends[1], 0);
    end();
}

static TEST(a_put_wakes_a_thread_that_listens)
{
    assert_int_equal(begin(1), IRIS_OK);
    while (!fake.waits) {
        sched_yield();
    }
    post(IRIS_OP_PUT, 8);
    while (sent() != 1) {
        sched_yield();
    }
    end();
}

/* The message would have woken the thread, but a lane took it. */
static TEST(a_message_wakes_a_thread_that_listens)
{
    assert_int_equal(begin(1), IRIS_OK);
    while (!fake.waits) {
        sched_yield();
    }
    fake.full = 1;
    post(IRIS_OP_PUT, 8);
    while (!fake.refusals || !fake.waits) {
        sched_yield();
    }
    assert_int_equal(sent(), 0);
    is_lane = 1;
    assert_int_equal(carry(), 1);
    is_lane = 0;
    while (sent() != 1) {
        sched_yield();
    }
    end();
}

/* If the thread is in a step when the lane posts, it may send the request. */
static TEST(lanes_send_signals)
{
    assert_int_equal(begin(1), IRIS_OK);
    is_lane = 1;
    for (int i = 1; fake.sends[1] == 0; i++) {
        post(IRIS_OP_PUT, 8);
        post(IRIS_OP_STORE, 8);
        while (sent() != 2 * i) {
            sched_yield();
        }
    }
    is_lane = 0;
    end();
}

static TEST(lanes_leave_other_channels_to_the_thread)
{
    assert_int_equal(begin(0), IRIS_OK);
    is_lane = 1;
    post(IRIS_OP_STORE, 8);
    assert_int_equal(carry(), 0);
    while (sent() != 1) {
        sched_yield();
    }
    is_lane = 0;
    assert_int_equal(fake.turns[1] + fake.sends[1], 0);
    end();
}

/* The slot is free long before a lane comes to it again, though the target
 * acknowledges nothing. Until then it is not. */
static TEST(a_slot_whose_data_the_channel_keeps_is_recalled)
{
    const uint64_t *tail;

    assert_int_equal(begin(1), IRIS_OK);
    tail = &iris_i_proxy_far(proxy).ring->requests->tail;
    fake.lends = 1;
    for (int i = 1; i <= (int)IRIS_RING_SLOTS; i++) {
        post(IRIS_OP_PUT, IRIS_RING_BYTES);
        while (sent() != i) {
            sched_yield();
        }
        if (i <= (int)IRIS_RING_SLOTS / 2) {
            assert_int_equal(__atomic_load_n(tail, __ATOMIC_ACQUIRE), 0);
        }
    }
    end();
    assert_null(fake.lent);
}

TEST_GROUP(unit);
