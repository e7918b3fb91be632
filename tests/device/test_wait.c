/* SPDX-License-Identifier: MIT
 *
 * Waits for and tests of one word.
 */
#include "config.h"

#include "support/game.h"

#define TURNS 24 /* six comparisons of four types */

/* One on each rank's heap. */
struct board {
    uint64_t wrong;
    uint64_t ready;
    uint64_t token;
    uint64_t own; /* of this rank alone */
    uint64_t words[TURNS];
};

IRIS_DEVICE iris_bool_t holds(iris_cmp_t cmp, iris_bool_t less,
                              iris_bool_t equal)
{
    const iris_bool_t table[] = {equal,         !equal,           less,
                                 less || equal, !(less || equal), !less};

    return table[cmp];
}

/* clang-format off */
/* Every pair of values near the ends of the type and its sign bit. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_DEVICE void compare_##name(iris_dev_t dev, struct board *board)       \
    {                                                                          \
        const uint64_t top = (uint64_t)1 << (8 * sizeof(c_type) - 1);          \
        const c_type v[] = {0, 1, (c_type)-1, (c_type)top, (c_type)(top - 1),  \
                            (c_type)(5 + dev.rank)};                           \
        c_type *word = (c_type *)&board->own;                                  \
        for (int i = 0; i < 6 * 6 * 6; i++) {                                  \
            c_type seen = v[i % 6], value = v[i / 6 % 6];                      \
            iris_cmp_t cmp = (iris_cmp_t)(i / 36);                             \
            iris_bool_t good = holds(cmp, seen < value, seen == value);        \
            iris_atomic_store(dev, word, seen, dev.rank, IRIS_RELEASE,         \
                              IRIS_SCOPE_SYSTEM);                              \
            game_expect(dev, board, iris_test(dev, word, cmp, value) == good); \
            game_expect(dev, board,                                            \
                        !iris_test(dev, word, (iris_cmp_t)6, value));          \
            game_expect(dev, board,                                            \
                        !good || iris_wait_until(dev, word, cmp, value) ==     \
                                     seen);                                    \
        }                                                                      \
    }
IRIS_WORD_TYPES(ROW, )
#undef ROW
/* clang-format on */

IRIS_KERNEL(compare, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = (struct board *)args->board;

    if (iris_wg_leader(wg)) {
        compare_i32(dev, board);
        compare_u32(dev, board);
        compare_i64(dev, board);
        compare_u64(dev, board);
    }
}

/* By comparison: what a word is relative to the waiter's value at first, then
 * (still no reason to go on), and at last. */
IRIS_DEVICE uint64_t step_of(iris_cmp_t cmp, int which)
{
    const int steps[6][3] = {{1, -1, 0}, {0, 0, 1},  {1, 0, -1},
                             {2, 1, 0},  {-1, 0, 1}, {-2, -1, 0}};

    return (uint64_t)steps[cmp][which];
}

/* clang-format off */
/* One wait of the next rank's workgroup 1 for this rank's workgroup 0: the sign
 * bit flips where signed and unsigned words must differ. */
#define ROW(name, c_type, arg)                                                 \
    IRIS_DEVICE void wait_##name(iris_wg_t wg, iris_dev_t dev,                 \
                                 struct board *board, iris_cmp_t cmp,          \
                                 uint64_t turn)                                \
    {                                                                          \
        const uint64_t top = (uint64_t)1 << (8 * sizeof(c_type) - 1);          \
        const uint64_t value =                                                 \
            iris_d_less(IRIS_D_KIND_##name, top, 0) ? 0 : top;                 \
        int next = (dev.rank + 1) % dev.num_ranks;                             \
        int before = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;           \
        c_type *word = (c_type *)&board->words[turn % TURNS], last;            \
        if (wg.id == 0) {                                                      \
            (void)iris_wait_until(dev, &board->ready, IRIS_CMP_GE, turn);      \
            iris_atomic_store(dev, word, (c_type)(value + step_of(cmp, 1)),    \
                              next, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);          \
            iris_store(dev, &board->token, game_mark(dev.rank, next, turn),    \
                       next);                                                  \
            iris_atomic_store(dev, word, (c_type)(value + step_of(cmp, 2)),    \
                              next, IRIS_RELEASE, IRIS_SCOPE_SYSTEM);          \
            return;                                                            \
        }                                                                      \
        iris_atomic_store(dev, word, (c_type)(value + step_of(cmp, 0)),        \
                          dev.rank, IRIS_RELAXED, IRIS_SCOPE_SYSTEM);          \
        iris_signal_set(dev, &board->ready, turn, before);                     \
        last = iris_wait_until(dev, word, cmp, (c_type)value);                 \
        game_expect(dev, board,                                                \
                    last == (c_type)(value + step_of(cmp, 2)));                \
        game_expect(dev, board,                                                \
                    board->token == game_mark(before, dev.rank, turn));        \
    }
IRIS_WORD_TYPES(ROW, )
#undef ROW
/* clang-format on */

/* Needs both workgroups at once. */
IRIS_KERNEL(wait_each_way, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct board *board = (struct board *)args->board;
    uint64_t turns = iris_wg_leader(wg) ? TURNS * args->rounds : 0;

    for (uint64_t turn = 1; turn <= turns; turn++) {
        iris_cmp_t cmp = (iris_cmp_t)(turn % 6);

        switch (turn / 6 % 4) {
        case 0:
            wait_i32(wg, dev, board, cmp, turn);
            break;
        case 1:
            wait_u32(wg, dev, board, cmp, turn);
            break;
        case 2:
            wait_i64(wg, dev, board, cmp, turn);
            break;
        default:
            wait_u64(wg, dev, board, cmp, turn);
            break;
        }
    }
}

static TEST(wait_until_and_test_compare_every_word_type_six_ways)
{
    GAME_PLAY(compare, struct board, 1, 1);
}

static TEST(wait_until_goes_on_at_the_right_value_and_sees_the_data)
{
    GAME_PLAY(wait_each_way, struct board, 2, harness_count(10000, 200));
}

TEST_GROUP(rank, one_gpu);
