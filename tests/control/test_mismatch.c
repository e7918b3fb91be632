/* SPDX-License-Identifier: MIT
 *
 * Ranks that make different collective calls, or of which one passes what is
 * wrong: all learn of it, and the job goes on.
 */
#include "config.h"

#include "support/harness.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 3
#define BLOCKS 48

static size_t offset_of(const iris_t *iris, const void *ptr)
{
    return (size_t)((const char *)ptr -
                    (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)]);
}

/* The ranks agree on what the allocator does next. */
static int check_in_step(iris_t *iris)
{
    static const size_t sizes[] = {1, 5000, 16384, 300, 70000, 16640, 16384};
    uint64_t offsets[7], first[7];
    void *ptrs[7];

    for (int i = 0; i < 7; i++) {
        CHECK_OK(iris_malloc(iris, sizes[i], &ptrs[i]));
        offsets[i] = offset_of(iris, ptrs[i]);
    }
    memcpy(first, offsets, sizeof first);
    CHECK_OK(iris_broadcast(iris, first, sizeof first, 0, NULL));
    for (int i = 0; i < 7; i++) {
        CHECK_EQUAL(offsets[i], first[i]);
        CHECK_OK(iris_free(iris, ptrs[i]));
    }
    return 0;
}

/* Leaves holes of nearly one size, so that where the next block comes from
 * depends on the order of the allocator's lists. */
static int make_holes(iris_t *iris, void **blocks)
{
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(iris_malloc(iris, 16384 + (size_t)(i % 4) * 256, &blocks[i]));
    }
    for (int i = 0; i < BLOCKS; i += 2) {
        CHECK_OK(iris_free(iris, blocks[i]));
        blocks[i] = NULL;
    }
    return 0;
}

static int free_all(iris_t *iris, void **blocks)
{
    struct iris_heap_stats stats;

    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(iris_free(iris, blocks[i]));
    }
    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_EQUAL(stats.num_allocs, 0);
    CHECK_EQUAL(stats.used_bytes, 0);
    return 0;
}

static int different_sizes(iris_t *iris, void *arg)
{
    size_t rank = (size_t)iris_rank(iris);
    void *blocks[BLOCKS], *ptr = arg;
    char text[100];

    CHECK_EQUAL(make_holes(iris, blocks), 0);
    for (size_t round = 0; round < 40; round++) {
        CHECK_STATUS(iris_malloc(iris, 16000 + (rank + round % 3) * 256, &ptr),
                     IRIS_ERR_MISMATCH);
        CHECK(ptr == arg);
    }
    for (size_t r = 0; r < RANKS; r++) {
        snprintf(text, sizeof text, "rank %zu called iris_malloc(bytes %zu", r,
                 16000 + r * 256);
        CHECK_MESSAGE(text);
    }
    CHECK_MESSAGE("; allocate the largest share on every rank, and use part");
    CHECK_EQUAL(check_in_step(iris), 0);
    return free_all(iris, blocks);
}

static TEST(sizes_that_differ_are_told_to_all_and_undone)
{
    harness_run(RANKS, different_sizes, &(int){0});
}

