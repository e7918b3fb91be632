/* SPDX-License-Identifier: MIT
 *
 * A lock that serves in order: tickets drawn by fetch-and-add, a word on
 * another rank watched until it is one's turn.
 */
#include "config.h"

#include "support/game.h"

/* Each rank has a counter that such a lock guards. */
struct ticket_board {
    uint64_t wrong;
    uint64_t next;
    uint64_t serving;
    uint64_t count;
    uint64_t holder;
    uint64_t done;
};

IRIS_DEVICE uint64_t lock(iris_dev_t dev, struct ticket_board *board, int home)
{
    uint64_t ticket = iris_atomic_add(dev, &board->next, 1, home, IRIS_RELAXED,
                                      IRIS_SCOPE_SYSTEM);

    while (iris_atomic_load(dev, &board->serving, home, IRIS_ACQUIRE,
                            IRIS_SCOPE_SYSTEM) != ticket) {
    }
    return ticket;
}

/* Whoever is the n-th to get the lock drew ticket n: it is first in, first out.
 * Returns the ticket. */
IRIS_DEVICE uint64_t count_in_turn(iris_dev_t dev, struct ticket_board *board,
                                   int home, uint64_t me)
{
    uint64_t ticket = lock(dev, board, home);

    game_expect(dev, board, iris_load(dev, &board->count, home) == ticket);
    game_expect(dev, board, iris_load(dev, &board->holder, home) == 0);
    iris_store(dev, &board->holder, me, home);
    iris_store(dev, &board->count, ticket + 1, home);
    game_expect(dev, board, iris_load(dev, &board->holder, home) == me);
    iris_store(dev, &board->holder, 0, home);
    iris_atomic_store(dev, &board->serving, ticket + 1, home, IRIS_RELEASE,
                      IRIS_SCOPE_SYSTEM);
    return ticket;
}

IRIS_KERNEL(take_turns, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct ticket_board *board = (struct ticket_board *)args->board;
    uint64_t me = (uint64_t)dev.rank * wg.num_wgs + wg.id + 1;
    uint64_t workers = (uint64_t)dev.num_ranks * wg.num_wgs;

    if (!iris_wg_leader(wg)) {
        return;
    }
    for (int shift = 0; shift < dev.num_ranks; shift++) {
        int home = (dev.rank + shift) % dev.num_ranks;
        uint64_t least = 0;

        for (uint64_t round = 0; round < args->rounds; round++) {
            uint64_t ticket = count_in_turn(dev, board, home, me);

            game_expect(dev, board, ticket >= least);
            least = ticket + 1;
        }
        iris_signal_add(dev, &board->done, 1, home);
    }
    if (wg.id == wg.num_wgs - 1) {
        (void)iris_wait_until(dev, &board->done, IRIS_CMP_EQ, workers);
        game_expect(dev, board, board->count == workers * args->rounds);
        game_expect(dev, board, board->next == board->count);
        game_expect(dev, board, board->serving == board->count);
    }
}

static TEST(a_ticket_lock_excludes_and_serves_in_order)
{
    game_play_all((struct game){take_turns, sizeof(struct ticket_board), 2,
                                harness_count(20000, 50), 0, 64});
}

TEST_GROUP(rank);
