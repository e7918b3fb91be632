/* SPDX-License-Identifier: MIT
 *
 * What the heap promises about contents and addresses: zeroed, kept, writable
 * by peers at once, translated to the byte.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#define HEAP ((size_t)16 << 20)
#define WORDS 4096

static int figures(iris_t *iris, void *arg)
{
    struct iris_heap_stats stats, full;
    void *small, *large;

    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_EQUAL(stats.heap_bytes, HEAP);
    CHECK_EQUAL(stats.reserved_bytes, HEAP);
    CHECK_EQUAL(stats.used_bytes, 0);
    CHECK_EQUAL(stats.peak_bytes, 0);
    CHECK_EQUAL(stats.num_allocs, 0);
    CHECK(stats.largest_free_bytes <= stats.free_bytes);
    CHECK(stats.free_bytes < HEAP);
    CHECK(stats.mapped_bytes <
          (harness_on_gpu(iris) ? HEAP + 1 : HEAP / 4)); /* all at once there */
    CHECK(stats.metadata_bytes > 0);
    CHECK_OK(iris_malloc(iris, 1, &small));
    CHECK_OK(iris_malloc(iris, HEAP / 2, &large));
    CHECK_OK(iris_heap_stats(iris, &full));
    CHECK_EQUAL(full.used_bytes, IRIS_ALIGNMENT + HEAP / 2);
    CHECK_EQUAL(full.peak_bytes, full.used_bytes);
    CHECK_EQUAL(full.free_bytes, stats.free_bytes - full.used_bytes);
    CHECK_EQUAL(full.num_allocs, 2);
    CHECK(full.mapped_bytes >= HEAP / 2);
    CHECK_OK(iris_free(iris, small));
    CHECK_OK(iris_free(iris, large));
    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_EQUAL(stats.peak_bytes, full.peak_bytes);
    CHECK_EQUAL(stats.used_bytes, 0);
    CHECK_BAD(iris, iris_heap_stats(iris, (struct iris_heap_stats *)NULL),
              IRIS_ERR_INVALID, "stats_p is NULL",
              "pass where to put the figures");
    return 0;
}

/* As programs see it that were compiled with an older and a newer header. */
static RANK_TEST(other_versions_get_the_figures_they_know, 1)
{
    size_t old_size = offsetof(struct iris_heap_stats, peak_bytes);
    struct {
        struct iris_heap_stats stats;
        size_t newer[2];
    } space;

    space.stats.peak_bytes = 99;
    CHECK_OK(iris_heap_stats_sized(iris, &space.stats, old_size));
    CHECK_EQUAL(space.stats.size, old_size);
    CHECK_EQUAL(space.stats.heap_bytes, HEAP);
    CHECK_EQUAL(space.stats.peak_bytes, 99);
    space.newer[1] = 99;
    CHECK_OK(iris_heap_stats_sized(iris, &space.stats, sizeof space));
    CHECK_EQUAL(space.stats.size, sizeof space.stats);
    CHECK_EQUAL(space.stats.num_allocs, 0);
    CHECK_EQUAL(space.newer[1], 0);
    CHECK_STATUS(iris_heap_stats_sized(iris, &space.stats, 0),
                 IRIS_ERR_INVALID);
    return 0;
}

static TEST(figures_add_up)
{
    harness_run(2, figures, NULL);
}

static RANK_TEST(the_heap_ends_where_it_ends, 1, 4)
{
    char *base = (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)];

    CHECK_EQUAL(iris_is_symmetric(iris, base - 1), 0);
    CHECK_EQUAL(iris_is_symmetric(iris, base), 1);
    CHECK_EQUAL(iris_is_symmetric(iris, base + HEAP - 1), 1);
    CHECK_EQUAL(iris_is_symmetric(iris, base + HEAP), 0);
    CHECK_EQUAL(iris_is_symmetric(iris, NULL), 0);
    CHECK_EQUAL(iris_is_symmetric(iris, &base), 0);
    CHECK_EQUAL(iris_is_symmetric(iris, (void *)UINTPTR_MAX), 0);
    for (int rank = 0; rank < iris_num_ranks(iris); rank++) {
        char *other = (char *)(uintptr_t)iris_heap_bases(iris)[rank];

        /* A peer's heap is mapped here, and is not this rank's own. */
        CHECK_EQUAL(iris_is_symmetric(iris, other), rank == iris_rank(iris));
    }
    return 0;
}

