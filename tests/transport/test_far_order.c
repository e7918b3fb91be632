/* SPDX-License-Identifier: MIT
 *
 * The memory model across pretended nodes (IRIS_NODES): programs of
 * docs/memory-model.md whose outcome it forbids.
 */
#include "config.h"

#define IRIS_FAR 1 /* in GPU code, too */
#include "support/harness.h"

#include <iris/device.h>

#include <stdlib.h>

#define RANKS 4
#define WORDS 16
#define LARGE ((size_t)70001)
#define BLOCK ((size_t)256) /* words */
#define GROUP 8

struct far_args {
    const int64_t *context;
    uint64_t *words; /* symmetric */
    unsigned char *bytes;
    uint64_t *seen;
    struct iris_dev_group *group;
    uint32_t rounds;
    int32_t num_ranks;
};

/* Rank 1 writes data of the last rank, which is on another node, and tells rank
 * 0, which may be on this node. Rank 0 tells the last rank, whose data must be
 * there, and which answers. Proxies look at rank 0's messages first. Words: 0
 * the data, 2 rank 0's signal, 3 the last rank's, 4 rank 1's, 5 failures. */
IRIS_KERNEL(pass_on, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *words = args->words;
    int last = args->num_ranks - 1;

    for (uint64_t round = 1; round <= args->rounds; round++) {
        if (dev.rank == 1) {
            for (int i = 0; i < 8; i++) { /* more than is read at once */
                iris_wg_put(wg, dev, args->bytes, args->bytes + LARGE, LARGE,
                            last);
            }
            iris_store(dev, &words[0], round, last);
            iris_signal_set(dev, &words[2], round, 0);
            (void)iris_wait_until(dev, &words[4], IRIS_CMP_GE, round);
        }
        if (dev.rank == 0) {
            (void)iris_wait_until(dev, &words[2], IRIS_CMP_GE, round);
            iris_signal_set(dev, &words[3], round, last);
        }
        if (dev.rank == last && last != 1) {
            (void)iris_wait_until(dev, &words[3], IRIS_CMP_GE, round);
            words[5] += words[0] != round;
            iris_signal_set(dev, &words[4], round, 1);
        }
    }
}

/* The first rank puts pairs with a signal, none of which may overtake: words
 * 16 and on have the data. */
IRIS_KERNEL(stream_puts, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *words = args->words, seen = 0;
    int last = args->num_ranks - 1;

    for (uint64_t i = 1; dev.rank == 0 && i <= args->rounds; i++) {
        iris_put(dev, &i, &words[6], last);
        iris_put_signal(dev, &i, &words[7], &words[8], i, last);
    }
    while (dev.rank == last && seen < args->rounds) {
        seen = iris_wait_until(dev, &words[8], IRIS_CMP_GT, seen);
        words[9] += iris_load_volatile(dev, &words[6], last) < seen ||
                    iris_load_volatile(dev, &words[7], last) < seen;
    }
}

/* Blocks that the first rank writes on top of each other and of stores, each
 * with a signal in words[10]. The reader looks between two groups of them, and
 * answers in words[1]: a block that is read while it is written may be torn. */
IRIS_KERNEL(stream_blocks, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *words = args->words, seen = 0;
    uint64_t *source = (uint64_t *)args->bytes, *block = source + BLOCK;
    int last = args->num_ranks - 1;

    for (uint64_t i = 1; dev.rank == 0 && i <= args->rounds; i++) {
        source[0] = source[BLOCK - 1] = 2 * i + 1;
        iris_store(dev, &block[i % 2 * (BLOCK - 1)], 2 * i, last);
        iris_wg_put(wg, dev, source, block, BLOCK * sizeof *block, last);
        iris_signal_set(dev, &words[10], i, last);
        if (i % GROUP == 0 || i == args->rounds) {
            (void)iris_wait_until(dev, &words[1], IRIS_CMP_GE, i);
        }
    }
    while (dev.rank == last && seen < args->rounds) {
        seen = seen + GROUP < args->rounds ? seen + GROUP : args->rounds;
        (void)iris_wait_until(dev, &words[10], IRIS_CMP_GE, seen);
        words[11] +=
            block[0] != 2 * seen + 1 || block[BLOCK - 1] != 2 * seen + 1;
        iris_signal_set(dev, &words[1], seen, 0);
    }
}

/* The same through the barrier of all ranks, which each writes ahead of. */
IRIS_KERNEL(meet, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *words = args->words + WORDS;
    int next = (dev.rank + 1) % args->num_ranks;

    for (uint64_t round = 1; round <= args->rounds; round++) {
        iris_store(dev, &words[0], round, next);
        iris_dev_barrier(wg, dev, args->group);
        words[1] += words[0] != round;
        iris_dev_barrier(wg, dev, args->group);
    }
}

/* Rank 0 and the last rank each update a word, then read the other's: one of
 * them sees the other's update. Words of both are on either's heap in turn. A
 * round begins when both have done the last one. */
