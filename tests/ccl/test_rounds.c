/* SPDX-License-Identifier: MIT
 *
 * Many collectives one behind the other: sizes, kinds and grids change from
 * call to call, ranks are late by turns, flags wrap around.
 */
#include "config.h"

#include <iris/device.h>

#include "ccl/play.h"
#if IRIS_ON_CPU /* C that is no C++ */
#include "ccl/internal.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALLS 8 /* that are enqueued before any is looked at */
#define REGION ((size_t)48 << 10)

struct late_args {
    const int64_t *context;
    uint64_t *word;
    uint64_t spins;
};

/* Keeps this rank's stream busy. */
IRIS_KERNEL(be_late, struct late_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    if (iris_wg_leader(wg)) {
        for (uint64_t i = 0; i < args->spins; i++) {
            (void)iris_load_volatile_u64(dev, args->word, dev.rank);
        }
    }
}

static uint64_t draw(uint64_t round, uint64_t what)
{
    return case_seed((int)what, round) >> 7;
}

/* The same call on all ranks, another one in each round. */
static struct play play_of(const iris_t *iris, iris_group_t *group,
                           uint64_t round)
{
    static const size_t most[] = {3, 40, 600, 5000};
    struct play play = {.type = &case_types[draw(round, 1) % case_num_types],
                        .op = (enum play_op)(draw(round, 2) % PLAY_NUM_OPS),
                        .reduce = (iris_reduce_op_t)(draw(round, 3) % 4),
                        .round = round};
    size_t elements = REGION / 2 / CASES_MEMBERS / play.type->bytes;
    iris_ccl_variant_t variant;

    iris_ccl_options_init(&play.options);
    play.options.group = group;
    play.options.num_cus = (int)(draw(round, 4) % 4);
    play.root = (int)(draw(round, 5) % (uint64_t)iris_group_size(iris, group));
    play.count = draw(round, 6) % most[draw(round, 7) % 4];
    play.count = play.count < elements ? play.count : elements;
    variant = play_variant(play.op, (int)(draw(round, 8) % 5));
    play_set_variant(&play,
                     play_can(iris, &play, variant) ? variant : IRIS_CCL_AUTO);
    return play;
}

struct rounds {
    iris_t *iris;
    char *in;
    char *out;
    struct late_args late;
    char *image; /* of all regions */
    struct play plays[CALLS];
    int async; /* the calls leave out barriers at their ends */
};

static int rounds_open(iris_t *iris, struct rounds *rounds)
{
    rounds->iris = iris;
    rounds->image = malloc(CALLS * REGION);
    rounds->late.context = iris_device_context(iris);
    CHECK(rounds->image != NULL);
    CHECK_OK(iris_malloc(iris, CALLS * REGION, (void **)&rounds->in));
    CHECK_OK(iris_malloc(iris, CALLS * REGION, (void **)&rounds->out));
    CHECK_OK(
        iris_calloc(iris, 1, sizeof(uint64_t), (void **)&rounds->late.word));
    return 0;
}

/* One rank in three is late before a call, another one each time. */
static int enqueue(struct rounds *rounds, int i)
{
    iris_t *iris = rounds->iris;
    struct play *play = &rounds->plays[i];
    uint64_t seed = draw(play->round, 20 + (uint64_t)iris_rank(iris));

    if (seed % 3 == 0) {
        rounds->late.spins = seed % 5000;
        CHECK_OK(iris_launch(iris, be_late, 1, 1, &rounds->late,
                             sizeof rounds->late, NULL));
    }
    CHECK_OK(play_call(iris, play, rounds->in + (size_t)i * REGION,
                       rounds->out + (size_t)i * REGION));
    return 0;
}

static int check_call(struct rounds *rounds, int i)
{
    struct play *play = &rounds->plays[i];
    char *expected = case_host(REGION, 0xa5);
    char text[80];
    size_t bytes;

    CHECK(expected != NULL);
    bytes = play_expect(rounds->iris, play, expected);
    snprintf(text, sizeof text, "round %llu", (unsigned long long)play->round);
    CHECK(memcmp(rounds->image + (size_t)i * REGION, expected, bytes) == 0 ||
          harness_failed(__FILE__, __LINE__, text, play->op, -1) == 0);
    case_host_free(expected);
    return 0;
}

static int run_batch(struct rounds *rounds, iris_group_t *group, uint64_t first)
{
    iris_t *iris = rounds->iris;
    size_t parts = CASES_MEMBERS;

    for (int i = 0; i < CALLS; i++) {
        struct play *play = &rounds->plays[i];

        *play = play_of(iris, group, first + (uint64_t)i);
        play->options.async = rounds->async;
        play->type->fill(rounds->image + (size_t)i * REGION, 0,
                         parts * play->count,
                         case_seed(iris_rank(iris), play->round));
    }
    CHECK_OK(harness_write(iris, rounds->in, rounds->image, CALLS * REGION));
    for (int i = 0; i < CALLS; i++) {
        CHECK_EQUAL(enqueue(rounds, i), 0);
    }
    CHECK_OK(harness_read(iris, rounds->image, rounds->out, CALLS * REGION));
    for (int i = 0; i < CALLS; i++) {
        CHECK_EQUAL(check_call(rounds, i), 0);
    }
    return 0;
}

