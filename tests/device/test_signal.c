/* SPDX-License-Identifier: MIT
 *
 * Signals: set, add, fetch and put_signal between all ranks.
 */
#include "config.h"

#include "support/game.h"

/* One on each rank's heap. */
struct board {
    uint64_t wrong;
    uint64_t sum;
    uint64_t ring;
    uint64_t token;
    uint64_t own;                     /* of this rank alone */
    uint64_t signals[GAME_MAX_RANKS]; /* [sender] */
    uint64_t data[GAME_MAX_RANKS];
    uint64_t typed[IRIS_D_NUM_KINDS];
    uint64_t elements[IRIS_D_NUM_KINDS];
};

IRIS_KERNEL(set_and_add, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = (struct board *)args->board;
    uint64_t ranks = (uint64_t)dev.num_ranks;
    uint64_t total = args->rounds * wg.num_wgs * ranks * (ranks + 1) / 2;

    if (!iris_wg_leader(wg)) {
        return;
    }
    for (int to = 0; to < dev.num_ranks; to++) {
        for (uint64_t round = 1; round <= args->rounds; round++) {
            iris_signal_add(dev, &board->sum, (uint64_t)dev.rank + 1, to);
        }
        iris_signal_set(dev, &board->signals[dev.rank],
                        game_mark(dev.rank, to, 1), to);
    }
    (void)iris_wait_until(dev, &board->sum, IRIS_CMP_GE, total);
    game_expect(dev, board, iris_signal_fetch(dev, &board->sum) == total);
    for (int from = 0; from < dev.num_ranks; from++) {
        const uint64_t *signal = &board->signals[from];

        (void)iris_wait_until(dev, signal, IRIS_CMP_NE, 0);
        game_expect(dev, board,
                    iris_signal_fetch(dev, signal) ==
                        game_mark(from, dev.rank, 1));
    }
}

IRIS_KERNEL(relay, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = (struct board *)args->board;
    int next = (dev.rank + 1) % dev.num_ranks;

    for (uint64_t round = 1; iris_wg_leader(wg) && round <= args->rounds;
         round++) {
        uint64_t start = game_mark(0, 0, round);

        if (dev.rank != 0) {
            (void)iris_wait_until(dev, &board->ring, IRIS_CMP_EQ, round);
            game_expect(dev, board, board->token == start + (uint64_t)dev.rank);
            start = board->token;
        }
        board->own = start + 1;
        iris_put_signal(dev, &board->own, &board->token, &board->ring, round,
                        next);
        if (dev.rank == 0) {
            (void)iris_wait_until(dev, &board->ring, IRIS_CMP_EQ, round);
            game_expect(dev, board,
                        board->token == start + (uint64_t)dev.num_ranks);
        }
    }
}

/* clang-format off */
/* The element that `rank` sends, as bits. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_DEVICE c_type element_##name(int rank)                                \
    {                                                                          \
        return iris_d_value_##name(0x3d4c5b6a79180912u +                       \
                                   0x101010101010101u * (uint64_t)rank);       \
    }
IRIS_TYPES(ROW, )
#undef ROW

IRIS_KERNEL(put_every_type, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = (struct board *)args->board;
    int next = (dev.rank + 1) % dev.num_ranks;
    int before = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;

    if (!iris_wg_leader(wg)) {
        return;
    }
#define ROW(name, c_type, arg)                                                 \
    {                                                                          \
        c_type value = element_##name(dev.rank);                               \
        c_type *slot = (c_type *)&board->elements[IRIS_D_KIND_##name];         \
        uint64_t *signal = &board->typed[IRIS_D_KIND_##name];                  \
        iris_put_signal_##name(dev, &value, slot, signal, 7, next);            \
        (void)iris_wait_until(dev, signal, IRIS_CMP_EQ, 7);                    \
        game_expect(dev, board,                                                \
                    board->elements[IRIS_D_KIND_##name] ==                     \
                        iris_d_bits_##name(element_##name(before)));           \
    }
IRIS_TYPES(ROW, )
#undef ROW
}
/* clang-format on */

/* Both sides of one pair: the lower rank serves. */
IRIS_DEVICE void rally(iris_dev_t dev, struct board *board, int other,
                       uint64_t rounds)
{
    for (uint64_t hit = 1; hit <= 2 * rounds; hit++) {
        if ((hit % 2 == 1) == (dev.rank < other)) {
            board->own = game_mark(dev.rank, other, hit);
            iris_put_signal(dev, &board->own, &board->data[dev.rank],
                            &board->signals[dev.rank], hit, other);
        } else {
            (void)iris_wait_until(dev, &board->signals[other], IRIS_CMP_EQ,
                                  hit);
            game_expect(dev, board,
                        board->data[other] == game_mark(other, dev.rank, hit));
        }
    }
}

IRIS_KERNEL(rally_every_pair, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int pairs = iris_wg_leader(wg) ? dev.num_ranks * dev.num_ranks : 0;

    for (int pair = 0; pair < pairs; pair++) {
        int low = pair / dev.num_ranks, high = pair % dev.num_ranks;

        if (low < high && (dev.rank == low || dev.rank == high)) {
            rally(dev, (struct board *)args->board, low + high - dev.rank,
                  args->rounds);
        }
    }
}

static TEST(signals_are_set_added_to_and_fetched_on_every_rank)
{
    GAME_PLAY(set_and_add, struct board, 1, 1);
    GAME_PLAY(set_and_add, struct board, 3, harness_count(100000, 1000));
}

static TEST(put_signal_relays_a_token_around_the_ring)
{
    GAME_PLAY(relay, struct board, 1, harness_count(200000, 2000));
}

static TEST(put_signal_carries_every_element_type)
{
    GAME_PLAY(put_every_type, struct board, 1, 1);
}

static TEST(every_pair_plays_ping_pong)
{
    GAME_PLAY(rally_every_pair, struct board, 1, harness_count(20000, 1000));
}

TEST_GROUP(matrix, one_gpu, sample);
