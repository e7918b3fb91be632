/* SPDX-License-Identifier: MIT
 *
 * The heap is the user's alone: nothing the allocator needs lies in it, and it
 * takes no memory before it is used.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define BLOCKS 40
#define ROUNDS 400
#define RANKS 8
#define LITTLE ((uint64_t)16 << 20)
#define ATTEMPTS 50

struct stray_args {
    unsigned char *from;
    size_t bytes;
};

IRIS_KERNEL(overwrite, struct stray_args)
{
    IRIS_LANES (wg, i, args->bytes) {
        args->from[i] = 0xff;
    }
}

static int64_t offset_of(const iris_t *iris, const void *ptr)
{
    return (int64_t)(uintptr_t)ptr - iris_heap_bases(iris)[iris_rank(iris)];
}

/* All ranks have rank 0's figures. */
static int check_same(iris_t *iris, int64_t value)
{
    struct iris_heap_stats own, first;
    int64_t first_value = value;

    CHECK_OK(iris_heap_stats(iris, &own));
    first = own;
    CHECK_OK(iris_broadcast(iris, &first, sizeof first, 0, NULL));
    CHECK_EQUAL(memcmp(&own, &first, sizeof own), 0);
    CHECK_OK(iris_broadcast(iris, &first_value, sizeof value, 0, NULL));
    CHECK_EQUAL(value, first_value);
    return 0;
}

/* Overwrites the heap from the first block ever to the end of the last: what is
 * live and what was freed, which the host may not read. */
static int trample_all(iris_t *iris, unsigned char *from, size_t bytes,
                       void *const *blocks)
{
    struct stray_args args = {from, bytes};
    unsigned char seen;

    CHECK_OK(iris_launch(iris, overwrite, 4, 64, &args, sizeof args, NULL));
    for (size_t i = 0; i < BLOCKS; i++) {
        const unsigned char *block = blocks[i];

        if (block >= from && block < from + bytes) {
            CHECK_OK(harness_read(iris, &seen, block, 1));
            CHECK_EQUAL(seen, 0xff);
        }
    }
    return 0;
}

/* Frees or allocates in one place after another, all of it predictable. */
static int use_heap(iris_t *iris, void **blocks, int64_t *sum_p)
{
    for (size_t round = 0; round < ROUNDS; round++) {
        void **block = &blocks[round * 7 % BLOCKS];

        if (*block != NULL) {
            CHECK_OK(iris_free(iris, *block));
            *block = NULL;
        } else {
            CHECK_OK(iris_malloc(iris, 1 + round * 997 % 60000, block));
            *sum_p = (*sum_p * 31 + offset_of(iris, *block)) % 1000003;
        }
    }
    return 0;
}

static RANK_TEST(the_allocator_survives_a_kernel_that_overwrites_all, 1, 4)
{
    void *blocks[BLOCKS] = {NULL};
    unsigned char *first = NULL, *end = NULL;
    struct iris_heap_stats stats;
    int64_t sum = 0;

    for (size_t i = 0; i < BLOCKS; i++) {
        size_t bytes = 1 + i * 3001;

        CHECK_OK(iris_malloc(iris, bytes, &blocks[i]));
        first = first == NULL || (unsigned char *)blocks[i] < first ? blocks[i]
                                                                    : first;
        end = (unsigned char *)blocks[i] + bytes > end
                  ? (unsigned char *)blocks[i] + bytes
                  : end;
    }
    for (size_t i = 0; i < BLOCKS; i += 2) {
        CHECK_OK(iris_free(iris, blocks[i]));
        blocks[i] = NULL;
    }
    for (int round = 0; round < 3; round++) {
        CHECK_EQUAL(trample_all(iris, first, (size_t)(end - first), blocks), 0);
        CHECK_EQUAL(use_heap(iris, blocks, &sum), 0);
        CHECK_EQUAL(check_same(iris, sum), 0);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK_OK(iris_free(iris, blocks[i]));
    }
    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_EQUAL(stats.num_allocs, 0);
    CHECK_EQUAL(stats.used_bytes, 0);
    CHECK_EQUAL(stats.largest_free_bytes, stats.free_bytes);
    return check_same(iris, sum);
}

/* Bytes of shared memory that everybody uses. */
static uint64_t shared_memory(void)
{
    struct statvfs info;

    if (statvfs("/dev/shm", &info) != 0) {
        return 0;
    }
    return (uint64_t)(info.f_blocks - info.f_bfree) * info.f_frsize;
}

struct usage {
    uint64_t before;
    uint64_t during;
};

static int measure(iris_t *iris, void *arg)
{
    struct usage *usage = arg;
    struct iris_heap_stats stats;

    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_EQUAL(stats.heap_bytes, (size_t)1 << 30);
    CHECK(stats.mapped_bytes * RANKS < LITTLE);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    if (iris_rank(iris) == 0) {
        usage->during = shared_memory();
    }
    return iris_barrier(iris, NULL, NULL);
}

/* Others use shared memory, too, more and less of it as time goes by: it is
 * enough to see once that so many heaps fit into so little. */
static TEST(large_heaps_take_next_to_nothing_before_they_are_used)
{
    struct iris_config config;
    struct usage usage = {0};
    int attempts = 0;

    if (harness_launched() != 0) {
        skip(); /* it makes ranks of its own */
    }
    iris_config_init(&config);
    config.heap_bytes = (int64_t)1 << 30;
    config.spawn = "threads";
    config.backend = "sim"; /* a GPU's heaps are no shared memory */
    config.sim_device = "cpu";
    config.allocator = "pool";
    do {
        usage.before = shared_memory();
        assert_int_equal(iris_spawn(&config, RANKS, measure, &usage), IRIS_OK);
    } while (usage.during >= usage.before + LITTLE && ++attempts < ATTEMPTS);
    assert_true(usage.during > 0);
    assert_true(attempts < ATTEMPTS);
}

TEST_GROUP(rank);
