/* SPDX-License-Identifier: MIT
 *
 * Broadcast, and host collectives one after another.
 */
#include "config.h"

#include "support/harness.h"

#include <stdlib.h>
#include <string.h>

#define MAX_BYTES ((size_t)100 * 1024)
#define GUARD 16 /* bytes behind the data that nobody may write */

static unsigned char byte_of(int rank, size_t round, size_t i)
{
    return (unsigned char)(i * 13 + i / 127 + round * 29 + (size_t)rank * 7);
}

/* One broadcast from member `root`, checked on every member. */
static int broadcast_once(iris_t *iris, iris_group_t *group, int root,
                          size_t bytes, size_t round)
{
    unsigned char *data = malloc(bytes + GUARD);
    int from = iris_group_member(iris, group, root);
    int wrong = 0;

    CHECK(data != NULL);
    memset(data, 0xee, bytes + GUARD);
    for (size_t i = 0; from == iris_rank(iris) && i < bytes; i++) {
        data[i] = byte_of(from, round, i);
    }
    CHECK_OK(iris_broadcast(iris, data, bytes, root, group));
    for (size_t i = 0; i < bytes + GUARD; i++) {
        wrong += data[i] != (i < bytes ? byte_of(from, round, i) : 0xee);
    }
    free(data);
    CHECK_EQUAL(wrong, 0);
    return 0;
}

static int all_sizes(iris_t *iris, iris_group_t *group)
{
    static const size_t sizes[] = {0,    1,    2,    4031,     4032,
                                   4033, 8064, 8065, MAX_BYTES};

    for (int root = 0; root < iris_group_size(iris, group); root++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            CHECK_EQUAL(broadcast_once(iris, group, root, sizes[i], i), 0);
        }
    }
    CHECK_OK(iris_broadcast(iris, NULL, 0, 0, group));
    return 0;
}

static RANK_TEST(broadcast_reaches_every_member_from_every_root, ALL_RANKS)
{
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    int half[8], count = 0;
    iris_group_t *group;

    CHECK_EQUAL(all_sizes(iris, NULL), 0);
    for (int r = num_ranks; r-- > 0;) {
        if (r % 2 == rank % 2) {
            half[count++] = r;
        }
    }
    CHECK_OK(iris_group_create(iris, half, count, &group));
    CHECK_EQUAL(all_sizes(iris, group), 0);
    CHECK_OK(iris_group_destroy(iris, group));
    return 0;
}

/* Host work that keeps this rank behind the others. */
static void straggle(int rank, size_t round)
{
    volatile size_t work = 0;

    for (size_t i = 0; round % 8 == (size_t)rank && i < 100000; i++) {
        work = work + i;
    }
}

static int back_to_back_body(iris_t *iris, void *arg)
{
    size_t rounds = *(const size_t *)arg;
    int num_ranks = iris_num_ranks(iris);

    for (size_t round = 0; round < rounds; round++) {
        int root = (int)(round % (size_t)num_ranks);
        size_t bytes = round * 977 % (round % 10 == 0 ? MAX_BYTES : 5000);
        void *block;

        straggle(iris_rank(iris), round);
        CHECK_EQUAL(broadcast_once(iris, NULL, root, bytes, round), 0);
        CHECK_EQUAL(broadcast_once(iris, NULL, num_ranks - 1 - root, 40, round),
                    0);
        if (round % 3 == 0) {
            CHECK_OK(iris_malloc(iris, bytes + 1, &block));
            CHECK_OK(iris_free(iris, block));
        }
    }
    return 0;
}

static TEST(collectives_need_no_barrier_in_between)
{
    size_t rounds = harness_count(4000, 500);

    harness_run_all(back_to_back_body, &rounds);
}

/* Every member is refused, and the next call works. */
static RANK_TEST(broadcast_refuses_what_makes_no_sense_on_every_member,
                 ALL_RANKS)
{
    int num_ranks = iris_num_ranks(iris);
    char data[8] = {0};

    CHECK_STATUS(iris_broadcast(iris, data, 8, num_ranks, NULL),
                 IRIS_ERR_INVALID);
    CHECK_STATUS(iris_broadcast(iris, data, 8, -1, NULL), IRIS_ERR_INVALID);
    CHECK_STATUS(iris_broadcast(iris, NULL, 8, 0, NULL), IRIS_ERR_INVALID);
    if (num_ranks > 1) {
        size_t bytes = iris_rank(iris) == 1 ? 7 : 8;

        CHECK_STATUS(iris_broadcast(iris, data, bytes, 0, NULL),
                     IRIS_ERR_MISMATCH);
        CHECK_MESSAGE("bytes 7");
        CHECK_MESSAGE("bytes 8");
    }
    CHECK_EQUAL(broadcast_once(iris, NULL, 0, 8, 1), 0);
    return 0;
}

TEST_GROUP(rank, one_gpu, sample);
