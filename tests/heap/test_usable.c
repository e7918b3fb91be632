/* SPDX-License-Identifier: MIT
 *
 * Heaps sized to the byte (IRIS_HEAP_USABLE), and memory that is zeroed and
 * aligned.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <stdlib.h>

#define HEAP ((size_t)1 << 20)
#define ALIGNMENT 1024

static int to_the_byte(iris_t *iris, void *arg)
{
    struct iris_heap_stats stats;
    void *ptrs[HEAP / ALIGNMENT], *ptr = arg;

    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_EQUAL(stats.free_bytes, HEAP);
    CHECK_EQUAL(stats.largest_free_bytes, HEAP);
    for (size_t i = 0; i < HEAP / ALIGNMENT; i++) {
        CHECK_OK(iris_malloc_aligned(iris, ALIGNMENT, ALIGNMENT, &ptrs[i]));
        CHECK_EQUAL((uintptr_t)ptrs[i] % ALIGNMENT, 0);
    }
    CHECK_STATUS(iris_malloc(iris, 1, &ptr), IRIS_ERR_NO_MEMORY);
    for (size_t i = 0; i < HEAP / ALIGNMENT; i++) {
        CHECK_OK(iris_free(iris, ptrs[i]));
    }
    CHECK_OK(iris_malloc_aligned(iris, HEAP, IRIS_ALIGNMENT_MAX, &ptr));
    CHECK_OK(iris_memset(iris, ptr, 1, HEAP, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return iris_free(iris, ptr);
}

static int few_bytes(iris_t *iris, void *arg)
{
    void *ptr = arg;

    CHECK_OK(iris_calloc(iris, 1000, 1, &ptr));
    CHECK(harness_holds(iris, ptr, 1000, 0));
    CHECK_STATUS(iris_malloc(iris, IRIS_ALIGNMENT, &ptr), IRIS_ERR_NO_MEMORY);
    return 0;
}

static TEST(the_program_can_allocate_what_it_asked_for)
{
    char text[32];

    setenv("IRIS_HEAP_USABLE", "1", 1);
    snprintf(text, sizeof text, "%zu", HEAP);
    setenv("IRIS_HEAP_SIZE", text, 1);
    harness_run(1, to_the_byte, NULL);
    harness_run(2, to_the_byte, NULL);
    setenv("IRIS_HEAP_SIZE", "1000", 1);
    harness_run(4, few_bytes, NULL);
    unsetenv("IRIS_HEAP_USABLE");
    setenv("IRIS_HEAP_SIZE", "16M", 1);
}

static RANK_TEST(memory_is_zeroed_and_aligned_in_one_call, 1, 2)
{
    void *ptr = arg, *other;

    for (size_t alignment = 1; alignment <= IRIS_ALIGNMENT_MAX;
         alignment *= 4) {
        CHECK_OK(iris_malloc(iris, 3000, &other));
        CHECK_OK(iris_memset(iris, other, 1, 3000, NULL));
        CHECK_OK(iris_stream_synchronize(iris, NULL));
        CHECK_OK(iris_free(iris, other));
        CHECK_OK(iris_calloc(iris, 1000, 3, &ptr));
        CHECK(harness_holds(iris, ptr, 3000, 0));
        CHECK_OK(iris_free(iris, ptr));
        CHECK_OK(iris_malloc_aligned(iris, 3000, alignment, &ptr));
        CHECK_EQUAL((uintptr_t)ptr % alignment, 0);
        CHECK_OK(iris_free(iris, ptr));
    }
    CHECK_BAD(iris, iris_malloc_aligned(iris, 8, 24, &ptr), IRIS_ERR_INVALID,
              "alignment 24", "pass one such as 256");
    CHECK_STATUS(iris_calloc(iris, SIZE_MAX, 8, &ptr), IRIS_ERR_INVALID);
    return 0;
}

TEST_GROUP(rank);
