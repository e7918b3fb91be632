/* SPDX-License-Identifier: MIT
 *
 * The symmetric heap: what allocations promise, and every argument that is
 * wrong on all ranks alike.
 */
#include "config.h"

#include "support/harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAP ((size_t)16 << 20)
#define SLOTS 64
#define MANY 1000000
#define SAMPLE 20000

static uint32_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

static size_t offset_of(const iris_t *iris, const void *ptr)
{
    return (size_t)((const char *)ptr -
                    (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)]);
}

/* All ranks have rank 0's value. */
static int check_same(iris_t *iris, uint64_t value)
{
    uint64_t first = value;

    CHECK_OK(iris_broadcast(iris, &first, sizeof first, 0, NULL));
    CHECK_EQUAL(value, first);
    return 0;
}

struct block {
    unsigned char *ptr; /* NULL: none */
    size_t bytes;
    unsigned char mark;
};

static int check_apart(const struct block *blocks, int slot)
{
    for (int i = 0; i < SLOTS; i++) {
        if (i != slot && blocks[i].ptr != NULL) {
            CHECK(blocks[slot].ptr + blocks[slot].bytes <= blocks[i].ptr ||
                  blocks[i].ptr + blocks[i].bytes <= blocks[slot].ptr);
        }
    }
    return 0;
}

static int allocate_random(iris_t *iris, struct block *blocks, int slot,
                           uint64_t *random)
{
    struct block *block = &blocks[slot];
    size_t alignment = (size_t)1 << next_random(random) % 13;
    uint32_t how = next_random(random) % 3;

    block->bytes = 1 + next_random(random) % 100000;
    block->mark = (unsigned char)(next_random(random) | 1);
    if (how == 0) {
        CHECK_OK(iris_calloc(iris, block->bytes, 1, (void **)&block->ptr));
        CHECK(harness_holds(iris, block->ptr, block->bytes, 0));
    } else if (how == 1) {
        CHECK_OK(iris_malloc(iris, block->bytes, (void **)&block->ptr));
    } else {
        CHECK_OK(iris_malloc_aligned(iris, block->bytes, alignment,
                                     (void **)&block->ptr));
        CHECK_EQUAL((uintptr_t)block->ptr % alignment, 0);
    }
    CHECK_EQUAL((uintptr_t)block->ptr % IRIS_ALIGNMENT, 0);
    CHECK_OK(iris_memset(iris, block->ptr, block->mark, block->bytes, NULL));
    return check_apart(blocks, slot);
}

static int random_calls(iris_t *iris, void *arg)
{
    struct block blocks[SLOTS] = {{0}};
    uint64_t random = 42, sum = 0;
    size_t calls = *(size_t *)arg;
    int slot;

    for (size_t call = 0; call < calls; call++) {
        slot = (int)(next_random(&random) % SLOTS);
        if (blocks[slot].ptr == NULL) {
            CHECK_EQUAL(allocate_random(iris, blocks, slot, &random), 0);
            sum = sum * 31 + offset_of(iris, blocks[slot].ptr);
        } else {
            CHECK(harness_holds(iris, blocks[slot].ptr, blocks[slot].bytes,
                                blocks[slot].mark));
            CHECK_OK(iris_free(iris, blocks[slot].ptr));
            blocks[slot].ptr = NULL;
        }
        if (call % 1000 == 0) {
            CHECK_EQUAL(check_same(iris, sum), 0);
        }
    }
    CHECK_EQUAL(check_same(iris, sum), 0);
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    for (slot = 0; slot < SLOTS; slot++) {
        CHECK_OK(iris_free(iris, blocks[slot].ptr));
    }
    CHECK_EQUAL(harness_stats(iris).num_allocs, 0);
    CHECK_EQUAL(harness_stats(iris).used_bytes, 0);
    return 0;
}

static TEST(random_calls_give_every_rank_the_same_offsets)
{
    size_t calls = harness_count(MANY, SAMPLE);

    harness_run(2, random_calls, &calls);
    calls /= 10;
    harness_run(4, random_calls, &calls);
}

