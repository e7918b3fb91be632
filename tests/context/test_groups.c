/* SPDX-License-Identifier: MIT
 *
 * Groups of any ranks in any order: numbers translated from one to another, and
 * groups that work at the same time, each at its own pace.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

#define MAX_RANKS 64

/* Ranks from `first` on, every `step`-th, backwards. */
static int pick(int num_ranks, int first, int step, int *ranks)
{
    int count = 0;

    for (int rank = num_ranks; rank-- > 0;) {
        if (rank >= first && (rank - first) % step == 0) {
            ranks[count++] = rank;
        }
    }
    return count;
}

static RANK_TEST(members_are_translated_between_groups, ALL_RANKS)
{
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    int halves[MAX_RANKS], whole[MAX_RANKS];
    int count = pick(num_ranks, rank % 2, 2, halves);
    iris_group_t *half, *reversed, *own;

    CHECK(num_ranks <= MAX_RANKS);
    CHECK_OK(iris_group_create(iris, halves, count, &half));
    CHECK_OK(iris_group_create(iris, whole, pick(num_ranks, 0, 1, whole),
                               &reversed));
    CHECK_OK(iris_group_create(iris, &rank, 1, &own));
    for (int i = 0; i < num_ranks; i++) {
        int other = num_ranks - 1 - i;
        int in_half = other % 2 == rank % 2;

        CHECK_EQUAL(iris_group_translate(iris, NULL, i, NULL), i);
        CHECK_EQUAL(iris_group_translate(iris, reversed, i, NULL), other);
        CHECK_EQUAL(iris_group_translate(iris, NULL, other, reversed), i);
        CHECK_EQUAL(iris_group_translate(iris, reversed, i, half),
                    in_half ? (num_ranks - 1 - rank % 2) / 2 - other / 2 : -1);
        CHECK_EQUAL(iris_group_translate(iris, reversed, i, own),
                    other == rank ? 0 : -1);
    }
    for (int i = 0; i < count; i++) {
        CHECK_EQUAL(iris_group_translate(iris, half, i, NULL), halves[i]);
        CHECK_EQUAL(iris_group_translate(iris, half, i, half), i);
    }
    CHECK_EQUAL(iris_group_translate(iris, half, count, NULL), -1);
    CHECK_EQUAL(iris_group_translate(iris, half, -1, NULL), -1);
    CHECK_OK(iris_group_destroy(iris, half));
    CHECK_EQUAL(iris_group_translate(iris, NULL, 0, half), -1);
    CHECK_MESSAGE("not a live group");
    CHECK_OK(iris_group_destroy(iris, reversed));
    CHECK_OK(iris_group_destroy(iris, own));
    CHECK_EQUAL(iris_group_translate(NULL, NULL, 0, NULL), -1);
    return 0;
}

/* One round of all that a group does, from a root that changes. */
static int work_once(iris_t *iris, iris_group_t *group, int round)
{
    int size = iris_group_size(iris, group), root = round % size;
    char data[5000], expected[5000];

    memset(expected, round % 127 + iris_group_member(iris, group, root),
           sizeof expected);
    memset(data, 0, sizeof data);
    if (iris_group_index(iris, group) == root) {
        memcpy(data, expected, sizeof data);
    }
    CHECK_OK(iris_broadcast(iris, data, sizeof data, root, group));
    CHECK_EQUAL(memcmp(data, expected, sizeof data), 0);
    CHECK_OK(iris_device_barrier(iris, NULL, group));
    CHECK_OK(iris_barrier(iris, NULL, group));
    return 0;
}

/* Of two groups the first works before the second has come, so it cannot have
 * waited for it; and the second while the first waits for it in turn. */
static int apart_body(iris_t *iris, void *arg)
{
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    int ranks[MAX_RANKS], part = rank % 2;
    int count = pick(num_ranks, part, 2, ranks);
    uint64_t *gate;
    iris_group_t *group;

    CHECK_OK(iris_calloc_typed(iris, 2, &gate));
    CHECK_OK(iris_group_create(iris, ranks, count, &group));
    for (int turn = 0; turn < 2; turn++) {
        int rounds = 3 + 10 * part;

        if (turn != part) {
            CHECK_OK(
                iris_wait_on_stream(iris, &gate[turn], IRIS_CMP_EQ, 1, NULL));
            CHECK_OK(iris_stream_synchronize(iris, NULL));
        }
        for (int round = 0; turn == part && round < rounds; round++) {
            CHECK_EQUAL(work_once(iris, group, round), 0);
        }
        for (int to = 0; turn == part && rank == ranks[0] && to < num_ranks;
             to++) {
            CHECK_OK(iris_signal_on_stream(iris, &gate[turn], 1, to, NULL));
        }
    }
    /* And both at once, one twice as often as the other. */
    for (int round = 0; round < 20 * (1 + part); round++) {
        CHECK_EQUAL(work_once(iris, group, round), 0);
    }
    CHECK_OK(iris_group_destroy(iris, group));
    CHECK_OK(iris_free(iris, gate));
    return 0;
}

static TEST(disjoint_groups_work_at_the_same_time)
{
    for (int num_ranks = 2; num_ranks <= 8; num_ranks *= 2) {
        harness_run(num_ranks, apart_body, NULL);
    }
}

/* The order of members is the group's own: whoever is first is root 0. */
static RANK_TEST(members_have_the_order_they_are_listed_in, ALL_RANKS)
{
    int num_ranks = iris_num_ranks(iris), rank = iris_rank(iris);
    int ranks[MAX_RANKS];
    iris_group_t *group;

    for (int shift = 0; shift < num_ranks; shift++) {
        int first = rank;

        for (int i = 0; i < num_ranks; i++) {
            ranks[i] = (i + shift) % num_ranks;
        }
        CHECK_OK(iris_group_create(iris, ranks, num_ranks, &group));
        CHECK_EQUAL(iris_group_index(iris, group),
                    (rank - shift + num_ranks) % num_ranks);
        CHECK_OK(iris_broadcast(iris, &first, sizeof first, 0, group));
        CHECK_EQUAL(first, shift);
        CHECK_EQUAL(work_once(iris, group, 1), 0);
        CHECK_OK(iris_group_destroy(iris, group));
    }
    return 0;
}

TEST_GROUP(rank);