static int rounds_body(iris_t *iris, void *arg)
{
    size_t batches = harness_count(100000 / CALLS, 24);
    int num_ranks = iris_num_ranks(iris), ranks[CASES_MEMBERS];
    struct rounds rounds = {.async = *(int *)arg};
    iris_group_t *group;

    CHECK_EQUAL(rounds_open(iris, &rounds), 0);
    for (int i = 0; i < num_ranks; i++) {
        ranks[i] = (i + num_ranks / 2) % num_ranks;
    }
    CHECK_OK(iris_group_create(iris, ranks, num_ranks, &group));
    for (size_t i = 0; i < batches; i++) {
        CHECK_EQUAL(run_batch(&rounds, i % 3 == 2 ? group : NULL,
                              1000 + (uint64_t)i * CALLS),
                    0);
        if (rounds.async) { /* others may still read what comes next */
            CHECK_OK(iris_barrier(iris, NULL, NULL));
        }
    }
    free(rounds.image);
    return 0;
}

static TEST(calls_follow_each_other_without_barriers)
{
    int async = 0;

    harness_run_all(rounds_body, &async);
    harness_run(3, rounds_body, &async);
}

static TEST(calls_without_a_barrier_at_the_end_do)
{
    int async = 1;

    harness_run(4, rounds_body, &async);
}

#if IRIS_ON_CPU
/* An all_reduce of packets fills the slots; then so many steps seem to have
 * been done that flags begin anew, and the first new ones are those that lie
 * there. */
static int wrap_body(iris_t *iris, void *arg)
{
    static const uint64_t starts[] = {0xffffa, 0x1fffff, 0x2ffffe, 0xffffffff};
    struct rounds rounds = {0};
    struct iris_ccl_call call = {.name = "test", .group = iris->world};

    CHECK_EQUAL(rounds_open(iris, &rounds), 0);
    CHECK_OK(iris_all_reduce_preamble(iris, NULL));
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        CHECK_OK(iris_i_ccl_workspace(iris, &call));
        CHECK_EQUAL(run_batch(&rounds, NULL, 1000), 0);
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_i_ccl_set_epoch(iris, call.workspace, starts[i]));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_EQUAL(run_batch(&rounds, NULL, 2000 + 100 * i), 0);
        CHECK_EQUAL(run_batch(&rounds, NULL, 2050 + 100 * i), 0);
    }
    free(rounds.image);
    return 0;
}

static TEST(flags_wrap_around)
{
    harness_run(2, wrap_body, NULL);
    harness_run(4, wrap_body, NULL);
    setenv("IRIS_NODES", "2", 1); /* steps are counted in a word there */
    harness_run(2, wrap_body, NULL);
    unsetenv("IRIS_NODES");
}

/* What was sent in step 1 is no answer in the first step after the flags have
 * begun anew, though the flag is the same and the sender late. */
static RANK_TEST(a_flag_of_last_time_is_no_flag, 2, 4)
{
    uint32_t value = 1000u + (uint32_t)iris_rank(iris), sum = 0, expected = 0;
    uint32_t num_ranks = (uint32_t)iris_num_ranks(iris);
    struct iris_ccl_call call = {.name = "test", .group = iris->world};
    struct iris_ccl_options options;
    struct rounds rounds = {0};

    CHECK_EQUAL(rounds_open(iris, &rounds), 0);
    iris_ccl_options_init(&options);
    options.all_reduce = IRIS_CCL_ONE_SHOT_PACKET;
    CHECK_OK(iris_all_reduce_preamble(iris, &options));
    CHECK_OK(iris_i_ccl_workspace(iris, &call));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(harness_write(iris, rounds.in, &value, sizeof value));
        if (iris_rank(iris) == 0 && i == 1) {
            rounds.late.spins = 3000000;
            CHECK_OK(iris_launch(iris, be_late, 1, 1, &rounds.late,
                                 sizeof rounds.late, NULL));
        }
        CHECK_OK(iris_all_reduce(iris, rounds.in, rounds.out, 1, IRIS_DTYPE_U32,
                                 IRIS_REDUCE_SUM, &options));
        CHECK_OK(harness_read(iris, &sum, rounds.out, sizeof sum));
        for (uint32_t r = expected = 0; r < num_ranks; r++) {
            expected += 1000u + r + (uint32_t)i * 50u;
        }
        CHECK_EQUAL(sum, expected);
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_i_ccl_set_epoch(iris, call.workspace, 0xfffff));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        value += 50;
    }
    free(rounds.image);
    return 0;
}

#endif

TEST_GROUP(rank, slow);
