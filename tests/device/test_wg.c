/* SPDX-License-Identifier: MIT
 *
 * Bulk copies by a workgroup: every misalignment of either side, many sizes,
 * nothing around them touched.
 */
#include "config.h"

#include "support/matrix.h"

#include <stdio.h>

#define SHIFTS 16u
#define PAIRS (SHIFTS * SHIFTS) /* misalignments of source and target */
#define GUARD 32u
#define MOST 4096u

/* How a block moves: pulled, pushed, or by a third rank. */
enum way { GET, PUT, COPY, PUT_SIGNAL, PUT_SIGNAL_ADD, NUM_WAYS };

struct args {
    const int64_t *context;
    uint64_t *wrong;
    char *source;
    char *targets;     /* [pair]: guard, misalignment, block, guard */
    uint64_t *signals; /* [pair], and one that all blocks are added to */
    uint64_t bytes;
    uint64_t round;
    uint64_t total; /* of that one, once all blocks of the round are here */
    uint32_t way;
    uint32_t guard;
};

IRIS_DEVICE size_t stride(const struct args *args)
{
    return 2 * GUARD + SHIFTS + (args->bytes + 15) / 16 * 16;
}

/* To whom `from`'s block of a pair goes, and from whom `to`'s comes: another
 * rank for each pair. */
IRIS_DEVICE int receiver(iris_dev_t dev, int from, unsigned pair)
{
    return (from + (int)pair) % dev.num_ranks;
}

IRIS_DEVICE int sender(iris_dev_t dev, int to, unsigned pair)
{
    return (to + dev.num_ranks - (int)pair % dev.num_ranks) % dev.num_ranks;
}

IRIS_KERNEL(fill, struct args)
{
    int rank = iris_dev_init(args->context).rank;

    IRIS_LANES (wg, i, args->bytes + SHIFTS) {
        args->source[i] = (char)matrix_mark(rank, i, args->round);
    }
}

IRIS_DEVICE void move_one(iris_wg_t wg, iris_dev_t dev, const struct args *args,
                          unsigned pair)
{
    const char *src = args->source + pair / SHIFTS;
    char *dst = args->targets + pair * stride(args) + GUARD + pair % SHIFTS;
    int from, to;

    switch (args->way) {
    case GET:
        from = sender(dev, dev.rank, pair);
        iris_wg_get(wg, dev, src, dst, args->bytes, from);
        break;
    case PUT:
        to = receiver(dev, dev.rank, pair);
        iris_wg_put(wg, dev, src, dst, args->bytes, to);
        break;
    case COPY:
        from = (dev.rank + 1) % dev.num_ranks;
        to = receiver(dev, from, pair);
        iris_wg_copy(wg, dev, src, dst, args->bytes, from, to);
        break;
    case PUT_SIGNAL:
        to = receiver(dev, dev.rank, pair);
        iris_wg_put_signal(wg, dev, src, dst, args->bytes, &args->signals[pair],
                           args->round + 1, to);
        break;
    default:
        to = receiver(dev, dev.rank, pair);
        iris_wg_put_signal_add(wg, dev, src, dst, args->bytes,
                               &args->signals[PAIRS], 1, to);
    }
}

/* Compares a target and what is around it; all lanes of a workgroup. */
IRIS_DEVICE void check_one(iris_wg_t wg, iris_dev_t dev,
                           const struct args *args, unsigned pair)
{
    const char *target = args->targets + pair * stride(args);
    int from = sender(dev, dev.rank, pair);

    IRIS_WG_LANES (wg, b, stride(args)) {
        size_t i = b - GUARD - pair % SHIFTS;
        uint64_t want = i < args->bytes
                            ? matrix_mark(from, i + pair / SHIFTS, args->round)
                            : args->guard;

        matrix_expect(
            dev, args->wrong, (unsigned char)target[b] == (unsigned char)want,
            args->bytes << 40 | (uint64_t)args->way << 32 | pair << 16 | b);
    }
}

IRIS_KERNEL(move, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (unsigned pair = wg.id; pair < PAIRS; pair += wg.num_wgs) {
        move_one(wg, dev, args, pair);
    }
    /* A signal is all that says its block is there. */
    for (unsigned pair = wg.id; args->way == PUT_SIGNAL && pair < PAIRS;
         pair += wg.num_wgs) {
        (void)iris_wait_until(dev, &args->signals[pair], IRIS_CMP_EQ,
                              args->round + 1);
        iris_wg_barrier(wg);
        check_one(wg, dev, args, pair);
    }
    for (unsigned pair = wg.id; args->way == PUT_SIGNAL_ADD && pair < PAIRS;
         pair += wg.num_wgs) {
        (void)iris_wait_until(dev, &args->signals[PAIRS], IRIS_CMP_EQ,
                              args->total);
        iris_wg_barrier(wg);
        check_one(wg, dev, args, pair);
    }
}

