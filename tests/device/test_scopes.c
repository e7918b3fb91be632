/* SPDX-License-Identifier: MIT
 *
 * The scope of one device: what it orders between workgroups and between
 * streams of a rank.
 */
#include "config.h"

#include "support/game.h"

#define WORDS 12 /* of a message */
#define DEPTH 4  /* messages on their way */

/* One on each rank's heap; no other rank looks at it. */
struct scope_board {
    uint64_t wrong;
    uint64_t sent;
    uint64_t taken;
    uint64_t words[DEPTH][WORDS];
};

IRIS_DEVICE void await_word(iris_dev_t dev, const uint64_t *word, uint64_t i)
{
    while (iris_atomic_load(dev, word, dev.rank, IRIS_ACQUIRE,
                            IRIS_SCOPE_AGENT) < i) {
    }
}

IRIS_DEVICE void produce(iris_dev_t dev, struct scope_board *board,
                         uint64_t rounds)
{
    for (uint64_t i = 1; i <= rounds; i++) {
        if (i > DEPTH) {
            await_word(dev, &board->taken, i - DEPTH);
        }
        for (uint64_t w = 0; w < WORDS; w++) {
            board->words[i % DEPTH][w] = game_mark(dev.rank, dev.rank, i + w);
        }
        iris_atomic_store(dev, &board->sent, i, dev.rank, IRIS_RELEASE,
                          IRIS_SCOPE_AGENT);
    }
}

IRIS_DEVICE void consume(iris_dev_t dev, struct scope_board *board,
                         uint64_t rounds)
{
    for (uint64_t i = 1; i <= rounds; i++) {
        await_word(dev, &board->sent, i);
        for (uint64_t w = WORDS; w-- > 0;) {
            game_expect(dev, board,
                        board->words[i % DEPTH][w] ==
                            game_mark(dev.rank, dev.rank, i + w));
        }
        iris_atomic_store(dev, &board->taken, i, dev.rank, IRIS_RELEASE,
                          IRIS_SCOPE_AGENT);
    }
}

/* Alone in its launch a workgroup does what the variant says, else what its id
 * says: 0 produces, 1 consumes. */
IRIS_KERNEL(messages, struct game_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    struct scope_board *board = (struct scope_board *)args->board;
    uint64_t role = wg.num_wgs == 1 ? args->variant : wg.id;

    if (iris_wg_leader(wg) && role == 0) {
        produce(dev, board, args->rounds);
    } else if (iris_wg_leader(wg)) {
        consume(dev, board, args->rounds);
    }
}

static int streams_body(iris_t *iris, void *arg)
{
    struct game_args args = {iris_device_context(iris), NULL,
                             *(const size_t *)arg, 0};
    struct scope_board seen;
    iris_stream_t *stream;

    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(iris_calloc(iris, 1, sizeof(struct scope_board), &args.board));
    for (args.variant = 0; args.variant < 2; args.variant++) {
        CHECK_OK(iris_launch(iris, messages, 1, 1, &args, sizeof args,
                             args.variant == 0 ? NULL : stream));
    }
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(harness_read(iris, &seen, args.board, sizeof seen));
    CHECK_EQUAL(seen.wrong, 0);
    CHECK_EQUAL(seen.taken, args.rounds);
    iris_stream_destroy(iris, stream);
    CHECK_OK(iris_free(iris, args.board));
    return 0;
}

static TEST(data_is_seen_after_a_flag_between_workgroups)
{
    game_play_all((struct game){messages, sizeof(struct scope_board), 2,
                                harness_count(1000000, 5000), 0, 1});
}

static TEST(data_is_seen_after_a_flag_between_streams)
{
    size_t rounds = harness_count(1000000, 5000);

    harness_run_all(streams_body, &rounds);
}

TEST_GROUP(rank);
