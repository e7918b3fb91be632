/* SPDX-License-Identifier: MIT
 *
 * Tests that are kernels: one kernel that all ranks run together on a board in
 * the symmetric heap, counting what it finds wrong.
 */
#ifndef IRIS_TESTS_GAME_H
#define IRIS_TESTS_GAME_H

#include "support/harness.h"

#include <iris/device.h>

#define GAME_MAX_RANKS 8

/* A kernel's arguments. The board starts zeroed on every rank, and its first
 * word is game_expect()'s. */
struct game_args {
    const int64_t *context;
    void *board;
    uint64_t rounds;
    uint64_t variant; /* the kernel's own */
};

struct game {
    const struct iris_kernel *kernel;
    size_t board_bytes;
    unsigned grid;
    size_t rounds;
    uint64_t variant;
    unsigned lanes; /* of a workgroup; 0: 1 */
};

/* Notes in this rank's board that something was not as expected. Any lane. */
IRIS_DEVICE void game_expect(iris_dev_t dev, void *board, iris_bool_t good)
{
    if (!good) {
        (void)iris_atomic_add_u64(dev, (uint64_t *)board, 1, dev.rank,
                                  IRIS_RELAXED, IRIS_SCOPE_SYSTEM);
    }
}

/* What rank `from` sends rank `to` in a round: different for each, never 0. */
IRIS_DEVICE uint64_t game_mark(int from, int to, uint64_t round)
{
    return (round << 16) + (uint64_t)from * 100 + (uint64_t)to + 1;
}

/* A rank's body: one game. */
static inline int game_play(iris_t *iris, void *arg)
{
    const struct game *game = (const struct game *)arg;
    struct game_args args = {iris_device_context(iris), NULL, game->rounds,
                             game->variant};
    unsigned lanes = game->lanes == 0 ? 1 : game->lanes;
    uint64_t wrong;

    CHECK_OK(iris_calloc(iris, 1, game->board_bytes, &args.board));
    CHECK_OK(iris_launch(iris, game->kernel, game->grid, lanes, &args,
                         sizeof args, NULL));
    CHECK_OK(harness_read(iris, &wrong, args.board, sizeof wrong));
    CHECK_EQUAL(wrong, 0);
    CHECK_OK(iris_free(iris, args.board));
    return 0;
}

/* With 1, 2, 4 and 8 ranks. */
static inline void game_play_all(struct game game)
{
    harness_run_all(game_play, &game);
}

/* The same of a game with a board of this type and 64 lanes. */
#define GAME_PLAY(kernel, board_type, grid, rounds) \
    game_play_all(                                  \
        (struct game){kernel, sizeof(board_type), grid, rounds, 0, 64})

#endif /* IRIS_TESTS_GAME_H */
