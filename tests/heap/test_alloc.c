/* SPDX-License-Identifier: MIT
 *
 * The heap allocator against a map of its units.
 */
#include "config.h"

#include "support/harness.h"

#include "heap/heap.h"
#include "heap/internal.h"

#include <stdlib.h>
#include <string.h>

#define UNIT ((size_t)IRIS_ALIGNMENT)
#define UNITS 4096
#define HEAP (UNITS * UNIT)
#define SLOTS 256
#define MANY 100000

struct block {
    size_t offset;
    size_t units; /* 0: none */
};

static struct iris_alloc *create(size_t bytes)
{
    struct iris_alloc *alloc = NULL;

    assert_int_equal(iris_i_alloc_create(bytes, &alloc), IRIS_OK);
    return alloc;
}

static struct iris_alloc *of_test;

static int setup(void **state)
{
    of_test = create(HEAP);
    return 0;
}

static int teardown(void **state)
{
    iris_i_alloc_destroy(of_test);
    return 0;
}

static size_t take(struct iris_alloc *alloc, size_t bytes)
{
    size_t offset = SIZE_MAX;

    assert_int_equal(iris_i_alloc_take(alloc, bytes, UNIT, &offset), IRIS_OK);
    return offset;
}

static void give(struct iris_alloc *alloc, size_t offset)
{
    assert_int_equal(iris_i_alloc_give(alloc, offset), IRIS_OK);
}

static struct iris_heap_stats stats_of(struct iris_alloc *alloc)
{
    struct iris_heap_stats stats = {0};

    iris_i_alloc_stats(alloc, &stats);
    return stats;
}