static int wrong_sizes(iris_t *iris, void *arg)
{
    struct iris_heap_stats before = harness_stats(iris), after;
    char text[64];
    void *ptr = arg;

    CHECK_BAD(iris, iris_malloc(iris, 0, &ptr), IRIS_ERR_INVALID, "0 bytes",
              "ask for at least 1");
    CHECK_BAD(iris, iris_calloc(iris, 0, 8, &ptr), IRIS_ERR_INVALID, "0 bytes",
              "ask for at least 1");
    CHECK_BAD(iris, iris_calloc(iris, 8, 0, &ptr), IRIS_ERR_INVALID, "0 bytes",
              "ask for at least 1");
    CHECK_BAD(iris, iris_calloc(iris, SIZE_MAX / 2, 3, &ptr), IRIS_ERR_INVALID,
              "count 9223372036854775807 times size 3 overflows",
              "ask for less");
    CHECK_BAD(iris, iris_calloc(iris, SIZE_MAX, SIZE_MAX, &ptr),
              IRIS_ERR_INVALID, "overflows", "ask for less");
    CHECK_BAD(iris, iris_malloc(iris, 8, NULL), IRIS_ERR_INVALID,
              "ptr_p is NULL", "pass where to put the pointer");
    for (size_t alignment = 0; alignment < 100; alignment += 3) {
        if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
            snprintf(text, sizeof text, "alignment %zu is not", alignment);
            CHECK_BAD(iris, iris_malloc_aligned(iris, 8, alignment, &ptr),
                      IRIS_ERR_INVALID, text, "such as 256, or call");
        }
    }
    CHECK(ptr == arg);
    after = harness_stats(iris);
    CHECK_EQUAL(memcmp(&before, &after, sizeof before), 0);
    return 0;
}

static TEST(a_size_of_nothing_or_too_much_is_refused)
{
    harness_run(1, wrong_sizes, &(int){0});
    harness_run(3, wrong_sizes, &(int){0});
}

static int too_much(iris_t *iris, void *arg)
{
    static const size_t sizes[] = {HEAP, HEAP + 1, SIZE_MAX, SIZE_MAX - 255,
                                   (size_t)1 << 40};
    struct iris_heap_stats stats = harness_stats(iris);
    char text[128];
    void *ptr = arg;

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        snprintf(text, sizeof text, "no %zu bytes", sizes[i]);
        CHECK_BAD(iris, iris_malloc(iris, sizes[i], &ptr), IRIS_ERR_NO_MEMORY,
                  text, "free some, or raise IRIS_HEAP_SIZE");
        snprintf(text, sizeof text, "%zu of %zu bytes are free",
                 stats.free_bytes, HEAP);
        CHECK_MESSAGE(text);
    }
    CHECK_BAD(iris, iris_malloc_aligned(iris, HEAP, IRIS_ALIGNMENT_MAX, &ptr),
              IRIS_ERR_NO_MEMORY, "alignment 2097152", "raise IRIS_HEAP_SIZE");
    CHECK_BAD(iris, iris_malloc_aligned(iris, 8, (size_t)1 << 62, &ptr),
              IRIS_ERR_INVALID, "alignment 4611686018427387904", "such as 256");
    CHECK(ptr == arg);
    /* What the message says is free can be had. */
    CHECK_OK(iris_malloc(iris, stats.largest_free_bytes, &ptr));
    CHECK_EQUAL(harness_stats(iris).free_bytes,
                stats.free_bytes - stats.largest_free_bytes);
    return iris_free(iris, ptr);
}

static TEST(more_than_the_heap_says_what_is_free)
{
    harness_run(2, too_much, &(int){0});
}

static RANK_TEST(a_full_heap_recovers, 2)
{
    void **blocks = calloc(HEAP / 65536, sizeof *blocks);
    size_t count = 0, again = 0;
    void *ptr;

    while (iris_malloc(iris, 65536, &ptr) == IRIS_OK) {
        blocks[count++] = ptr;
    }
    CHECK_MESSAGE("no 65536 bytes");
    CHECK(count > HEAP / 65536 / 2);
    /* Every other one: nothing larger fits between. */
    for (size_t i = 0; i < count; i += 2) {
        CHECK_OK(iris_free(iris, blocks[i]));
    }
    CHECK_STATUS(iris_malloc(iris, 2 * 65536, &ptr), IRIS_ERR_NO_MEMORY);
    CHECK_MESSAGE(" in one piece");
    for (size_t i = 1; i < count; i += 2) {
        CHECK_OK(iris_free(iris, blocks[i]));
    }
    while (iris_malloc(iris, 65536, &ptr) == IRIS_OK) {
        blocks[again++] = ptr;
    }
    CHECK_EQUAL(again, count);
    while (again > 0) {
        CHECK_OK(iris_free(iris, blocks[--again]));
    }
    free(blocks);
    return check_same(iris, harness_stats(iris).largest_free_bytes);
}

/* iris_free() of `ptr` fails on every rank, says `text` and what to pass. */
static int refuse_free(iris_t *iris, void *ptr, const char *text,
                       const char *remedy)
{
    struct iris_heap_stats before = harness_stats(iris), after;

    CHECK_BAD(iris, iris_free(iris, ptr), IRIS_ERR_INVALID, text, remedy);
    after = harness_stats(iris);
    CHECK_EQUAL(memcmp(&before, &after, sizeof before), 0);
    return 0;
}

