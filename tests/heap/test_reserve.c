/* SPDX-License-Identifier: MIT
 *
 * Heaps that grow beyond their size (IRIS_HEAP_RESERVE), in more addresses than
 * there is memory: what comes later is on every rank when the call returns, no
 * base moves, and iris_heap_trim() gives back what nothing uses.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#if IRIS_ON_CPU /* C that is no C++ */
#include "context/context.h"
#include "control/records.h"
#include "heap/heap.h"
#endif

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define MIB ((size_t)1 << 20)
#define HEAP (16 * MIB)
#define RESERVE ((size_t)256 << 30)
#define BLOCK (12 * MIB)
#define BLOCKS 3
#define WORDS 1024

/* What `rank` fills its block number `i` with. */
static int tag(int rank, int i)
{
    return (17 * i + rank + 1) & 0xff;
}

/* Whether every rank's block holds its tag, seen from here, or 0 if `i` is
 * negative. */
static int holds_everywhere(iris_t *iris, void *block, int i)
{
    void *remote;

    for (int rank = 0; rank < iris_num_ranks(iris); rank++) {
        if (iris_is_reachable(iris, rank)) {
            CHECK_OK(iris_as_remote(iris, block, rank, &remote));
            CHECK(harness_holds(iris, remote, BLOCK, i < 0 ? 0 : tag(rank, i)));
        }
    }
    return 0;
}

static int take_block(iris_t *iris, void **block_p, int i)
{
    CHECK_OK(iris_malloc(iris, BLOCK, block_p));
    /* At once, without a barrier. */
    CHECK_EQUAL(holds_everywhere(iris, *block_p, -1), 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_memset(iris, *block_p, tag(iris_rank(iris), i), BLOCK, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return iris_barrier(iris, NULL, NULL);
}

static RANK_TEST(a_heap_grows_beyond_its_size_and_shrinks_again, 1, 2, 4)
{
    struct iris_heap_stats before = harness_stats(iris), now;
    const int64_t *bases = iris_heap_bases(iris);
    int64_t first[4];
    size_t freed = 0;
    void *blocks[BLOCKS];

    memcpy(first, bases, (size_t)iris_num_ranks(iris) * sizeof first[0]);
    CHECK_EQUAL(before.heap_bytes, HEAP);
    CHECK_EQUAL(before.reserved_bytes, RESERVE);
    CHECK(before.mapped_bytes < HEAP);
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_EQUAL(take_block(iris, &blocks[i], i), 0);
        now = harness_stats(iris);
        CHECK(now.mapped_bytes >= (size_t)(i + 1) * BLOCK);
        CHECK_EQUAL(now.heap_bytes > HEAP, i > 0);
        CHECK(now.free_bytes < now.heap_bytes);
        CHECK(now.largest_free_bytes > RESERVE / 2);
    }
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_EQUAL(holds_everywhere(iris, blocks[i], i), 0);
    }
    CHECK_EQUAL(
        memcmp(first, bases, (size_t)iris_num_ranks(iris) * sizeof first[0]),
        0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(iris_free(iris, blocks[i]));
    }
    now = harness_stats(iris);
    CHECK_EQUAL(now.heap_bytes, HEAP);
    CHECK_OK(iris_heap_trim(iris, &freed));
    CHECK_EQUAL(freed, now.mapped_bytes - harness_stats(iris).mapped_bytes);
    CHECK(harness_stats(iris).mapped_bytes <= before.mapped_bytes);
    CHECK_OK(iris_heap_trim(iris, &freed));
    CHECK_EQUAL(freed, 0);
    CHECK_OK(iris_heap_trim(iris, NULL));
    CHECK_OK(iris_malloc(iris, BLOCK * 3, &blocks[0]));
    return iris_memset(iris, blocks[0], 1, BLOCK * 3, NULL);
}

/* What is next to free memory stays, and what was given back can be had
 * again, on all ranks. */