IRIS_KERNEL(check, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    for (unsigned pair = wg.id; pair < PAIRS; pair += wg.num_wgs) {
        check_one(wg, dev, args, pair);
    }
}

static int play_pairs(struct matrix *matrix, struct args *args)
{
    iris_t *iris = matrix->iris;

    args->round = matrix->round;
    args->total += args->way == PUT_SIGNAL_ADD ? PAIRS : 0;
    args->guard = (uint32_t)(0x5a + args->round) & 0xff;
    CHECK_OK(iris_memset(iris, args->targets, (int)args->guard,
                         PAIRS * stride(args), NULL));
    CHECK_OK(iris_launch(iris, fill, 3, 64, args, sizeof *args, NULL));
    CHECK_OK(matrix_meet(matrix));
    CHECK_OK(iris_launch(iris, move, 3, 64, args, sizeof *args, NULL));
    CHECK_OK(matrix_meet(matrix));
    CHECK_OK(iris_launch(iris, check, 3, 64, args, sizeof *args, NULL));
    return 0;
}

static RANK_TEST(blocks_move_whole_at_every_misalignment_and_size, ALL_RANKS)
{
    const uint64_t sizes[] = {0, 1, 3, 15, 16, 17, 63, 64, 255, MOST};
    const size_t num_sizes = sizeof sizes / sizeof *sizes;
    struct matrix matrix = {0};
    struct args args = {0};
    char text[100];
    uint64_t where;
    void *memory, *signals;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_malloc(iris, (PAIRS + 1) * (MOST + 256), &memory));
    CHECK_OK(iris_calloc(iris, PAIRS + 1, sizeof(uint64_t), &signals));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    args.source = (char *)memory;
    args.targets = args.source + MOST + 256;
    args.signals = (uint64_t *)signals;
    for (size_t i = 0; i < num_sizes * NUM_WAYS; i++) {
        args.bytes = sizes[i / NUM_WAYS];
        args.way = i % NUM_WAYS;
        CHECK_EQUAL(play_pairs(&matrix, &args), 0);
    }
    CHECK_EQUAL(matrix_result(&matrix, &where), 0);
    snprintf(text, sizeof text, "way %u, %u bytes, shifts %u %u: byte %u",
             (unsigned)(where >> 32 & 255), (unsigned)(where >> 40 & 0xffff),
             (unsigned)(where >> 20 & 15), (unsigned)(where >> 16 & 15),
             (unsigned)(where & 0xffff));
    return where == 0 ? 0 : harness_failed(__FILE__, __LINE__, text, 1, 0);
}

#define RING ((size_t)(1 << 20) + 13)

/* Passes a block on, each workgroup its part, in each round by another way. */
IRIS_KERNEL(pass_on, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    size_t part = args->bytes / wg.num_wgs + 1, start = part * wg.id;
    size_t bytes = part < args->bytes - start ? part : args->bytes - start;
    int after = (dev.rank + 1) % dev.num_ranks;
    int before = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;
    size_t odd = args->round % 2 * (args->bytes + 3);
    const char *src = args->source + odd + start;
    char *dst = args->source + (args->bytes + 3) - odd + start;

    if (args->way == GET) {
        iris_wg_get(wg, dev, src, dst, bytes, before);
    } else if (args->way == PUT) {
        iris_wg_put(wg, dev, src, dst, bytes, after);
    } else if (args->way == COPY) {
        iris_wg_copy(wg, dev, src, dst, bytes, dev.rank, after);
    } else if (args->way == PUT_SIGNAL) {
        iris_wg_put_signal(wg, dev, src, dst, bytes, &args->signals[wg.id],
                           args->round, after);
    } else {
        iris_wg_put_signal_add(wg, dev, src, dst, bytes, &args->signals[wg.id],
                               1, after);
    }
}

/* In round r each rank has the block of the rank r places before it. */
IRIS_KERNEL(check_ring, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int rounds = (int)(args->round % (uint64_t)dev.num_ranks);
    int owner = (dev.rank + dev.num_ranks - rounds) % dev.num_ranks;
    const char *block = args->source + args->round % 2 * (args->bytes + 3);

    IRIS_LANES (wg, i, args->bytes) {
        matrix_expect(dev, args->wrong,
                      block[i] == (char)matrix_mark(owner, i, 0),
                      args->round << 32 | i);
    }
}