IRIS_KERNEL(store_buffering, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int last = args->num_ranks - 1, other = dev.rank == 0 ? last : 0;
    uint64_t *words = args->words;

    for (uint32_t i = 0;
         (dev.rank == 0 || dev.rank == last) && i < args->rounds; i++) {
        uint64_t *pair = (uint64_t *)args->bytes + 2 * i;
        int home[2] = {i % 2 == 0 ? last : 0, i % 4 < 2 ? 0 : last};
        int own = dev.rank != 0;

        (void)iris_atomic_xchg(dev, &pair[own], (uint64_t)1, home[own],
                               IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM);
        args->seen[i] =
            iris_atomic_add(dev, &pair[!own], (uint64_t)0, home[!own],
                            IRIS_ACQ_REL, IRIS_SCOPE_SYSTEM);
        iris_signal_set(dev, &words[12], i + 1, other);
        (void)iris_wait_until(dev, &words[12], IRIS_CMP_GE, i + 1);
    }
}

/* Of two signals of the first rank the second releases the first; neither goes
 * back. */
IRIS_KERNEL(two_signals, struct far_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint64_t *words = args->words, seen = 0, first = 0;
    int last = args->num_ranks - 1;

    for (uint64_t i = 1; dev.rank == 0 && i <= args->rounds; i++) {
        iris_signal_set(dev, &words[13], i, last);
        iris_signal_set(dev, &words[14], i, last);
    }
    while (dev.rank == last && seen < args->rounds) {
        uint64_t now;

        seen = iris_wait_until(dev, &words[14], IRIS_CMP_GT, seen);
        now = iris_signal_fetch(dev, &words[13]);
        words[15] += now < seen || now < first;
        first = now;
    }
}

#define PAIRS 20000

/* Rounds of store_buffering, with pairs of words that nobody has touched. */
static int buffer_stores(iris_t *iris, struct far_args args)
{
    size_t left = harness_count(1000000, 2000);
    uint64_t *seen = malloc(2 * PAIRS * sizeof *seen);
    int last = args.num_ranks - 1;

    CHECK_OK(iris_malloc(iris, 2 * PAIRS * sizeof *seen, (void **)&args.bytes));
    CHECK_OK(iris_malloc(iris, 2 * PAIRS * sizeof *seen, (void **)&args.seen));
    for (; left != 0; left -= args.rounds) {
        args.rounds = (uint32_t)(left < PAIRS ? left : PAIRS);
        CHECK_OK(
            iris_memset(iris, args.bytes, 0, 2 * PAIRS * sizeof *seen, NULL));
        CHECK_OK(iris_memset(iris, &args.words[12], 0, sizeof *seen, NULL));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(
            iris_launch(iris, store_buffering, 1, 1, &args, sizeof args, NULL));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_get_on_stream(iris, args.seen + PAIRS, args.seen,
                                    PAIRS * sizeof *seen, last, NULL));
        CHECK_OK(
            iris_memcpy_sync(iris, seen, args.seen, 2 * PAIRS * sizeof *seen));
        for (uint32_t i = 0; iris_rank(iris) == 0 && i < args.rounds; i++) {
            CHECK(seen[i] == 1 || seen[PAIRS + i] == 1);
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    free(seen);
    CHECK_OK(iris_free(iris, args.seen));
    return iris_free(iris, args.bytes);
}

static int order_body(iris_t *iris, void *arg)
{
    struct far_args args = {.context = iris_device_context(iris),
                            .group = iris_group_device(iris, NULL),
                            .num_ranks = iris_num_ranks(iris)};
    uint64_t words[2 * WORDS];

    CHECK_OK(iris_calloc(iris, sizeof words, 1, (void **)&args.words));
    CHECK_OK(iris_calloc(iris, 2 * LARGE, 1, (void **)&args.bytes));
    args.rounds = (uint32_t)harness_count(100000, 200);
    if (args.num_ranks > 2) {
        CHECK_OK(iris_launch(iris, pass_on, 1, 1, &args, sizeof args, NULL));
    }
    CHECK_OK(iris_launch(iris, meet, 1, 1, &args, sizeof args, NULL));
    args.rounds = (uint32_t)harness_count(1000000, 2000);
    CHECK_OK(iris_launch(iris, stream_puts, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_launch(iris, stream_blocks, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_launch(iris, two_signals, 1, 1, &args, sizeof args, NULL));
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    CHECK_OK(iris_memcpy_sync(iris, words, args.words, sizeof words));
    CHECK_EQUAL(words[5], 0);
    CHECK_EQUAL(words[9], 0);
    CHECK_EQUAL(words[11], 0);
    CHECK_EQUAL(words[15], 0);
    CHECK_EQUAL(buffer_stores(iris, args), 0);
    CHECK_EQUAL(words[WORDS + 1], 0);
    if (iris_rank(iris) == args.num_ranks - 1) {
        CHECK_EQUAL(words[8], args.rounds);
        CHECK_EQUAL(words[10], args.rounds);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_free(iris, args.bytes));
    return iris_free(iris, args.words);
}

static void run(int num_ranks, const char *nodes)
{
    setenv("IRIS_NODES", nodes, 1);
    harness_run(num_ranks, order_body, NULL);
    unsetenv("IRIS_NODES");
}

static TEST(nothing_overtakes_a_release)
{
    run(2, "2");
    run(RANKS, "2");
    run(3, "2");
    run(RANKS, "4");
}

TEST_GROUP(rank);
