/* SPDX-License-Identifier: MIT
 *
 * Locks and handshakes that kernels make of compare-and-swap: they exclude, and
 * they get on although ranks are more than cores.
 */
#include "config.h"

#include "support/game.h"

#define FLAGS 4096

/* Each rank has a counter that a lock of the user's own making guards. */
struct lock_board {
    uint64_t wrong;
    uint64_t lock;
    uint64_t count;
    uint64_t holder;
    uint64_t done;
};

IRIS_DEVICE void count_under_lock(iris_dev_t dev, struct lock_board *board,
                                  int home, uint64_t me)
{
    uint64_t count;

    while (iris_atomic_cas(dev, &board->lock, 0, me, home, IRIS_ACQUIRE,
                           IRIS_SCOPE_SYSTEM) != 0) {
    }
    count = iris_load(dev, &board->count, home);
    game_expect(dev, board, iris_load(dev, &board->holder, home) == 0);
    iris_store(dev, &board->holder, me, home);
    iris_store(dev, &board->count, count + 1, home);
    game_expect(dev, board, iris_load(dev, &board->holder, home) == me);
    iris_store(dev, &board->holder, 0, home);
    game_expect(dev, board,
                iris_atomic_xchg(dev, &board->lock, 0, home, IRIS_RELEASE,
                                 IRIS_SCOPE_SYSTEM) == me);
}

IRIS_KERNEL(locked_counters, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct lock_board *board = (struct lock_board *)args->board;
    uint64_t me = (uint64_t)dev.rank * wg.num_wgs + wg.id + 1;
    uint64_t workers = (uint64_t)dev.num_ranks * wg.num_wgs;
    uint64_t rounds = args->rounds * (uint64_t)dev.num_ranks;

    if (!iris_wg_leader(wg)) {
        return;
    }
    for (uint64_t round = 0; round < rounds; round++) {
        count_under_lock(dev, board, (int)(round % (uint64_t)dev.num_ranks),
                         me);
    }
    for (int home = 0; home < dev.num_ranks; home++) {
        iris_signal_add(dev, &board->done, 1, home);
    }
    if (wg.id == wg.num_wgs - 1) {
        (void)iris_wait_until(dev, &board->done, IRIS_CMP_EQ, workers);
        game_expect(dev, board, board->count == workers * args->rounds);
    }
}

/* One on each rank's heap. */
struct flag_board {
    uint64_t wrong;
    uint32_t flags[FLAGS];
    uint64_t data[FLAGS];
};

/* Workgroup 0 produces for the next rank, workgroup 1 consumes. */
IRIS_KERNEL(produce_and_consume, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct flag_board *board = (struct flag_board *)args->board;
    int next = (dev.rank + 1) % dev.num_ranks;
    int before = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;
    uint64_t rounds = iris_wg_leader(wg) ? args->rounds : 0;

    for (uint64_t i = 0; wg.id == 0 && i < rounds; i++) {
        iris_store(dev, &board->data[i], game_mark(dev.rank, next, i), next);
        game_expect(dev, board,
                    iris_atomic_cas(dev, &board->flags[i], 0, 1, next,
                                    IRIS_RELEASE, IRIS_SCOPE_SYSTEM) == 0);
    }
    for (uint64_t i = 0; wg.id == 1 && i < rounds; i++) {
        while (iris_atomic_cas(dev, &board->flags[i], 1, 0, dev.rank,
                               IRIS_ACQUIRE, IRIS_SCOPE_SYSTEM) != 1) {
        }
        game_expect(dev, board,
                    board->data[i] == game_mark(before, dev.rank, i));
        game_expect(dev, board, board->flags[i] == 0);
    }
}

static void a_spin_lock_of_the_users_own_excludes(void **state)
{
    game_play_all((struct game){locked_counters, sizeof(struct lock_board), 3,
                                harness_count(1000000, 5000), 0, 64});
}

static void compare_and_swap_hands_over_data(void **state)
{
    game_play_all((struct game){produce_and_consume, sizeof(struct flag_board),
                                2, FLAGS, 0, 1});
}

static int TEST_FILE(rank, one_gpu)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_spin_lock_of_the_users_own_excludes),
        cmocka_unit_test(compare_and_swap_hands_over_data),
    };

    return cmocka_run_group_tests(tests, harness_setup, harness_teardown);
}
