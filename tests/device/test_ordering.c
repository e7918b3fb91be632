/* SPDX-License-Identifier: MIT
 *
 * What makes plain data visible: releases, fences, signals.
 */
#include "config.h"

#include "support/game.h"

#define WORDS 12 /* of a message */
#define DEPTH 4  /* messages on their way from one rank to another */
#define LARGE 40000

/* How a message is announced and noticed. */
enum announce { BY_STORE, BY_UPDATE, BY_FENCE, BY_SIGNAL, NUM_ANNOUNCES };

/* One on each rank's heap. */
struct message_board {
    uint64_t wrong;
    uint64_t idle;
    uint64_t sent[GAME_MAX_RANKS];  /* [sender] */
    uint64_t taken[GAME_MAX_RANKS]; /* [receiver] */
    uint64_t words[GAME_MAX_RANKS][DEPTH][WORDS];
};

IRIS_DEVICE void announce(iris_dev_t dev, uint64_t *flag, uint64_t i, int to,
                          uint64_t how)
{
    switch (how) {
    case BY_STORE:
        iris_atomic_store(dev, flag, i, to, IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
        break;
    case BY_UPDATE:
        (void)iris_atomic_xchg(dev, flag, i, to, IRIS_RELEASE,
                               IRIS_SCOPE_SYSTEM);
        break;
    case BY_FENCE:
        iris_fence(IRIS_RELEASE, IRIS_SCOPE_SYSTEM);
        iris_atomic_store(dev, flag, i, to, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
        break;
    default:
        iris_signal_set(dev, flag, i, to);
        break;
    }
}

IRIS_DEVICE void notice(iris_dev_t dev, struct message_board *board, int from,
                        uint64_t i, uint64_t how)
{
    uint64_t *flag = &board->sent[from];

    switch (how) {
    case BY_STORE:
        while (iris_atomic_load(dev, flag, dev.rank, IRIS_ACQUIRE,
                                IRIS_SCOPE_SYSTEM) < i) {
        }
        break;
    case BY_UPDATE:
        while (iris_atomic_add(dev, flag, 0, dev.rank, IRIS_ACQUIRE,
                               IRIS_SCOPE_SYSTEM) < i) {
        }
        break;
    case BY_FENCE:
        while (iris_atomic_load(dev, flag, dev.rank, IRIS_RELAXED,
                                IRIS_SCOPE_SYSTEM) < i) {
            /* An acquiring atomic, of something else: gives the core away. */
            (void)iris_signal_fetch(dev, &board->idle);
        }
        iris_fence(IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM);
        break;
    default:
        (void)iris_wait_until(dev, flag, IRIS_CMP_GE, i);
        break;
    }
}

/* Sends message i to `to`, takes message i of `from`. */
IRIS_DEVICE void exchange(iris_dev_t dev, struct message_board *board,
                          const int peer[2], uint64_t i, uint64_t how)
{
    int to = peer[0], from = peer[1];

    if (i > DEPTH) {
        (void)iris_wait_until(dev, &board->taken[to], IRIS_CMP_GE, i - DEPTH);
    }
    for (uint64_t w = 0; w < WORDS; w++) {
        iris_store(dev, &board->words[dev.rank][i % DEPTH][w],
                   game_mark(dev.rank, to, i * WORDS + w), to);
    }
    announce(dev, &board->sent[dev.rank], i, to, how);
    notice(dev, board, from, i, how);
    for (uint64_t w = WORDS; w-- > 0;) {
        game_expect(dev, board,
                    board->words[from][i % DEPTH][w] ==
                        game_mark(from, dev.rank, i * WORDS + w));
    }
    iris_signal_set(dev, &board->taken[dev.rank], i, from);
}

IRIS_KERNEL(messages, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int ranks = iris_wg_leader(wg) ? dev.num_ranks : 0;
    uint64_t last = args->rounds / (uint64_t)dev.num_ranks; /* of each pair */

    for (int shift = 0; shift < ranks; shift++) {
        int peer[2] = {(dev.rank + shift) % ranks,
                       (dev.rank + ranks - shift) % ranks};

        for (uint64_t i = 1; i <= last; i++) {
            exchange(dev, (struct message_board *)args->board, peer, i,
                     args->variant);
        }
    }
}

/* One on each rank's heap. */
struct bulk_board {
    uint64_t wrong;
    uint64_t sent[GAME_MAX_RANKS];
    uint64_t taken[GAME_MAX_RANKS];
    uint64_t small[GAME_MAX_RANKS];
    unsigned char from[LARGE];
    unsigned char to[GAME_MAX_RANKS][LARGE];
};

IRIS_DEVICE unsigned char bulk_byte(int from, int to, uint64_t round, size_t i)
{
    return (unsigned char)(i * 7 + i / 251 + round * 31 + (uint64_t)from * 3 +
                           (uint64_t)to * 5);
}

/* A large put, then a small store, then the signal, in two ways. */
IRIS_DEVICE void bulk_send(iris_wg_t wg, iris_dev_t dev,
                           struct bulk_board *board, int to, uint64_t round,
                           size_t bytes)
{
    IRIS_WG_LANES (wg, i, bytes) {
        board->from[i] = bulk_byte(dev.rank, to, round, i);
    }
    iris_wg_barrier(wg);
    if (round % 2 == 0) {
        iris_wg_put_signal(wg, dev, board->from, board->to[dev.rank], bytes,
                           &board->sent[dev.rank], round, to);
    } else {
        iris_wg_put(wg, dev, board->from, board->to[dev.rank], bytes, to);
        if (iris_wg_leader(wg)) {
            iris_store(dev, &board->small[dev.rank], round, to);
        }
        iris_wg_barrier(wg);
        if (iris_wg_leader(wg)) {
            iris_signal_set(dev, &board->sent[dev.rank], round, to);
        }
    }
}

IRIS_KERNEL(bulk, struct game_args)
{
    static const size_t sizes[] = {1, 7, 64, 1000, 4099, LARGE - 3, LARGE};
    iris_dev_t dev = iris_dev_init(args->context);
    struct bulk_board *board = (struct bulk_board *)args->board;
    int ranks = dev.num_ranks;
    uint64_t last = args->rounds * (uint64_t)ranks;

    for (uint64_t round = 1; round <= last; round++) {
        size_t bytes = sizes[round % 7];
        int shift = (int)(round % (uint64_t)ranks);
        int to = (dev.rank + shift) % ranks;
        int from = (dev.rank + ranks - shift) % ranks;

        bulk_send(wg, dev, board, to, round, bytes);
        (void)iris_wait_until(dev, &board->sent[from], IRIS_CMP_GE, round);
        iris_wg_barrier(wg);
        IRIS_WG_LANES (wg, i, bytes) {
            size_t at = bytes - 1 - i; /* the tail first */

            game_expect(dev, board,
                        board->to[from][at] ==
                            bulk_byte(from, dev.rank, round, at));
        }
        game_expect(dev, board, round % 2 == 0 || board->small[from] == round);
        iris_wg_barrier(wg);
        if (iris_wg_leader(wg)) {
            iris_signal_set(dev, &board->taken[dev.rank], round, from);
        }
        (void)iris_wait_until(dev, &board->taken[to], IRIS_CMP_GE, round);
        iris_wg_barrier(wg);
    }
}

/* One on each rank's heap. */
struct fan_board {
    uint64_t wrong;
    uint64_t arrived[2];
    uint64_t from[WORDS];
    uint64_t to[2][GAME_MAX_RANKS][WORDS];
};

/* Cycles alternate between two sets: nobody can be two ahead, since each waits
 * for all in between. Many senders share a signal, so each set has its own: an
 * early add of the next cycle must not pass for a late one of this. */
IRIS_KERNEL(fan_out, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct fan_board *board = (struct fan_board *)args->board;
    size_t words = WORDS * (size_t)dev.num_ranks;

    for (uint64_t cycle = 0; cycle < args->rounds; cycle++) {
        uint64_t set = cycle % 2, ranks = (uint64_t)dev.num_ranks;

        for (int i = 0; i < dev.num_ranks; i++) {
            int to = (dev.rank + i) % dev.num_ranks;

            IRIS_WG_LANES (wg, w, WORDS) {
                board->from[w] = game_mark(dev.rank, to, cycle * WORDS + w);
            }
            iris_wg_barrier(wg);
            iris_wg_put(wg, dev, board->from, board->to[set][dev.rank],
                        sizeof board->from, to);
            iris_wg_barrier(wg);
            if (iris_wg_leader(wg)) {
                iris_signal_add(dev, &board->arrived[set], 1, to);
            }
        }
        (void)iris_wait_until(dev, &board->arrived[set], IRIS_CMP_EQ,
                              (cycle / 2 + 1) * ranks);
        iris_wg_barrier(wg);
        IRIS_WG_LANES (wg, i, words) {
            int from = (int)(i / WORDS);

            game_expect(
                dev, board,
                board->to[set][from][i % WORDS] ==
                    game_mark(from, dev.rank, cycle * WORDS + i % WORDS));
        }
        iris_wg_barrier(wg);
    }
}

static void play_messages(enum announce how)
{
    game_play_all((struct game){messages, sizeof(struct message_board), 1,
                                harness_count(1000000, 20000), how, 1});
}

static TEST(data_is_seen_after_a_flag_that_is_released_and_acquired)
{
    play_messages(BY_STORE);
}

static TEST(data_is_seen_after_a_flag_that_is_updated)
{
    play_messages(BY_UPDATE);
}

static TEST(data_is_seen_after_a_relaxed_flag_between_fences)
{
    play_messages(BY_FENCE);
}

static TEST(data_is_seen_after_a_signal)
{
    play_messages(BY_SIGNAL);
}

static TEST(a_signal_does_not_overtake_a_workgroups_put_or_store)
{
    game_play_all((struct game){bulk, sizeof(struct bulk_board), 1,
                                harness_count(2000, 70), 0, 256});
}

static TEST(all_to_all_cycles_need_no_barrier)
{
    game_play_all((struct game){fan_out, sizeof(struct fan_board), 1,
                                harness_count(100000, 2000), 0, 64});
}

TEST_GROUP(rank, one_gpu);