static int different_kinds(iris_t *iris, void *arg)
{
    int rank = iris_rank(iris);
    void *blocks[BLOCKS], *ptr = arg;

    CHECK_EQUAL(make_holes(iris, blocks), 0);
    CHECK_STATUS(iris_malloc_aligned(iris, 16384, rank == 1 ? 4096 : 256, &ptr),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("alignment 4096");
    CHECK_MESSAGE("same order on every rank");
    CHECK_STATUS(rank == 2 ? iris_calloc(iris, 16384, 1, &ptr)
                           : iris_malloc(iris, 16384, &ptr),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("rank 2 called iris_calloc");
    CHECK_MESSAGE("rank 0 called iris_malloc");
    CHECK_STATUS(rank == 0 ? iris_barrier(iris, NULL, NULL)
                           : iris_malloc(iris, 16384, &ptr),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("rank 0 called iris_barrier()");
    CHECK_STATUS(rank == 0 ? iris_free(iris, blocks[1])
                           : iris_free(iris, blocks[3]),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("rank 0 called iris_free(offset");
    CHECK_STATUS(rank == 1 ? iris_free(iris, NULL) : iris_free(iris, blocks[3]),
                 IRIS_ERR_MISMATCH);
    CHECK(ptr == arg);
    CHECK_EQUAL(check_in_step(iris), 0);
    return free_all(iris, blocks);
}

static TEST(calls_that_differ_are_told_to_all_and_undone)
{
    harness_run(RANKS, different_kinds, &(int){0});
}

/* `status`, on every rank; on those other than `culprit` the message names
 * it. */
static int check_blamed(const iris_t *iris, iris_status_t status, int culprit,
                        const char *what)
{
    char text[64];

    CHECK_EQUAL(status, IRIS_ERR_INVALID);
    CHECK_MESSAGE(what);
    snprintf(text, sizeof text, "[%d/%d]", culprit, RANKS);
    CHECK_MESSAGE(text);
    if (iris_rank(iris) != culprit) {
        snprintf(text, sizeof text, "rank %d failed in iris_", culprit);
        CHECK_MESSAGE(text);
    }
    return 0;
}

static int one_is_wrong(iris_t *iris, void *arg)
{
    void *blocks[BLOCKS], *ptr = arg;

    CHECK_EQUAL(make_holes(iris, blocks), 0);
    for (int culprit = 0; culprit < RANKS; culprit++) {
        int wrong = iris_rank(iris) == culprit;
        iris_status_t status;

        status = iris_malloc(iris, wrong ? 0 : 16384, &ptr);
        CHECK_EQUAL(check_blamed(iris, status, culprit, "0 bytes"), 0);
        status = iris_malloc_aligned(iris, 16384, wrong ? 3 : 1024, &ptr);
        CHECK_EQUAL(check_blamed(iris, status, culprit, "alignment 3"), 0);
        status = iris_malloc(iris, 16384, wrong ? NULL : &ptr);
        CHECK_EQUAL(check_blamed(iris, status, culprit, "ptr_p"), 0);
        status = iris_calloc(iris, wrong ? SIZE_MAX : 1, 16384, &ptr);
        CHECK_EQUAL(check_blamed(iris, status, culprit, "overflows"), 0);
        status = iris_free(iris, wrong ? &ptr : blocks[1]);
        CHECK_EQUAL(check_blamed(iris, status, culprit, "iris_free of"), 0);
        status = iris_broadcast(iris, wrong ? NULL : &ptr, 4, 0, NULL);
        CHECK_EQUAL(check_blamed(iris, status, culprit, "data is NULL"), 0);
        status = iris_barrier(iris, wrong ? (void *)&ptr : NULL, NULL);
        CHECK_EQUAL(check_blamed(iris, status, culprit, "not a live stream"),
                    0);
        CHECK(ptr == arg);
        CHECK_EQUAL(check_in_step(iris), 0);
    }
    return free_all(iris, blocks);
}

static TEST(one_ranks_bad_argument_fails_all_and_names_it)
{
    harness_run(RANKS, one_is_wrong, &(int){0});
}

static RANK_TEST(broadcasts_that_differ_touch_nothing, RANKS)
{
    int rank = iris_rank(iris);
    char data[16] = "untouched";

    (void)arg;
    CHECK_STATUS(iris_broadcast(iris, data, rank == 1 ? 8 : 16, 0, NULL),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("rank 1 called iris_broadcast(bytes 8");
    CHECK_STATUS(iris_broadcast(iris, data, 16, rank == 2, NULL),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("root 1");
    CHECK_STATUS(iris_broadcast(iris, data, 16, RANKS, NULL), IRIS_ERR_INVALID);
    CHECK_MESSAGE("root 3");
    CHECK_EQUAL(strcmp(data, "untouched"), 0);
    return iris_barrier(iris, NULL, NULL);
}

/* ---- Calls of different groups ---- */

struct pair {
    iris_status_t (*calls[2])(iris_t *iris, iris_group_t *group);
    atomic_int told;
    atomic_int seen; /* ranks whose message has the cycle */
};

static iris_status_t barrier_of_all(iris_t *iris, iris_group_t *group)
{
    return iris_barrier(iris, NULL, NULL);
}

static iris_status_t barrier_of_group(iris_t *iris, iris_group_t *group)
{
    return iris_barrier(iris, NULL, group);
}

static iris_status_t allocate(iris_t *iris, iris_group_t *group)
{
    void *ptr;

    return iris_malloc(iris, 64, &ptr);
}

/* Rank 0 and rank 1 call differently; rank 2 waits in the call of all. */
static int call_across(iris_t *iris, void *arg)
{
    struct pair *pair = arg;
    int ranks[] = {0, 1}, rank = iris_rank(iris);
    iris_group_t *group;

    CHECK_OK(iris_group_create(iris, ranks, rank < 2 ? 2 : 0, &group));
    CHECK_STATUS(pair->calls[rank == 0 ? 0 : 1](iris, group),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("in the same order on every rank");
    atomic_fetch_add(&pair->told, 1);
    atomic_fetch_add(&pair->seen, harness_message_has("which waits in iris_"));
    return 0;
}

/* No group goes on after it, so ranks cannot finalize together. */
static TEST(calls_of_different_groups_are_told_at_once)
{
    struct pair pairs[] = {{.calls = {iris_group_destroy, allocate}},
                           {.calls = {iris_group_destroy, barrier_of_all}},
                           {.calls = {barrier_of_group, allocate}}};

    if (harness_launched() != 0) {
        print_message("ranks of a launcher are not made here\n");
        skip();
    }
    if (!harness_fits(RANKS)) {
        print_message("left out: more ranks than IRIS_TEST_MAX_RANKS\n");
        skip();
    }
    setenv("IRIS_TIMEOUT_MS", "120000", 1);
    setenv("IRIS_SPAWN", "threads", 1); /* `told` is one memory */
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        assert_int_equal(iris_spawn(NULL, RANKS, call_across, &pairs[i]),
                         IRIS_ERR_MISMATCH);
        assert_int_equal(atomic_load(&pairs[i].told), RANKS);
        assert_true(atomic_load(&pairs[i].seen) > 0);
    }
    unsetenv("IRIS_TIMEOUT_MS");
    unsetenv("IRIS_SPAWN");
}

TEST_GROUP(rank, sample, valgrind);
