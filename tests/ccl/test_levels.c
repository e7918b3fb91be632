/* SPDX-License-Identifier: MIT
 *
 * Collectives by level, in groups of several pretended nodes: the bits of one
 * node with any type, operation, order of the members and number of them on a
 * node; and members that make different calls, which go different ways.
 */
#include "config.h"

#include "ccl/play.h"

#include <stdio.h>
#include <stdlib.h>

#define RANKS_MOST 8
#define MOST ((size_t)600 << 10) /* several pieces on each rail */

/* Runs a body on so many ranks of so many nodes. */
static void run_on(const char *nodes, int ranks, int (*body)(iris_t *, void *),
                   void *arg)
{
    setenv("IRIS_NODES", nodes, 1);
    harness_run(ranks, body, arg);
    unsetenv("IRIS_NODES");
}

static int check_types(struct play_board *board, struct play play)
{
    static const size_t counts[] = {1, 1031, 9001, 257, 20000};

    for (size_t t = 0; t < case_num_types; t++) {
        for (int op = 0; op <= IRIS_REDUCE_AVG; op++) {
            play.type = &case_types[t];
            play.reduce = (iris_reduce_op_t)op;
            play.count = counts[(t + (size_t)op) % 5];
            play.round += 10;
            play.in_place = op & 1;
            play.off_heap = (enum play_memory)((t + (size_t)op) % 3);
            if (case_reduces(play.type, play.reduce)) {
                play_scale(&play, t);
                CHECK_EQUAL(play_and_check(board, &play), 0);
            }
        }
    }
    return 0;
}

static int check_counts(struct play_board *board, struct play play)
{
    static const size_t counts[] = {0,    1,     2047,  2048,  2049, 8191,
                                    8192, 16411, 40000, 70001, 76800};

    play.off_heap = PLAY_ON_HEAP;
    play.options.scale = 0;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        play.type = &case_types[i % 2 == 0 ? 10 : 8]; /* f32, f16 */
        play.reduce = IRIS_REDUCE_SUM;
        play.count = counts[i];
        play.shift = i % 5;
        play.round += 10;
        play.in_place = i % 3 == 1;
        CHECK_EQUAL(play_and_check(board, &play), 0);
    }
    return 0;
}

static int check_group(struct play_board *board, iris_group_t *group)
{
    static const enum play_op ops[] = {PLAY_ALL_REDUCE, PLAY_REDUCE_SCATTER,
                                       PLAY_ALL_GATHER, PLAY_BROADCAST};
    for (size_t i = 0; i < sizeof ops / sizeof ops[0]; i++) {
        struct play play = {.op = ops[i],
                            .root = iris_group_size(board->iris, group) - 1,
                            .round = 10000 * i};

        iris_ccl_options_init(&play.options);
        play.options.group = group;
        CHECK_EQUAL(check_types(board, play), 0);
        play.round = 10000 * i + 7001;
        CHECK_EQUAL(check_counts(board, play), 0);
    }
    return 0;
}

static int world_body(iris_t *iris, void *arg)
{
    struct play_board board;

    CPU_ONLY(iris, "GPUs reach only heaps that are mapped");
    CHECK_EQUAL(play_open(iris, RANKS_MOST * MOST, &board), 0);
    return check_group(&board, NULL);
}

static TEST(each_type_and_count_has_the_bits_of_one_node)
{
    run_on("2", 4, world_body, NULL);
    run_on("4", 4, world_body, NULL);
}

/* Members have several rails; nodes have different numbers of members. */
static TEST(nodes_may_have_different_numbers_of_members)
{
    run_on("2", 3, world_body, NULL);
    run_on("2", 5, world_body, NULL);
    run_on("3", 7, world_body, NULL);
}

/* Members of nodes of three: in order, by turns, one against many. */
static const int orders[][7] = {{3, 4, 5, 0, 1, 2, -1},
                                {5, 0, 3, 1, 4, 2, -1},
                                {0, 1, 2, 5, -1},
                                {4, 0, 5, -1}};

static int orders_body(iris_t *iris, void *arg)
{
    struct play_board board;

    CPU_ONLY(iris, "GPUs reach only heaps that are mapped");
    CHECK_EQUAL(play_open(iris, RANKS_MOST * MOST, &board), 0);
    CHECK_OK(iris_ccl_prepare(iris));
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        iris_group_t *group = NULL;
        int n = 0, is_member = 0;

        for (; orders[i][n] >= 0; n++) {
            is_member |= orders[i][n] == iris_rank(iris);
        }
        CHECK_OK(iris_group_create(iris, orders[i], is_member ? n : 0, &group));
        if (is_member) {
            CHECK_EQUAL(check_group(&board, group), 0);
            CHECK_OK(iris_group_destroy(iris, group));
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    return 0;
}

static TEST(members_may_come_in_any_order)
{
    run_on("2", 6, orders_body, NULL);
}

/* ---- Members that differ ---- */

struct differing {
    size_t count;       /* elements of all but one rank */
    size_t other_count; /* of that one */
    int gathers;        /* that one calls all_gather */
    int broadcasts;     /* or broadcast, which goes another way */
};

static const struct differing cases[] = {
    {10, 20, 0, 0},        {10, 100000, 0, 0}, {100000, 10, 0, 0},
    {100000, 90000, 0, 0}, {100000, 10, 1, 0}, {10, 10, 1, 0},
    {100000, 10, 0, 1},    {10, 100000, 0, 1}, {10, 0, 0, 0}};

static int differ_body(iris_t *iris, void *arg)
{
    const struct differing *differing = arg;
    int is_other = iris_rank(iris) == 3;
    size_t count = is_other ? differing->other_count : differing->count;
    float *in = calloc(100000, sizeof *in);
    float *out = calloc(400000, sizeof *out);

    CPU_ONLY(iris, "GPUs reach only heaps that are mapped");
    CHECK_OK(iris_all_reduce(iris, in, out, 50000, IRIS_DTYPE_F32,
                             IRIS_REDUCE_SUM, NULL));
    if (is_other && differing->gathers) {
        CHECK_OK(iris_all_gather(iris, in, out, count, IRIS_DTYPE_F32, NULL));
    } else if (is_other && differing->broadcasts) {
        CHECK_OK(
            iris_ccl_broadcast(iris, in, out, count, IRIS_DTYPE_F32, 0, NULL));
    } else {
        CHECK_OK(iris_all_reduce(iris, in, out, count, IRIS_DTYPE_F32,
                                 IRIS_REDUCE_SUM, NULL));
    }
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    free(in);
    free(out);
    return 0;
}

static TEST(members_that_go_different_ways_are_told)
{
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        run_on("2", 4, differ_body, (void *)(uintptr_t)&cases[i]);
    }
    run_on("3", 6, differ_body, (void *)(uintptr_t)&cases[1]);
    run_on("4", 4, differ_body, (void *)(uintptr_t)&cases[3]);
}

TEST_GROUP(rank, one_node);
