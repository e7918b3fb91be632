/* SPDX-License-Identifier: MIT
 *
 * Groups that cannot be: lists that differ or are wrong, too many of them,
 * handles of none.
 */
#include "config.h"

#include "support/harness.h"

#define RANKS 3

static int refuse_group(iris_t *iris, const int *ranks, int count,
                        iris_status_t expected, const char *text)
{
    iris_group_t *group = (void *)iris;

    CHECK_STATUS(iris_group_create(iris, ranks, count, &group), expected);
    CHECK_MESSAGE(text);
    CHECK(group == (void *)iris);
    return 0;
}

static RANK_TEST(groups_that_differ_are_not_made, RANKS)
{
    static const int both[] = {0, 1}, turned[] = {1, 0}, all[] = {0, 1, 2};
    static const int outside[] = {0, 1, 3}, twice[] = {1, 1, 2, 0, 1};
    int rank = iris_rank(iris);
    iris_group_t *group;

    CHECK_EQUAL(refuse_group(iris, rank == 1 ? turned : both, rank < 2 ? 2 : 0,
                             IRIS_ERR_MISMATCH, "passed another list"),
                0);
    CHECK_EQUAL(refuse_group(iris, all, rank == 0 ? 3 : 0, IRIS_ERR_MISMATCH,
                             "rank 0 lists rank 1"),
                0);
    CHECK_EQUAL(refuse_group(iris, rank == 2 ? outside : all, 3,
                             IRIS_ERR_INVALID, "is rank 3; list ranks 0 to 2"),
                0);
    CHECK_EQUAL(refuse_group(iris, rank == 2 ? twice : all, 3, IRIS_ERR_INVALID,
                             "rank 1 is in the group twice; list it once"),
                0);
    CHECK_EQUAL(refuse_group(iris, twice, 5, IRIS_ERR_INVALID,
                             "5 members in a job of 3"),
                0);
    CHECK_STATUS(iris_group_create(iris, all, 3, rank == 1 ? NULL : &group),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("group_p is NULL; pass where to put the group");
    CHECK_OK(iris_group_create(iris, all, 3, &group));
    CHECK_OK(iris_barrier(iris, NULL, group));
    CHECK_OK(iris_group_destroy(iris, group));
    return iris_barrier(iris, NULL, NULL);
}

static RANK_TEST(groups_run_out_and_come_back, RANKS)
{
    static const int all[] = {0, 1, 2};
    iris_group_t *groups[100];
    int count = 0;

    while (iris_group_create(iris, all, 3, &groups[count]) == IRIS_OK) {
        CHECK(++count < 100);
    }
    CHECK_MESSAGE("groups are live already; destroy some");
    CHECK_EQUAL(count, 63);
    CHECK_OK(iris_group_destroy(iris, groups[31]));
    CHECK_OK(iris_group_create(iris, all, 3, &groups[31]));
    for (int i = 0; i < count; i++) {
        CHECK_OK(iris_barrier(iris, NULL, groups[i]));
        CHECK_OK(iris_group_destroy(iris, groups[i]));
    }
    return 0;
}

static int other_members_groups(iris_t *iris, void *arg)
{
    const char *wrong = "is not a live group of this context";
    const char *remedy = "pass one that iris_group_create gave";
    iris_group_t *group = NULL;
    int pair[] = {0, 1};

    CHECK_OK(
        iris_group_create(iris, pair, iris_rank(iris) < 2 ? 2 : 0, &group));
    CHECK_EQUAL(group == NULL, iris_rank(iris) == 2);
    CHECK_BAD(iris, iris_barrier(iris, NULL, arg), IRIS_ERR_INVALID, wrong,
              remedy);
    CHECK_BAD(iris, iris_device_barrier(iris, NULL, arg), IRIS_ERR_INVALID,
              wrong, remedy);
    CHECK_BAD(iris, iris_broadcast(iris, pair, 4, 0, arg), IRIS_ERR_INVALID,
              wrong, remedy);
    CHECK_BAD(iris, iris_group_destroy(iris, arg), IRIS_ERR_INVALID, wrong,
              remedy);
    CHECK_EQUAL(iris_group_size(iris, arg), -1);
    if (group != NULL) {
        CHECK_BAD(iris, iris_broadcast(iris, pair, 4, 2, group),
                  IRIS_ERR_INVALID, "root 2", "pass 0 to 1");
        CHECK_EQUAL(iris_group_member(iris, group, 2), -1);
        CHECK_EQUAL(iris_group_member(iris, group, -1), -1);
        CHECK_OK(iris_group_destroy(iris, group));
        CHECK_BAD(iris, iris_barrier(iris, NULL, group), IRIS_ERR_INVALID,
                  wrong, remedy);
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(what_is_no_group_is_refused)
{
    harness_run(RANKS, other_members_groups, &(int){0});
}

/* What one member destroys while another uses it stays as it was. */
static RANK_TEST(a_group_destroyed_by_some_members_only_lives_on, RANKS)
{
    static const int pair[] = {0, 1};
    int rank = iris_rank(iris), word = rank;
    iris_group_t *group = NULL;

    CHECK_OK(iris_group_create(iris, pair, rank < 2 ? 2 : 0, &group));
    for (int i = 0; rank < 2 && i < 2; i++) {
        CHECK_STATUS(rank == i ? iris_group_destroy(iris, group)
                               : iris_barrier(iris, NULL, group),
                     IRIS_ERR_MISMATCH);
        CHECK_MESSAGE("iris_group_destroy()");
        CHECK_MESSAGE("iris_barrier()");
        CHECK_EQUAL(iris_group_size(iris, group), 2);
        CHECK_OK(iris_barrier(iris, NULL, group));
        CHECK_OK(iris_broadcast(iris, &word, sizeof word, 1, group));
        CHECK_EQUAL(word, 1);
    }
    if (rank < 2) {
        CHECK_OK(iris_group_destroy(iris, group));
    }
    return iris_barrier(iris, NULL, NULL);
}

TEST_GROUP(unit);
