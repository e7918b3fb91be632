/* SPDX-License-Identifier: MIT
 *
 * Heaps that grow (IRIS_ALLOCATOR=vmem): what comes to them later is as good as
 * what was there, on every rank; nothing grows past the reservation.
 */
#include "config.h"

#include "support/harness.h"
#include "support/procs.h"

#include <iris/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define HEAP ((size_t)16 << 20)
#define BLOCK ((size_t)1500000)
#define BLOCKS 6
#define WORDS 1024

/* What `rank` fills its block number `i` with. */
static int tag(int rank, int i)
{
    return (17 * i + rank + 1) & 0xff;
}

/* Whether every rank's block, seen from here, holds its tag. */
static int holds_everywhere(iris_t *iris, void *block, size_t bytes, int i)
{
    void *remote;

    for (int rank = 0; rank < iris_num_ranks(iris); rank++) {
        CHECK_OK(iris_as_remote(iris, block, rank, &remote));
        CHECK(harness_holds(iris, remote, bytes, tag(rank, i)));
    }
    return 0;
}

static int grow(iris_t *iris, void *arg)
{
    struct iris_heap_stats before = harness_stats(iris), now = before;
    void *blocks[BLOCKS];

    CHECK_EQUAL(before.reserved_bytes, HEAP);
    CHECK(before.mapped_bytes < HEAP / 2);
    CHECK(before.mapped_bytes > 0);
    for (int i = 0; i < BLOCKS; i++) {
        size_t mapped = now.mapped_bytes;

        CHECK_OK(iris_malloc(iris, BLOCK, &blocks[i]));
        now = harness_stats(iris);
        CHECK(now.mapped_bytes >= mapped);
        CHECK(now.mapped_bytes >= (size_t)(i + 1) * BLOCK);
        CHECK(now.mapped_bytes <= now.reserved_bytes);
        /* New memory tells nothing of what it held before. */
        CHECK(i > 0 || harness_holds(iris, blocks[i], BLOCK, 0));
        CHECK_OK(
            iris_memset(iris, blocks[i], tag(iris_rank(iris), i), BLOCK, NULL));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_EQUAL(holds_everywhere(iris, blocks[i], BLOCK, i), 0);
    }
    CHECK(now.mapped_bytes > before.mapped_bytes);
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_EQUAL(holds_everywhere(iris, blocks[i], BLOCK, i), 0);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(iris_free(iris, blocks[i]));
    }
    /* Freed memory stays, and is used again. */
    CHECK_EQUAL(harness_stats(iris).mapped_bytes, now.mapped_bytes);
    CHECK_OK(iris_malloc(iris, BLOCK * BLOCKS, &blocks[0]));
    CHECK(harness_stats(iris).mapped_bytes <= now.mapped_bytes + BLOCK);
    return iris_free(iris, blocks[0]);
}

static TEST(what_comes_later_is_mapped_everywhere)
{
    harness_run_all(grow, NULL);
}

struct store_args {
    const int64_t *context;
    uint32_t *words; /* symmetric */
    uint32_t value;
    int32_t to;
};

IRIS_KERNEL(store_words, struct store_args)
{
    iris_dev_t dev = iris_dev_init(args->context);

    IRIS_LANES (wg, i, WORDS) {
        iris_store_u32(dev, &args->words[i], args->value + (uint32_t)i,
                       args->to);
    }
}

/* Kernels reach a peer's new memory by the device context that they have had
 * since the start. */
static int reach(iris_t *iris, void *arg)
{
    int num_ranks = iris_num_ranks(iris), own = iris_rank(iris);
    struct store_args args = {.context = iris_device_context(iris),
                              .to = (own + 1) % num_ranks};
    uint32_t seen[WORDS];
    void *block;

    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(iris_malloc(iris, BLOCK, &block));
        args.words = block;
        args.value = (uint32_t)(100000 * own + i);
        CHECK_OK(
            iris_launch(iris, store_words, 2, 64, &args, sizeof args, NULL));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
        CHECK_OK(harness_read(iris, seen, block, sizeof seen));
        for (int j = 0; j < WORDS; j++) {
            CHECK_EQUAL(seen[j],
                        100000 * ((own + num_ranks - 1) % num_ranks) + i + j);
        }
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    return 0;
}

static TEST(kernels_reach_what_comes_later)
{
    harness_run_all(reach, NULL);
}

