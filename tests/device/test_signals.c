/* SPDX-License-Identifier: MIT
 *
 * Waits for and tests of sets of signals.
 */
#include "config.h"

#include "support/game.h"

#define VECTOR 5 /* signals of a set whose subsets are all tried */

/* One on each rank's heap. */
struct board {
    uint64_t wrong;
    uint64_t signals[GAME_MAX_RANKS]; /* [sender] */
    uint64_t data[2][GAME_MAX_RANKS]; /* [parity of the round][sender] */
};

/* The vector calls against sets whose members are known: bit i of `left_out`
 * and `hit` is signal i's. */
IRIS_DEVICE void check_set(iris_dev_t dev, struct board *board,
                           const int *status, unsigned left_out, unsigned hit)
{
    const uint64_t *set = board->signals;
    size_t expected[VECTOR], found[VECTOR] = {99, 99, 99, 99, 99};
    size_t count = 0, some, first;
    unsigned in = ~left_out & ((1u << VECTOR) - 1);

    for (size_t i = 0; i < VECTOR; i++) {
        if ((in & hit) >> i & 1) {
            expected[count++] = i;
        }
    }
    first = count == 0 ? SIZE_MAX : expected[0];
    game_expect(dev, board,
                iris_test_all(dev, set, VECTOR, status, IRIS_CMP_GE, 7) ==
                    ((in & ~hit) == 0));
    game_expect(dev, board,
                iris_test_any(dev, set, VECTOR, status, IRIS_CMP_GE, 7) ==
                    first);
    some = iris_test_some(dev, set, VECTOR, status, IRIS_CMP_GE, 7, found);
    game_expect(dev, board, some == count);
    for (size_t i = 0; i < VECTOR; i++) {
        game_expect(dev, board, found[i] == (i < count ? expected[i] : 99));
        found[i] = 99;
    }
    if ((in & ~hit) == 0) {
        iris_wait_until_all(dev, set, VECTOR, status, IRIS_CMP_GE, 7);
    }
    if (in != 0 && count == 0) {
        return; /* would wait for ever */
    }
    /* Asked twice, the same signals are found twice. */
    for (int again = 0; again < 2; again++) {
        game_expect(dev, board,
                    iris_wait_until_any(dev, set, VECTOR, status, IRIS_CMP_GE,
                                        7) == first);
        some = iris_wait_until_some(dev, set, VECTOR, status, IRIS_CMP_GE, 7,
                                    found);
        game_expect(dev, board, some == count);
        game_expect(dev, board,
                    count == 0 || found[count - 1] == expected[count - 1]);
    }
}

IRIS_KERNEL(every_set, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = (struct board *)args->board;
    unsigned sets = iris_wg_leader(wg) ? 1u << (2 * VECTOR) : 0;
    int status[VECTOR];

    for (unsigned set = 0; set < sets; set++) {
        unsigned left_out = set >> VECTOR;

        for (unsigned i = 0; i < VECTOR; i++) {
            iris_signal_set(dev, &board->signals[i],
                            set >> i & 1 ? 7 + i : 6 - i, dev.rank);
            status[i] = (int)(left_out >> i & 1) * (set % 2 == 0 ? 1 : -5);
        }
        check_set(dev, board, left_out == 0 ? NULL : status, left_out,
                  set & ((1u << VECTOR) - 1));
    }
    game_expect(dev, board,
                iris_wait_until_any(dev, board->signals, 0, NULL, IRIS_CMP_EQ,
                                    1) == SIZE_MAX);
}

/* The message of a sender, whose signal has been seen, is here. */
IRIS_DEVICE void take(iris_dev_t dev, struct board *board, size_t from,
                      uint64_t round, int *status)
{
    iris_bool_t fresh = from < (size_t)dev.num_ranks && status[from] == 0;

    game_expect(dev, board, fresh);
    if (fresh) {
        game_expect(dev, board,
                    board->data[round % 2][from] ==
                        game_mark((int)from, dev.rank, round));
        status[from] = 1;
    }
}

IRIS_DEVICE void take_all(iris_dev_t dev, struct board *board, uint64_t round)
{
    const uint64_t *set = board->signals;
    size_t ranks = (size_t)dev.num_ranks, taken = 0, some;
    size_t found[GAME_MAX_RANKS];
    int status[GAME_MAX_RANKS] = {0};

    while (taken < ranks) {
        if (round % 3 == 0) {
            some = 1;
            found[0] = iris_wait_until_any(dev, set, ranks, status, IRIS_CMP_GE,
                                           round);
        } else if (round % 3 == 1) {
            some = iris_wait_until_some(dev, set, ranks, status, IRIS_CMP_GE,
                                        round, found);
        } else {
            iris_wait_until_all(dev, set, ranks, NULL, IRIS_CMP_GE, round);
            some = iris_test_some(dev, set, ranks, NULL, IRIS_CMP_GE, round,
                                  found);
            game_expect(dev, board, some == ranks);
        }
        for (size_t i = 0; i < some; i++) {
            take(dev, board, found[i], round, status);
        }
        taken += some;
    }
    game_expect(dev, board, taken == ranks);
    game_expect(dev, board,
                iris_wait_until_any(dev, set, ranks, status, IRIS_CMP_GE,
                                    round) == SIZE_MAX);
}

/* A rank is at most one round ahead: it waits for all, so two sets of data
 * will do. */
IRIS_KERNEL(everyone_to_everyone, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = (struct board *)args->board;

    for (uint64_t round = 1; iris_wg_leader(wg) && round <= args->rounds;
         round++) {
        for (int i = 0; i < dev.num_ranks; i++) {
            int to = (dev.rank + i) % dev.num_ranks;

            iris_store(dev, &board->data[round % 2][dev.rank],
                       game_mark(dev.rank, to, round), to);
            iris_signal_set(dev, &board->signals[dev.rank], round, to);
        }
        take_all(dev, board, round);
    }
}

static TEST(vector_waits_and_tests_are_right_for_every_subset)
{
    GAME_PLAY(every_set, struct board, 1, 1);
}

static TEST(vector_waits_find_each_sender_once_with_its_data)
{
    GAME_PLAY(everyone_to_everyone, struct board, 1,
              harness_count(200000, 5000));
}

TEST_GROUP(rank);