static RANK_TEST(a_block_goes_around_the_ring_and_comes_back, ALL_RANKS)
{
    struct matrix matrix = {0};
    struct args args = {0};
    uint64_t where;
    void *memory, *signals;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_malloc(iris, 2 * RING + 64, &memory));
    CHECK_OK(iris_calloc(iris, 4, sizeof(uint64_t), &signals));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    args.source = (char *)memory;
    args.signals = (uint64_t *)signals;
    args.bytes = RING;
    CHECK_OK(iris_launch(iris, fill, 4, 64, &args, sizeof args, NULL));
    for (int round = 0; round < iris_num_ranks(iris); round++) {
        args.round = (uint64_t)round;
        args.way = (uint32_t)round % NUM_WAYS;
        CHECK_OK(
            iris_launch(iris, check_ring, 4, 64, &args, sizeof args, NULL));
        CHECK_OK(matrix_meet(&matrix));
        CHECK_OK(iris_launch(iris, pass_on, 4, 64, &args, sizeof args, NULL));
        CHECK_OK(matrix_meet(&matrix));
    }
    args.round = (uint64_t)iris_num_ranks(iris);
    CHECK_OK(iris_launch(iris, check_ring, 4, 64, &args, sizeof args, NULL));
    CHECK_EQUAL(matrix_result(&matrix, &where), 0);
    CHECK_EQUAL(where, 0);
    return 0;
}

#define TURNS 40u

/* Puts one source again and again, and overwrites it each time at once. */
IRIS_KERNEL(reuse_source, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int to = (dev.rank + 1) % dev.num_ranks;

    for (unsigned turn = 0; turn < TURNS; turn++) {
        char *target = args->targets + turn * args->bytes;

        IRIS_WG_LANES (wg, i, args->bytes) {
            args->source[i] = (char)matrix_mark(dev.rank, i, turn);
        }
        iris_wg_barrier(wg);
        if (turn % 2 == 0) {
            iris_wg_put(wg, dev, args->source, target, args->bytes, to);
        } else {
            iris_wg_copy(wg, dev, args->source, target, args->bytes, dev.rank,
                         to);
        }
        iris_wg_flush_source(wg);
        IRIS_WG_LANES (wg, i, args->bytes) {
            /* Another lane overwrites a byte than the one that put it. */
            args->source[args->bytes - 1 - i] = (char)0xee;
        }
        iris_wg_barrier(wg);
    }
}

IRIS_KERNEL(check_reuse, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int from = (dev.rank + dev.num_ranks - 1) % dev.num_ranks;

    IRIS_LANES (wg, i, args->bytes * TURNS) {
        uint64_t mark =
            matrix_mark(from, i % args->bytes, (uint64_t)(i / args->bytes));

        matrix_expect(dev, args->wrong, args->targets[i] == (char)mark, i);
    }
}

static RANK_TEST(a_source_may_be_overwritten_after_its_flush, ALL_RANKS)
{
    const uint64_t sizes[] = {1, 77, MOST, 100003};
    struct matrix matrix = {0};
    struct args args = {0};
    uint64_t where;
    void *memory;

    CHECK_EQUAL(matrix_open(iris, &matrix), 0);
    CHECK_OK(iris_malloc(iris, (TURNS + 1) * 100003, &memory));
    args.context = iris_device_context(iris);
    args.wrong = matrix.wrong;
    args.source = (char *)memory;
    args.targets = args.source + 100003;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        args.bytes = sizes[i];
        CHECK_OK(
            iris_launch(iris, reuse_source, 1, 64, &args, sizeof args, NULL));
        CHECK_OK(matrix_meet(&matrix));
        CHECK_OK(
            iris_launch(iris, check_reuse, 3, 64, &args, sizeof args, NULL));
        CHECK_OK(matrix_meet(&matrix));
    }
    CHECK_EQUAL(matrix_result(&matrix, &where), 0);
    CHECK_EQUAL(where, 0);
    return 0;
}

/* Blocks of nothing from and to nowhere; the signal comes all the same. */
IRIS_KERNEL(move_nothing, struct args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    int to = (dev.rank + 1) % dev.num_ranks;

    iris_wg_put(wg, dev, NULL, NULL, 0, to);
    iris_wg_get(wg, dev, NULL, NULL, 0, to);
    iris_wg_copy(wg, dev, NULL, NULL, 0, dev.rank, to);
    iris_wg_put_signal(wg, dev, NULL, NULL, 0, &args->signals[wg.id], 1, to);
    (void)iris_wait_until(dev, &args->signals[wg.id], IRIS_CMP_GE, 1);
    iris_wg_put_signal_add(wg, dev, NULL, NULL, 0, &args->signals[wg.id], 2,
                           to);
    (void)iris_wait_until(dev, &args->signals[wg.id], IRIS_CMP_EQ, 3);
}

static RANK_TEST(a_block_of_0_bytes_needs_no_address, ALL_RANKS)
{
    struct args args = {0};
    void *signals;

    CHECK_OK(iris_calloc(iris, 4, sizeof(uint64_t), &signals));
    args.context = iris_device_context(iris);
    args.signals = (uint64_t *)signals;
    CHECK_OK(iris_launch(iris, move_nothing, 4, 64, &args, sizeof args, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_free(iris, signals));
    return 0;
}

TEST_GROUP(matrix, sample);
