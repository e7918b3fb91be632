/* SPDX-License-Identifier: MIT
 *
 * Lane loops come to each index once, and a workgroup barrier joins its lanes.
 */
#include "config.h"

#include "support/matrix.h"

/* How often each index came up, and each workgroup. */
struct tally {
    uint32_t share[1000]; /* of IRIS_LANES */
    uint32_t every[1000]; /* of IRIS_WG_LANES */
    uint32_t wgs[8];
    uint32_t leaders;
    uint32_t exchange[2][64]; /* written by one lane, read by another */
};

struct tally_args {
    const int64_t *context;
    uint64_t *wrong;
    struct tally *tally;
    uint64_t n;
    uint32_t grid;
};

IRIS_DEVICE void count(iris_dev_t dev, uint32_t *counter)
{
    (void)iris_atomic_add_u32(dev, counter, 1, dev.rank, IRIS_RELAXED,
                              IRIS_SCOPE_AGENT);
}

IRIS_KERNEL(take_tally, struct tally_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct tally *tally = args->tally;
    unsigned evaluations = 0;

    IRIS_LANES (wg, i, (evaluations++, args->n)) {
        count(dev, &tally->share[i]);
    }
    IRIS_WG_LANES (wg, i, (evaluations++, args->n))
        count(dev, &tally->every[i]);
    matrix_expect(dev, args->wrong, evaluations == 2, 1);
    matrix_expect(dev, args->wrong, wg.num_wgs == args->grid, 2);
    if (iris_wg_leader(wg)) {
        count(dev, &tally->wgs[wg.id]);
        count(dev, &tally->leaders);
    }
}

IRIS_KERNEL(check_tally, struct tally_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    const struct tally *tally = args->tally;

    IRIS_LANES (wg, i, 1000) {
        uint32_t once = i < args->n, known = i < 8 && i < args->grid;

        matrix_expect(dev, args->wrong, tally->share[i] == once, 3);
        matrix_expect(dev, args->wrong, tally->every[i] == once * args->grid,
                      4);
        matrix_expect(dev, args->wrong, i >= 8 || tally->wgs[i] == known, 5);
    }
    matrix_expect(dev, args->wrong, tally->leaders == args->grid, 6);
}

/* Round after round each lane reads what another wrote before the barrier. */
IRIS_KERNEL(exchange, struct tally_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (uint32_t round = 1; round <= args->n; round++) {
        uint32_t *board = args->tally->exchange[round % 2];

        IRIS_WG_LANES (wg, i, 64) {
            board[i] = round * 64 + (uint32_t)i;
        }
        iris_wg_barrier(wg);
        IRIS_WG_LANES (wg, i, 64) {
            size_t other = (i + 37 * round) % 64;

            matrix_expect(dev, args->wrong, board[other] == round * 64 + other,
                          round);
        }
    }
}

static RANK_TEST(lane_loops_take_each_index_once_and_barriers_join_lanes,
                 ALL_RANKS)
{
    const unsigned grids[] = {1, 2, 3, 7};
    const uint64_t counts[] = {0, 1, 5, 1000};
    const unsigned blocks[] = {1, 64, 100, 256};
    struct matrix matrix = {0};
    struct tally_args args = {0};
    uint64_t where;
    void *memory;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_malloc(iris, sizeof(struct tally), &memory));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    args.tally = (struct tally *)memory;
    for (unsigned i = 0; i < 64; i++) {
        unsigned block = blocks[i / 16];

        args.grid = grids[i % 4];
        args.n = counts[i / 4 % 4];
        CHECK_OK(iris_memset(iris, memory, 0, sizeof(struct tally), NULL));
        CHECK_OK(iris_launch(iris, take_tally, args.grid, block, &args,
                             sizeof args, NULL));
        CHECK_OK(
            iris_launch(iris, check_tally, 1, block, &args, sizeof args, NULL));
        CHECK_OK(
            iris_launch(iris, exchange, 1, block, &args, sizeof args, NULL));
        CHECK_EQUAL(matrix_result(&matrix, &where), 0);
        CHECK_EQUAL(where & INT64_MAX, 0);
        CHECK_EQUAL(where, 0);
    }
    return 0;
}

TEST_GROUP(matrix);