/* A take that must fail with `want` and change nothing. */
static void refuse(struct iris_alloc *alloc, size_t bytes, size_t alignment,
                   iris_status_t want)
{
    struct iris_heap_stats before = stats_of(alloc), after;
    size_t offset = 12345;

    assert_int_equal(iris_i_alloc_take(alloc, bytes, alignment, &offset), want);
    assert_int_equal(offset, 12345);
    after = stats_of(alloc);
    assert_memory_equal(&before, &after, sizeof(before));
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static size_t largest_gap(const unsigned char *map)
{
    size_t largest = 0, gap = 0;

    for (size_t unit = 0; unit < UNITS; unit++) {
        gap = map[unit] ? 0 : gap + 1;
        largest = gap > largest ? gap : largest;
    }
    return largest * UNIT;
}

static void map_set(unsigned char *map, const struct block *block, int taken)
{
    size_t first = block->offset / UNIT;

    assert_true(first + block->units <= UNITS);
    for (size_t unit = first; unit < first + block->units; unit++) {
        assert_int_equal(map[unit], !taken);
        map[unit] = (unsigned char)taken;
    }
}

/* Takes a block of random size in `alloc`. Its twin sees only the calls that
 * succeed: equal offsets say that a failed call has changed nothing. */
static void random_take(struct iris_alloc *alloc, struct iris_alloc *twin,
                        unsigned char *map, struct block *block, uint64_t *seed)
{
    uint32_t dice = next_random(seed);
    size_t most = dice % 8 ? 24 * UNIT : HEAP / 2;
    size_t bytes = 1 + next_random(seed) % most;
    size_t alignment = dice % 3 ? UNIT : (size_t)1 << dice / 8 % 17;
    size_t again = 0;

    if (iris_i_alloc_take(alloc, bytes, alignment, &block->offset) != IRIS_OK) {
        if (alignment <= UNIT) {
            assert_true(bytes > largest_gap(map));
        }
        return;
    }
    assert_int_equal(iris_i_alloc_take(twin, bytes, alignment, &again),
                     IRIS_OK);
    assert_int_equal(again, block->offset);
    assert_int_equal(block->offset % alignment, 0);
    assert_int_equal(block->offset % UNIT, 0);
    block->units = (bytes + UNIT - 1) / UNIT;
    map_set(map, block, 1);
}

static TEST_WITH(random_blocks_are_apart_aligned_and_repeatable, setup,
                 teardown)
{
    static unsigned char map[UNITS];
    static struct block blocks[SLOTS];
    const char *is_long = getenv("IRIS_TEST_LONG");
    int calls = is_long && !strcmp(is_long, "1") ? 1000000 : 50000;
    struct iris_alloc *alloc = of_test, *twin = create(HEAP);
    uint64_t seed = 2024;

    for (int call = 0; call < calls; call++) {
        struct block *block = &blocks[next_random(&seed) % SLOTS];

        if (block->units) {
            give(alloc, block->offset);
            give(twin, block->offset);
            map_set(map, block, 0);
            block->units = 0;
        } else {
            random_take(alloc, twin, map, block, &seed);
        }
        if (call % 64 == 0) {
            assert_int_equal(stats_of(alloc).largest_free_bytes,
                             largest_gap(map));
        }
    }
    for (int slot = 0; slot < SLOTS; slot++) {
        if (blocks[slot].units) {
            give(alloc, blocks[slot].offset);
        }
    }
    assert_int_equal(stats_of(alloc).num_allocs, 0);
    assert_int_equal(stats_of(alloc).used_bytes, 0);
    assert_int_equal(stats_of(alloc).largest_free_bytes, HEAP);
    assert_int_equal(take(alloc, HEAP), 0);
    iris_i_alloc_destroy(twin);
}

static TEST_WITH(exhaustion_leaves_the_state_unchanged, setup, teardown)
{
    struct iris_alloc *alloc = of_test;
    size_t middle;

    take(alloc, HEAP / 2);
    middle = take(alloc, HEAP / 4);
    refuse(alloc, HEAP / 4 + 1, UNIT, IRIS_ERR_NO_MEMORY);
    take(alloc, HEAP / 4);
    refuse(alloc, 1, 1, IRIS_ERR_NO_MEMORY);
    assert_int_equal(stats_of(alloc).largest_free_bytes, 0);
    assert_int_equal(stats_of(alloc).free_bytes, 0);
    give(alloc, middle);
    assert_int_equal(stats_of(alloc).peak_bytes, HEAP);
    assert_int_equal(take(alloc, HEAP / 4), middle);
}

static TEST_WITH(give_refuses_interior_foreign_and_freed_offsets, setup,
                 teardown)
{
    static const size_t bad[] = {
        1, UNIT, 3 * UNIT, HEAP, HEAP + UNIT, SIZE_MAX, SIZE_MAX - UNIT + 1};
    struct iris_alloc *alloc = of_test;
    size_t offset = take(alloc, 3 * UNIT);

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(iris_i_alloc_give(alloc, bad[i]), IRIS_ERR_INVALID);
    }
    assert_int_equal(stats_of(alloc).used_bytes, 3 * UNIT);
    give(alloc, offset);
    assert_int_equal(iris_i_alloc_give(alloc, offset), IRIS_ERR_INVALID);
    assert_int_equal(stats_of(alloc).largest_free_bytes, HEAP);
}

static TEST_WITH(zero_and_overflowing_sizes_are_refused, setup, teardown)
{
    struct iris_alloc *alloc = of_test, *tiny = create(UNIT - 1);

    refuse(alloc, 0, UNIT, IRIS_ERR_INVALID);
    refuse(alloc, 1, 0, IRIS_ERR_INVALID);
    refuse(alloc, 1, 3 * UNIT, IRIS_ERR_INVALID);
    for (size_t less = 0; less <= 2 * UNIT; less++) {
        refuse(alloc, SIZE_MAX - less, UNIT, IRIS_ERR_NO_MEMORY);
        refuse(alloc, SIZE_MAX - less, SIZE_MAX / 2 + 1, IRIS_ERR_NO_MEMORY);
    }
    refuse(tiny, 1, 1, IRIS_ERR_NO_MEMORY);
    iris_i_alloc_destroy(tiny);
}

static TEST_WITH(alignment_up_to_the_heap_size_is_honoured, setup, teardown)
{
    struct iris_alloc *alloc = of_test;
    size_t offset = SIZE_MAX;
    iris_status_t status;

    for (size_t alignment = HEAP; alignment > UNIT; alignment /= 2) {
        status = iris_i_alloc_take(alloc, alignment / 4, alignment, &offset);
        assert_int_equal(status, IRIS_OK);
        assert_int_equal(offset % alignment, 0);
    }
    refuse(alloc, UNIT, HEAP, IRIS_ERR_NO_MEMORY);
}

