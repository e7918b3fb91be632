/* SPDX-License-Identifier: MIT
 *
 * The other collectives, and groups: each variant moves every element to where
 * it belongs and touches nothing else, in groups of any shape.
 */
#include "config.h"

#include "ccl/play.h"

#include <stdlib.h>

#define MOST ((size_t)128 << 10)

static struct play first_play(enum play_op op)
{
    struct play play = {
        .op = op, .type = &case_types[10], .reduce = IRIS_REDUCE_SUM};

    iris_ccl_options_init(&play.options);
    return play;
}

static int each_variant(struct play_board *board, struct play *play)
{
    iris_ccl_variant_t variant;

    for (int i = 0; i <= 4; i++) {
        variant = i == 4 ? IRIS_CCL_AUTO : play_variant(play->op, i);
        if ((i == 4 || variant != IRIS_CCL_AUTO) &&
            play_can(board->iris, play, variant)) {
            play_set_variant(play, variant);
            play->round++;
            CHECK_EQUAL(play_and_check(board, play), 0);
        }
    }
    return 0;
}

/* One collective in many ways. */
static int ways_body(iris_t *iris, void *arg)
{
    static const size_t counts[] = {0, 1, 3, 4, 31, 128, 1031};
    struct play play = first_play(*(enum play_op *)arg);
    struct play_board board;

    CHECK_EQUAL(play_open(iris, MOST + 256, &board), 0);
    for (size_t i = 0; i < 24; i++) {
        play.type = &case_types[(5 * i) % case_num_types];
        play.reduce = (iris_reduce_op_t)(i % 4);
        play.count = counts[i % 7];
        play.shift = i % 4;
        play.in_place = i % 2 == 1;
        play.root = (int)i % iris_num_ranks(iris);
        play_scale(&play, i);
        play.options.num_cus = (int)(i % 3);
        CHECK_EQUAL(each_variant(&board, &play), 0);
    }
    return 0;
}

static void run_ways(enum play_op op)
{
    harness_run_all(ways_body, &op);
    harness_run(3, ways_body, &op);
}

static TEST(all_gather_gives_all_parts_in_order)
{
    run_ways(PLAY_ALL_GATHER);
}

static TEST(reduce_scatter_gives_each_its_part)
{
    run_ways(PLAY_REDUCE_SCATTER);
}

static TEST(all_to_all_transposes)
{
    run_ways(PLAY_ALL_TO_ALL);
}

static TEST(broadcast_gives_all_the_roots)
{
    run_ways(PLAY_BROADCAST);
}

static TEST(reduce_gives_the_root_the_sum)
{
    run_ways(PLAY_REDUCE);
}

static TEST(gather_gives_the_root_all_parts)
{
    run_ways(PLAY_GATHER);
}

static TEST(scatter_gives_each_its_part_of_the_roots)
{
    run_ways(PLAY_SCATTER);
}

/* The ranks of a group's shape that this rank is in; returns how many. */
static int shape_of(int shape, int rank, int num_ranks, int *ranks)
{
    int count = 0;

    for (int r = 0; r < num_ranks; r++) {
        int member = shape == 0   ? r / 2 == rank / 2  /* pairs */
                     : shape == 1 ? 1                  /* all, reversed */
                     : shape == 2 ? r >= num_ranks - 3 /* the last ones */
                     : shape == 3 ? r * r % 3 == rank * rank % 3 /* uneven */
                                  : r % 2 == rank % 2;
        if (member) {
            ranks[count++] = r;
        }
    }
    for (int i = 0; shape == 1 && i < count / 2; i++) {
        int other = ranks[i];

        ranks[i] = ranks[count - 1 - i];
        ranks[count - 1 - i] = other;
    }
    return shape == 2 && rank < num_ranks - 3 ? 0 : count;
}

/* All collectives in groups of every shape, two kinds of group by turns. */
static RANK_TEST(groups_of_any_shape_work, 4, 8)
{
    struct play_board board;
    iris_group_t *groups[5];
    int ranks[CASES_MEMBERS];

    CHECK_EQUAL(play_open(iris, MOST, &board), 0);
    CHECK_OK(iris_ccl_prepare(iris));
    for (int shape = 0; shape < 5; shape++) {
        int count =
            shape_of(shape, iris_rank(iris), iris_num_ranks(iris), ranks);

        CHECK_OK(iris_group_create(iris, ranks, count, &groups[shape]));
    }
    for (int i = 0; i < 5 * PLAY_NUM_OPS; i++) {
        struct play play = first_play((enum play_op)(i / 5));

        play.options.group = groups[i % 5];
        if (play.options.group == NULL) {
            continue;
        }
        play.count = 1 + 37 * (size_t)i;
        play.round = 10 * (uint64_t)i;
        play_scale(&play, (size_t)i);
        play.root = i % iris_group_size(iris, play.options.group);
        CHECK_EQUAL(each_variant(&board, &play), 0);
    }
    for (int shape = 0; shape < 5; shape++) {
        CHECK_OK(iris_group_destroy(iris, groups[shape]));
    }
    return 0;
}

/* What comes from malloc() is staged or travels in packets, in several steps if
 * there is much of it. In a call some members' buffers may be on the heap. */
static int off_heap_body(iris_t *iris, void *arg)
{
    struct play_board board;
    uint64_t round = 0;

    CPU_ONLY(iris, "memory off the heap is the host's");
    CHECK_EQUAL(play_open(iris, 8 * 4 * 50000, &board), 0);
    for (int op = 0; op < PLAY_NUM_OPS; op++) {
        struct play play = first_play((enum play_op)op);

        play.off_heap = *(enum play_memory *)arg;
        play.round = round;
        for (play.count = 5; play.count < 50000; play.count *= 9) {
            play.in_place = !play.in_place;
            play_scale(&play, play.count);
            play.shift = play.count % 3;
            play.root = (int)play.count % iris_num_ranks(iris);
            play.options.num_cus = (int)(play.count % 4);
            CHECK_EQUAL(each_variant(&board, &play), 0);
        }
        round = play.round;
    }
    return 0;
}

static void run_off_heap(enum play_memory memory)
{
    harness_run_all(off_heap_body, &memory);
    setenv("IRIS_CCL_SIZE", "64K", 1); /* many small pieces */
    harness_run(2, off_heap_body, &memory);
    harness_run(3, off_heap_body, &memory);
    unsetenv("IRIS_CCL_SIZE");
}

static TEST(memory_off_the_heap_works)
{
    run_off_heap(PLAY_OFF_HEAP);
}

static TEST(members_may_differ_in_where_buffers_are)
{
    run_off_heap(PLAY_MIXED);
}

TEST_GROUP(matrix, slow);