static RANK_TEST(trim_leaves_what_is_allocated, 1, 2, 4)
{
    void *blocks[BLOCKS], *small[64];
    size_t freed, mapped;

    for (int i = 0; i < BLOCKS; i++) {
        CHECK_EQUAL(take_block(iris, &blocks[i], i), 0);
    }
    CHECK_OK(iris_free(iris, blocks[1]));
    CHECK_OK(iris_heap_trim(iris, &freed));
    mapped = harness_stats(iris).mapped_bytes;
    CHECK(mapped < 3 * BLOCK);
    CHECK_EQUAL(holds_everywhere(iris, blocks[0], 0), 0);
    CHECK_EQUAL(holds_everywhere(iris, blocks[2], 2), 0);
    CHECK_OK(iris_malloc(iris, BLOCK, &blocks[1]));
    CHECK(harness_stats(iris).mapped_bytes > mapped);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_memset(iris, blocks[1], tag(iris_rank(iris), 1), BLOCK, 0));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_EQUAL(holds_everywhere(iris, blocks[i], i), 0);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    /* Freed later, on each rank in its own order. */
    for (int i = 0; i < BLOCKS; i++) {
        CHECK_OK(iris_free_later(iris, blocks[(i + iris_rank(iris)) % BLOCKS]));
    }
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        CHECK_OK(iris_malloc(iris, 70000, &small[i]));
    }
    for (size_t i = 0; i < sizeof small / sizeof *small; i++) {
        CHECK_OK(iris_free(iris, small[i * 37 % 64]));
    }
    CHECK_OK(iris_heap_trim(iris, NULL));
    CHECK(harness_stats(iris).mapped_bytes < BLOCK);
    return harness_stats(iris).num_deferred != 0;
}

/* ---- Kernels ---- */

struct store_args {
    const int64_t *context;
    uint64_t *gate; /* receives the address of memory that comes later */
    uint32_t value;
    int32_t to;
};

IRIS_KERNEL(store_at_gate, struct store_args)
{
    iris_dev_t dev = iris_dev_init(args->context);
    uint32_t *words = (uint32_t *)(uintptr_t)iris_wait_until_u64(
        dev, args->gate, IRIS_CMP_NE, 0);

    IRIS_WG_LANES (wg, i, WORDS) {
        iris_store_u32(dev, &words[i], args->value + (uint32_t)i, args->to);
    }
}

/* The kernel is running before its memory exists. */
static RANK_TEST(running_kernels_use_memory_that_comes_later, 2, 4)
{
    int num_ranks = iris_num_ranks(iris), own = iris_rank(iris);
    struct store_args args = {.context = iris_device_context(iris),
                              .to = (own + 1) % num_ranks,
                              .value = (uint32_t)(100000 * own)};
    uint32_t seen[WORDS];
    iris_stream_t *stream;
    void *block;

    CHECK_OK(iris_calloc(iris, 1, sizeof *args.gate, (void **)&args.gate));
    CHECK_OK(iris_stream_create(iris, &stream));
    CHECK_OK(
        iris_launch(iris, store_at_gate, 1, 64, &args, sizeof args, stream));
    CHECK_OK(iris_malloc(iris, 2 * HEAP, &block));
    CHECK_OK(iris_signal_on_stream(iris, args.gate, (uint64_t)(uintptr_t)block,
                                   own, NULL));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(harness_read(iris, seen, block, sizeof seen));
    for (int i = 0; i < WORDS; i++) {
        CHECK_EQUAL(seen[i], 100000 * ((own + num_ranks - 1) % num_ranks) + i);
    }
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    iris_stream_destroy(iris, stream);
    return 0;
}

/* ---- Limits ---- */

static RANK_TEST(a_heap_that_cannot_grow_further_names_both_settings, 1, 2)
{
    struct iris_heap_stats before = harness_stats(iris);
    void *ptr;

    CHECK_BAD(iris, iris_malloc(iris, RESERVE, &ptr), IRIS_ERR_NO_MEMORY,
              "IRIS_HEAP_SIZE (16777216)", "IRIS_HEAP_RESERVE");
    CHECK_EQUAL(harness_stats(iris).mapped_bytes, before.mapped_bytes);
    CHECK_EQUAL(harness_stats(iris).heap_bytes, before.heap_bytes);
    return take_block(iris, &ptr, 0);
}

static RANK_TEST(a_heap_that_grew_in_vain_is_as_before, 2, 4)
{
    struct iris_heap_stats before = harness_stats(iris);
    size_t bytes = iris_rank(iris) == 0 ? 3 * HEAP : 2 * HEAP;
    void *ptr, *again;

    CHECK_STATUS(iris_malloc(iris, bytes, &ptr), IRIS_ERR_MISMATCH);
    CHECK_EQUAL(harness_stats(iris).heap_bytes, HEAP);
    CHECK_EQUAL(harness_stats(iris).mapped_bytes, before.mapped_bytes);
    CHECK_EQUAL(take_block(iris, &ptr, 1), 0);
    CHECK_OK(iris_free(iris, ptr));
    CHECK_OK(iris_malloc(iris, BLOCK, &again));
    CHECK_EQUAL((char *)again - (char *)ptr, 0);
    return 0;
}