static int translate(iris_t *iris, void *arg)
{
    const int64_t *bases = iris_heap_bases(iris);
    int num_ranks = iris_num_ranks(iris), own = iris_rank(iris);
    char *base = (char *)(uintptr_t)bases[own];
    const void *outside[] = {base + HEAP, base - 1, NULL, arg};
    void *remote = arg;

    for (int rank = 0; rank < num_ranks; rank++) {
        CHECK_OK(iris_as_remote(iris, base, rank, &remote));
        CHECK_EQUAL((uintptr_t)remote, bases[rank]);
        CHECK_OK(iris_as_remote(iris, base + HEAP - 1, rank, &remote));
        CHECK_EQUAL((uintptr_t)remote, bases[rank] + (int64_t)HEAP - 1);
    }
    remote = arg;
    CHECK_BAD(iris, iris_as_remote(iris, base, -1, &remote), IRIS_ERR_INVALID,
              "rank -1 is out of range", "pass one of them");
    CHECK_BAD(iris, iris_as_remote(iris, base, num_ranks, &remote),
              IRIS_ERR_INVALID, "out of range: the job has ranks 0 to ",
              "pass one of them");
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        CHECK_BAD(iris, iris_as_remote(iris, outside[i], 0, &remote),
                  IRIS_ERR_INVALID, "is not on the heap",
                  "pass a pointer into this rank's own heap");
    }
    CHECK_BAD(iris, iris_as_remote(iris, base, 0, NULL), IRIS_ERR_INVALID,
              "remote_p is NULL", "pass where to put the result");
    CHECK(remote == arg);
    return 0;
}

static TEST(translation_refuses_what_is_not_there)
{
    harness_run(1, translate, &(int){0});
    harness_run(4, translate, &(int){0});
}

static int zeroed(iris_t *iris, void *arg)
{
    void *bytes;

    for (int round = 0; round < 3; round++) {
        CHECK_OK(iris_calloc(iris, 3, 100001, &bytes));
        CHECK(harness_holds(iris, bytes, 300003, 0));
        /* What the next round gets is dirty; nobody reads meanwhile. */
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(iris_memset(iris, bytes, 0xee, 300003, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(iris_free(iris, bytes));
    }
    return 0;
}

static TEST(calloc_zeroes_what_was_used_before)
{
    harness_run(2, zeroed, NULL);
}

struct write_args {
    const int64_t *context;
    uint64_t *words; /* where one of the ranks has them */
    uint64_t value;
    int32_t first;
    int32_t step;
};

/* Every step-th word, at an address that the host has translated. */
IRIS_KERNEL(write_words, struct write_args)
{
    size_t first = (size_t)args->first, step = (size_t)args->step;

    IRIS_LANES (wg, i, WORDS / step) {
        args->words[first + i * step] = args->value;
    }
}

/* Every rank writes into every peer's new block with no synchronisation but
 * the allocation's own. */
static RANK_TEST(peers_may_write_as_soon_as_malloc_returns, ALL_RANKS)
{
    int num_ranks = iris_num_ranks(iris), own = iris_rank(iris);
    uint64_t *words[8], seen[WORDS];
    struct write_args args = {iris_device_context(iris), NULL, 0, own,
                              num_ranks};
    void *remote;

    for (int round = 0; round < 8; round++) {
        CHECK_OK(iris_malloc(iris, sizeof seen, (void **)&words[round]));
        for (int rank = 0; rank < num_ranks; rank++) {
            CHECK_OK(iris_as_remote(iris, words[round], rank, &remote));
            args.words = remote;
            args.value = (uint64_t)(round * 1000 + own);
            CHECK_OK(iris_launch(iris, write_words, 2, 64, &args, sizeof args,
                                 NULL));
        }
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int round = 0; round < 8; round++) {
        CHECK_OK(harness_read(iris, seen, words[round], sizeof seen));
        for (int i = 0; i < WORDS / num_ranks * num_ranks; i++) {
            CHECK_EQUAL(seen[i], round * 1000 + i % num_ranks);
        }
        CHECK_OK(iris_free(iris, words[round]));
    }
    return 0;
}

static RANK_TEST(contents_survive_what_others_allocate, 2)
{
    void *kept, *other;

    CHECK_OK(iris_malloc(iris, 70000, &kept));
    CHECK_OK(iris_memset(iris, kept, 0x3c, 70000, NULL));
    for (size_t bytes = 1; bytes < HEAP / 4; bytes = bytes * 3 + 1) {
        CHECK_OK(iris_calloc(iris, bytes, 1, &other));
        CHECK_OK(iris_memset(iris, other, 0xff, bytes, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(iris_free(iris, other));
    }
    CHECK(harness_holds(iris, kept, 70000, 0x3c));
    return iris_free(iris, kept);
}

static RANK_TEST(alignment_holds_on_every_rank, 3)
{
    void *ptr, *remote;

    for (size_t alignment = 1; alignment <= IRIS_ALIGNMENT_MAX;
         alignment *= 2) {
        CHECK_OK(iris_malloc_aligned(iris, 100, alignment, &ptr));
        for (int rank = 0; rank < iris_num_ranks(iris); rank++) {
            CHECK_OK(iris_as_remote(iris, ptr, rank, &remote));
            CHECK_EQUAL((uintptr_t)remote % alignment, 0);
            CHECK_EQUAL((uintptr_t)remote % IRIS_ALIGNMENT, 0);
        }
        CHECK_OK(iris_free(iris, ptr));
    }
    CHECK_BAD(iris,
              iris_malloc_aligned(iris, 100, 2 * IRIS_ALIGNMENT_MAX, &ptr),
              IRIS_ERR_INVALID, "alignment 4194304", "256");
    return 0;
}

TEST_GROUP(rank, one_node);
