/* SPDX-License-Identifier: MIT
 *
 * Allocation by the type of a pointer: how much, zeroed or not, each argument
 * once.
 */
#include "config.h"

#include "support/harness.h"

struct element {
    double values[3];
    char name[5];
};

static size_t used(const iris_t *iris)
{
    struct iris_heap_stats stats = {0};

    iris_heap_stats(iris, &stats);
    return stats.used_bytes;
}

static RANK_TEST(a_pointers_type_says_how_much, 2)
{
    struct element *elements;
    char *bytes;
    uint16_t **table;

    CHECK_OK(iris_malloc_typed(iris, 1000, &elements));
    CHECK_EQUAL(used(iris), (1000 * sizeof(struct element) + 255) / 256 * 256);
    CHECK_OK(iris_memset(iris, elements, 1, 1000 * sizeof *elements, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_OK(iris_free(iris, elements));
    CHECK_OK(iris_calloc_typed(iris, 1000, &elements));
    CHECK(harness_holds(iris, elements, 1000 * sizeof *elements, 0));
    CHECK_OK(iris_malloc_typed(iris, 256, &bytes));
    CHECK_OK(iris_malloc_typed(iris, 32, &table));
    CHECK_EQUAL(used(iris),
                (1000 * sizeof *elements + 255) / 256 * 256 + 2 * 256);
    CHECK_OK(iris_free(iris, table));
    CHECK_OK(iris_free(iris, bytes));
    CHECK_OK(iris_free(iris, elements));
    return 0;
}

static RANK_TEST(each_argument_is_evaluated_once, 2)
{
    int16_t *blocks[3] = {NULL, NULL, NULL};
    size_t block = 0, count = 128;
    int contexts = 0;

    CHECK_OK(iris_calloc_typed((contexts++, iris), count++, &blocks[block++]));
    CHECK_OK(iris_malloc_typed((contexts++, iris), count++, &blocks[block++]));
    CHECK_EQUAL(block, 2);
    CHECK_EQUAL(count, 130);
    CHECK_EQUAL(contexts, 2);
    CHECK_EQUAL(used(iris), 3 * 256); /* 128 and 129 elements */
    CHECK(blocks[0] != NULL && blocks[1] != NULL && blocks[2] == NULL);
    CHECK_OK(iris_free(iris, blocks[0]));
    CHECK_OK(iris_free(iris, blocks[1]));
    return 0;
}

static int errors_body(iris_t *iris, void *arg)
{
    int64_t *words = arg;

    CHECK_BAD(iris, iris_malloc_typed(iris, SIZE_MAX / 4, &words),
              IRIS_ERR_INVALID, "times size 8 overflows", "ask for less");
    CHECK_BAD(iris, iris_calloc_typed(iris, SIZE_MAX / 4, &words),
              IRIS_ERR_INVALID, "times size 8 overflows", "ask for less");
    CHECK_BAD(iris, iris_malloc_typed(iris, SIZE_MAX / 8, &words),
              IRIS_ERR_NO_MEMORY, "no 18446744073709551608 bytes",
              "raise IRIS_HEAP_SIZE");
    CHECK_BAD(iris, iris_malloc_typed(iris, 0, &words), IRIS_ERR_INVALID,
              "0 bytes", "ask for at least 1");
    CHECK_BAD(iris, iris_calloc_typed(iris, 8, (int64_t **)NULL),
              IRIS_ERR_INVALID, "ptr_p is NULL",
              "pass where to put the pointer");
    CHECK_BAD(iris, iris_malloc_typed(iris, 8, (int64_t **)NULL),
              IRIS_ERR_INVALID, "ptr_p is NULL",
              "pass where to put the pointer");
    CHECK(words == arg);
    return 0;
}

static TEST(a_count_that_overflows_is_refused_and_nothing_written)
{
    harness_run(2, errors_body, &(int64_t){0});
}

TEST_GROUP(rank);