static int fill_up(iris_t *iris, void *arg)
{
    struct iris_heap_stats stats = harness_stats(iris);
    void *all, *more;

    CHECK_BAD(iris, iris_malloc(iris, HEAP, &more), IRIS_ERR_NO_MEMORY,
              "on the symmetric heap", "raise IRIS_HEAP_SIZE");
    CHECK_EQUAL(harness_stats(iris).mapped_bytes, stats.mapped_bytes);
    CHECK_OK(iris_calloc(iris, stats.largest_free_bytes, 1, &all));
    CHECK_EQUAL(harness_stats(iris).mapped_bytes, stats.reserved_bytes);
    /* To its last byte. */
    CHECK_OK(iris_memset(iris, all, tag(iris_rank(iris), 0),
                         stats.largest_free_bytes, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(holds_everywhere(iris, all, stats.largest_free_bytes, 0), 0);
    CHECK_BAD(iris, iris_malloc(iris, BLOCK, &more), IRIS_ERR_NO_MEMORY,
              "on the symmetric heap", "raise IRIS_HEAP_SIZE");
    CHECK_OK(iris_free(iris, all));
    CHECK_OK(iris_malloc(iris, BLOCK, &more));
    return iris_free(iris, more);
}

static TEST(a_full_heap_says_so)
{
    static const char *const sizes[] = {"16777216", "9437696", "5242881"};
    const char *before = getenv("IRIS_HEAP_SIZE");
    char saved[64];

    snprintf(saved, sizeof saved, "%s", before);
    harness_run(1, fill_up, NULL);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        setenv("IRIS_HEAP_SIZE", sizes[i], 1);
        harness_run(2, fill_up, NULL);
    }
    setenv("IRIS_HEAP_SIZE", saved, 1);
}

#define SLOTS 24

struct game_block {
    void *ptr;
    size_t bytes;
    int tag;
};

static unsigned next_random(unsigned *seed)
{
    *seed = *seed * 1103515245 + 12345;
    return *seed >> 8;
}

/* The same random game on all ranks. */
static RANK_TEST(any_order_of_growth_keeps_contents, 1, 2, 4)
{
    struct game_block slots[SLOTS] = {{0}};
    int own = iris_rank(iris), peer = (own + 1) % iris_num_ranks(iris);
    unsigned seed = 42;
    void *remote;

    for (int step = 0; step < (int)harness_count(2000, 150); step++) {
        struct game_block *slot = &slots[next_random(&seed) % SLOTS];
        size_t bytes = 1 + next_random(&seed) % (HEAP / 10);

        if (slot->ptr != NULL) {
            CHECK(harness_holds(iris, slot->ptr, slot->bytes,
                                tag(own, slot->tag)));
            CHECK_OK(iris_as_remote(iris, slot->ptr, peer, &remote));
            CHECK(
                harness_holds(iris, remote, slot->bytes, tag(peer, slot->tag)));
            CHECK_OK(iris_free(iris, slot->ptr));
            slot->ptr = NULL;
        } else if (iris_malloc(iris, bytes, &slot->ptr) == IRIS_OK) {
            slot->bytes = bytes;
            slot->tag = step;
            CHECK_OK(iris_memset(iris, slot->ptr, tag(own, step), bytes, NULL));
            CHECK_OK(iris_barrier(iris, NULL, NULL));
        } else {
            slot->ptr = NULL;
        }
        CHECK(harness_stats(iris).mapped_bytes <= HEAP);
    }
    return 0;
}

/* A rank that grew for a call on which the ranks did not agree shrinks again,
 * so that the heaps stay alike. */
static RANK_TEST(heaps_stay_alike_when_calls_differ, 2, 4)
{
    size_t mapped = harness_stats(iris).mapped_bytes;
    int own = iris_rank(iris);
    void *ptr;

    for (int i = 0; i < 3; i++) {
        CHECK_STATUS(iris_malloc(iris, own == 0 ? BLOCK * 4 : BLOCK, &ptr),
                     IRIS_ERR_MISMATCH);
        CHECK_EQUAL(harness_stats(iris).mapped_bytes, mapped);
        CHECK_STATUS(iris_calloc(iris, own == 0 ? 0 : BLOCK, 1, &ptr),
                     IRIS_ERR_INVALID);
        CHECK_EQUAL(harness_stats(iris).mapped_bytes, mapped);
    }
    return grow(iris, arg);
}

/* Rank 1 no longer hears what others tell it, though it lives. */
static void go_deaf(int rank, struct proc_report *report, void *arg)
{
    iris_t *iris = proc_init(report);
    void *block;

    if (iris == NULL) {
        return;
    }
    for (int fd = 3; rank == 1 && fd < 1024; fd++) {
        int domain = 0, type = 0;
        socklen_t bytes = sizeof domain;

        if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &bytes) == 0 &&
            getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &bytes) == 0 &&
            domain == AF_UNIX && type == SOCK_DGRAM) {
            shutdown(fd, SHUT_RD);
        }
    }
    proc_note(report, iris_malloc(iris, BLOCK * 4, &block));
    proc_finalize(report, iris);
}

/* Not at the deadline, which is another status. */
static TEST(a_rank_that_cannot_be_told_of_memory_is_named)
{
    struct procs procs;
    char before[32];

    if (harness_launched() != 0 || !harness_fits(2)) {
        skip(); /* it makes ranks of its own */
    }
    snprintf(before, sizeof before, "%s", getenv("IRIS_TIMEOUT_MS"));
    setenv("IRIS_TIMEOUT_MS", "20000", 1);
    procs_start(&procs, 2, go_deaf, NULL);
    procs_join(&procs);
    assert_int_equal(procs.reports[0].status, IRIS_ERR_PEER_LOST);
    assert_non_null(strstr(procs.reports[0].message, "rank 1 (pid"));
    assert_non_null(strstr(procs.reports[0].message, "closed the socket"));
    assert_int_equal(procs.reports[1].status, IRIS_ERR_SYSTEM);
    assert_non_null(strstr(procs.reports[1].message, "is closed"));
    procs_free(&procs);
    setenv("IRIS_TIMEOUT_MS", before, 1);
}

static int set_up(void **state)
{
    setenv("IRIS_ALLOCATOR", "vmem", 1);
    setenv("IRIS_HEAP_SIZE", "16M", 1);
    return harness_gpu_setup(state);
}

TEST_GROUP_WITH(set_up, harness_teardown, rank, one_gpu);