static RANK_TEST(trim_is_compared_with_other_calls, 2)
{
    void *ptr;

    CHECK_STATUS(iris_rank(iris) == 0 ? iris_heap_trim(iris, NULL)
                                      : iris_malloc(iris, 1, &ptr),
                 IRIS_ERR_MISMATCH);
    CHECK_MESSAGE("iris_heap_trim");
    return iris_heap_trim(iris, NULL);
}

static int nothing(iris_t *iris, void *arg)
{
    return iris_barrier(iris, NULL, NULL);
}

/* The status of a job with these settings. */
static iris_status_t try_job(int64_t bytes, int64_t reserve,
                             const char *allocator)
{
    struct iris_config config;

    iris_config_init(&config);
    config.heap_bytes = bytes;
    config.heap_reserve = reserve;
    config.allocator = allocator;
    return iris_spawn(&config, 2, nothing, NULL);
}

static TEST(a_reserve_that_cannot_be_is_an_error)
{
    struct rlimit before, limit;

    if (harness_launched() != 0 || !harness_fits(2)) {
        skip();
    }
    assert_int_equal(try_job(HEAP, HEAP - 1, NULL), IRIS_ERR_CONFIG);
    assert_true(harness_message_has("IRIS_HEAP_RESERVE"));
    assert_int_equal(try_job(HEAP, HEAP, NULL), IRIS_OK);
    assert_int_equal(try_job(HEAP, 0, NULL), IRIS_OK);
    if (harness_has_gpu()) {
        assert_int_equal(try_job(HEAP, 2 * HEAP, "pool"), IRIS_ERR_CONFIG);
        assert_true(harness_message_has("set IRIS_ALLOCATOR=vmem"));
        return;
    }
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    limit = before;
    limit.rlim_cur = 4 * HEAP;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(try_job(HEAP, 8 * HEAP, NULL), IRIS_ERR_LIMIT);
    assert_true(harness_message_has("IRIS_HEAP_RESERVE"));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
}

/* ---- Reports ---- */

static RANK_TEST(reports_say_size_and_reserve_and_memory, 2)
{
    const struct iris_record *record = iris->control->record;
    char path[600], expected[128], *text;
    void *block;

    CHECK_EQUAL(take_block(iris, &block, 0), 0);
    CHECK_OK(iris_malloc(iris, BLOCK, &block));
    CHECK_EQUAL(record->heap_reserved, RESERVE);
    CHECK_EQUAL(atomic_load(&record->heap_bytes),
                harness_stats(iris).heap_bytes);
    CHECK_EQUAL(atomic_load(&record->heap_mapped),
                harness_stats(iris).mapped_bytes);
    CHECK_OK(iris_free(iris, block));
    CHECK_OK(iris_heap_trim(iris, NULL));
    CHECK_EQUAL(atomic_load(&record->heap_mapped),
                harness_stats(iris).mapped_bytes);
    snprintf(path, sizeof path, "%s_rank_%d_heap_bases.json",
             getenv("IRIS_HEAP_BASES_PREFIX"), iris_rank(iris));
    text = harness_read_file(path);
    if (text == NULL) { /* not written on a GPU */
        return iris_barrier(iris, NULL, NULL);
    }
    snprintf(expected, sizeof expected,
             "\"heap_bytes\": %zu,\n  \"reserved_bytes\": %zu,\n  "
             "\"mapped_bytes\": ",
             HEAP, RESERVE);
    CHECK(strstr(text, expected) != NULL);
    free(text);
    return iris_barrier(iris, NULL, NULL);
}

static int set_up(void **state)
{
    setenv("IRIS_HEAP_RESERVE", "256G", 1);
    setenv("IRIS_HEAP_SIZE", "16M", 1);
    return harness_setup(state);
}

static int tear_down(void **state)
{
    unsetenv("IRIS_HEAP_RESERVE");
    return harness_teardown(state);
}

TEST_GROUP_WITH(set_up, tear_down, rank, one_gpu);