static int wrong_pointers(iris_t *iris, void *arg)
{
    char *base = (char *)(uintptr_t)iris_heap_bases(iris)[iris_rank(iris)];
    const char *off = "not on this rank's heap", *none = "nothing is allocated";
    const char *given = "pass the address from iris_malloc";
    char *block, *other;

    CHECK_OK(iris_malloc(iris, 1000, (void **)&block));
    CHECK_OK(iris_malloc(iris, 1000, (void **)&other));
    CHECK_EQUAL(refuse_free(iris, arg, off, given), 0);
    CHECK_EQUAL(refuse_free(iris, base - 1, off, given), 0);
    CHECK_EQUAL(refuse_free(iris, base + HEAP, off, given), 0);
    CHECK_EQUAL(refuse_free(iris, block + 1, "1 bytes into", "pass its start"),
                0);
    CHECK_EQUAL(
        refuse_free(iris, block + 256, "256 bytes into", "pass its start"), 0);
    CHECK_EQUAL(refuse_free(iris, base, none, given), 0);
    CHECK_EQUAL(refuse_free(iris, base + HEAP - 1, none, given), 0);
    CHECK_OK(iris_free(iris, other));
    CHECK_EQUAL(refuse_free(iris, other, "was it freed before?", "once"), 0);
    CHECK_OK(iris_free(iris, NULL));
    CHECK_OK(iris_free(iris, block));
    CHECK_EQUAL(harness_stats(iris).num_allocs, 0);
    return 0;
}

static TEST(only_the_start_of_a_live_allocation_can_be_freed)
{
    harness_run(1, wrong_pointers, &(int){0});
    harness_run(3, wrong_pointers, &(int){0});
}

struct watcher {
    iris_t *iris;
    atomic_bool over;
    int failures;
};

static void *watch(void *arg)
{
    struct watcher *watcher = arg;
    struct iris_heap_stats stats;

    while (!atomic_load(&watcher->over)) {
        watcher->failures +=
            iris_heap_stats(watcher->iris, &stats) != IRIS_OK ||
            stats.used_bytes != stats.num_allocs * IRIS_ALIGNMENT;
    }
    return NULL;
}

/* More and more, so that the allocator's own table grows, too. */
static RANK_TEST(any_thread_may_look_at_the_figures, 1)
{
    struct watcher watcher = {.iris = iris};
    iris_status_t status = IRIS_OK;
    pthread_t thread;
    void *ptr;

    CHECK_EQUAL(pthread_create(&thread, NULL, watch, &watcher), 0);
    for (int i = 0; i < 20000 && status == IRIS_OK; i++) {
        status = iris_malloc(iris, 1, &ptr);
    }
    atomic_store(&watcher.over, true);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    CHECK_OK(status);
    CHECK_EQUAL(watcher.failures, 0);
    return 0;
}

static int nothing(iris_t *iris, void *arg)
{
    return 0;
}

/* The status of a job with such a heap; that it is too small has to be said of
 * the number of ranks, and what would do comes out in *least_p. */
static iris_status_t try_heap(int num_ranks, int64_t bytes, int64_t *least_p)
{
    const char *least;
    struct iris_config config;
    char text[128];
    iris_status_t status;

    iris_config_init(&config);
    config.heap_bytes = bytes;
    status = iris_spawn(&config, num_ranks, nothing, NULL);
    if (status == IRIS_OK) {
        return status;
    }
    snprintf(
        text, sizeof text,
        "a heap of %lld bytes (IRIS_HEAP_SIZE) is too small: with %d rank%s "
        "it takes at least ",
        (long long)bytes, num_ranks, num_ranks == 1 ? "" : "s");
    least = strstr(iris_last_error(), text);
    if (least == NULL) {
        print_error("no \"%s\" in: %s\n", text, iris_last_error());
        fail();
    }
    *least_p = strtoll(least + strlen(text), NULL, 10);
    return status;
}

static TEST(a_heap_that_is_too_small_says_what_would_do)
{
    for (int num_ranks = 1; num_ranks <= 2; num_ranks++) {
        int64_t least = 0, again = 0;

        if (!harness_fits(num_ranks)) {
            continue;
        }
        assert_int_equal(try_heap(num_ranks, 4096, &least), IRIS_ERR_CONFIG);
        assert_int_equal(try_heap(num_ranks, least - 1, &again),
                         IRIS_ERR_CONFIG);
        assert_int_equal(again, least);
        assert_int_equal(try_heap(num_ranks, least, &again), IRIS_OK);
    }
}

TEST_GROUP(rank, one_gpu, sample, valgrind);