static TEST(take_gives_exactly_the_largest_free_bytes)
{
    enum { HOLES = 300 };
    struct iris_alloc *alloc = create(HOLES * 1024 * UNIT);
    size_t offsets[HOLES], largest;

    for (int i = 0; i < HOLES; i++) {
        offsets[i] = take(alloc, (size_t)(1007 - i / 50) * UNIT);
        take(alloc, UNIT);
    }
    take(alloc, stats_of(alloc).largest_free_bytes);
    for (int i = 0; i < HOLES; i++) {
        give(alloc, offsets[i]);
    }
    for (int i = 0; i < HOLES; i++) {
        largest = stats_of(alloc).largest_free_bytes;
        refuse(alloc, largest + 1, UNIT, IRIS_ERR_NO_MEMORY);
        take(alloc, largest);
    }
    assert_int_equal(stats_of(alloc).free_bytes, 0);
    iris_i_alloc_destroy(alloc);
}

static TEST_WITH(find_names_the_live_block_around_an_offset, setup, teardown)
{
    struct iris_alloc *alloc = of_test;
    size_t first = take(alloc, 5 * UNIT), second = take(alloc, UNIT + 1);
    size_t start = 0, bytes = 0, end = second + 2 * UNIT;

    assert_int_equal(iris_i_alloc_find(alloc, end - 1, &start, &bytes),
                     IRIS_OK);
    assert_int_equal(start, second);
    assert_int_equal(bytes, 2 * UNIT);
    give(alloc, first);
    assert_int_equal(iris_i_alloc_find(alloc, first, &start, &bytes),
                     IRIS_ERR_INVALID);
    assert_int_equal(iris_i_alloc_find(alloc, end, &start, &bytes),
                     IRIS_ERR_INVALID);
    assert_int_equal(iris_i_alloc_find(alloc, HEAP, &start, &bytes),
                     IRIS_ERR_INVALID);
    assert_int_equal(start, second);
}

/* The worst case: every live block lies between two free ones. */
static TEST(metadata_stays_below_64_bytes_for_each_live_block)
{
    struct iris_alloc *alloc = create(2 * MANY * UNIT);
    struct iris_heap_stats stats;

    for (size_t i = 0; i < 2 * MANY; i++) {
        take(alloc, UNIT);
        stats = stats_of(alloc);
        assert_true(i < 1000 || stats.metadata_bytes < 64 * (i + 1));
    }
    for (size_t i = 0; i < MANY; i++) {
        give(alloc, 2 * i * UNIT);
    }
    stats = stats_of(alloc);
    assert_int_equal(stats.num_allocs, MANY);
    assert_true(stats.metadata_bytes < 64 * (size_t)MANY);
    iris_i_alloc_destroy(alloc);
}

static TEST(heaps_beyond_32_bits_of_units_work)
{
    size_t bytes = (size_t)1 << 46, first, second;
    struct iris_alloc *alloc = create(bytes);

    first = take(alloc, bytes - bytes / 4);
    second = take(alloc, 1);
    assert_int_equal(first, 0);
    assert_int_equal(second, bytes - bytes / 4);
    give(alloc, first);
    give(alloc, second);
    assert_int_equal(stats_of(alloc).largest_free_bytes, bytes);
    iris_i_alloc_destroy(alloc);
}

/* The ring of blocks in address order is cut, so that a walk would miss them. */
static TEST(the_start_of_an_allocation_is_found_without_a_walk)
{
    struct iris_alloc *alloc = create(HEAP);
    size_t offsets[64], start = 0, bytes = 0;
    uint32_t first;

    for (size_t i = 0; i < 64; i++) {
        offsets[i] = take(alloc, UNIT);
    }
    first = alloc->records[0].next;
    alloc->records[0].next = 0;
    for (size_t i = 0; i < 64; i++) {
        assert_int_equal(iris_i_alloc_find(alloc, offsets[i], &start, &bytes),
                         IRIS_OK);
        assert_int_equal(start, offsets[i]);
        assert_int_equal(bytes, UNIT);
        assert_true(iris_i_alloc_nearest(alloc, offsets[i], &start, &bytes));
        assert_int_equal(start, offsets[i]);
    }
    alloc->records[0].next = first;
    iris_i_alloc_destroy(alloc);
}

TEST_GROUP_WITH(NULL, NULL, unit, sample, valgrind);
