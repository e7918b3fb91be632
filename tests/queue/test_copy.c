/* SPDX-License-Identifier: MIT
 *
 * Copies and fills on streams: between host, own heap and peers' heaps.
 */
#include "config.h"

#include "support/harness.h"

#include <stdio.h>
#include <string.h>

#define BLOCK 3000 /* bytes */

/* One on each rank's heap. */
struct board {
    unsigned char own[BLOCK];
    unsigned char from_before[BLOCK];
};

static void fill(unsigned char *block, int rank, size_t round)
{
    for (size_t i = 0; i < BLOCK; i++) {
        block[i] =
            (unsigned char)(i * 11 + i / 256 + (size_t)rank * 17 + round * 3);
    }
}

/* Bytes that differ from the first `bytes` of `expected` and 0x77 behind. */
static size_t count_wrong(const unsigned char *seen,
                          const unsigned char *expected, size_t bytes)
{
    size_t wrong = 0;

    for (size_t i = 0; i < BLOCK; i++) {
        wrong += seen[i] != (i < bytes ? expected[i] : 0x77);
    }
    return wrong;
}

/* Host to own heap, on to the next rank's heap, from there back to the host. */
static int copy_round(iris_t *iris, struct board *board, size_t round)
{
    int rank = iris_rank(iris), num_ranks = iris_num_ranks(iris);
    size_t bytes = round == 0 ? 0 : round == 9 ? BLOCK : round * 311;
    unsigned char sent[BLOCK], back[BLOCK];
    void *remote;

    CHECK_OK(iris_as_remote(iris, board->from_before, (rank + 1) % num_ranks,
                            &remote));
    fill(sent, rank, round);
    CHECK_OK(iris_memcpy(iris, board->own, sent, BLOCK, NULL));
    CHECK_OK(iris_memset(iris, remote, 0x77, BLOCK, NULL));
    CHECK_OK(iris_memcpy(iris, remote, board->own, bytes, NULL));
    CHECK_OK(iris_memcpy(iris, back, remote, BLOCK, NULL));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_EQUAL(count_wrong(back, sent, bytes), 0);
    fill(sent, (rank + num_ranks - 1) % num_ranks, round);
    CHECK_OK(harness_read(iris, back, board->from_before, BLOCK));
    CHECK_EQUAL(count_wrong(back, sent, bytes), 0);
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

static RANK_TEST(copies_reach_host_own_heap_and_peers, ALL_RANKS)
{
    void *board;

    CHECK_OK(iris_malloc(iris, sizeof(struct board), &board));
    for (size_t round = 0; round < 10; round++) {
        CHECK_EQUAL(copy_round(iris, board, round), 0);
    }
    CHECK_OK(iris_free(iris, board));
    return 0;
}

/* Fills at any offset leave their neighbours alone. */
static RANK_TEST(fills_write_their_bytes_and_no_others, ALL_RANKS)
{
    unsigned char *block, seen[256];

    CHECK_OK(iris_malloc(iris, 256, (void **)&block));
    for (size_t i = 0; i < 200; i++) {
        size_t first = i % 17, end = first + i;
        int value = (int)i + 256 * iris_rank(iris); /* cut to a byte */
        size_t wrong = 0;

        CHECK_OK(iris_memset(iris, block, 0xee, 256, NULL));
        CHECK_OK(iris_memset(iris, block + first, value, end - first, NULL));
        CHECK_OK(harness_read(iris, seen, block, sizeof seen));
        for (size_t at = 0; at < 256; at++) {
            wrong += seen[at] != (at >= first && at < end ? i : 0xee);
        }
        CHECK_EQUAL(wrong, 0);
    }
    CHECK_OK(iris_free(iris, block));
    return 0;
}

#define LARGE ((size_t)1 << 20) /* bytes; not done before the call returns */

/* No synchronise anywhere else. */
static RANK_TEST(a_blocking_copy_is_done_when_it_returns, ALL_RANKS)
{
    unsigned char sent[BLOCK], back[BLOCK];
    unsigned char *block;

    CHECK_OK(iris_malloc(iris, LARGE, (void **)&block));
    for (size_t round = 0; round < harness_count(1000, 100); round++) {
        fill(sent, iris_rank(iris), round);
        CHECK_OK(iris_memset(iris, block, 0x77, LARGE, NULL));
        CHECK_OK(
            iris_memcpy_sync(iris, block + LARGE - BLOCK, sent, BLOCK / 2));
        memset(sent + BLOCK / 2, 0x77, BLOCK - BLOCK / 2);
        CHECK_OK(iris_memcpy_sync(iris, back, block + LARGE - BLOCK, BLOCK));
        CHECK_EQUAL(memcmp(back, sent, BLOCK), 0);
    }
    CHECK_OK(iris_memcpy_sync(iris, NULL, NULL, 0));
    CHECK_BAD(iris, iris_memcpy_sync(iris, NULL, sent, 1), IRIS_ERR_INVALID,
              "dst is NULL", "pass memory of 1 bytes");
    CHECK_OK(iris_free(iris, block));
    return 0;
}

static RANK_TEST(null_is_fine_for_no_bytes_only, ALL_RANKS)
{
    char byte = 5;

    CHECK_OK(iris_memcpy(iris, NULL, NULL, 0, NULL));
    CHECK_OK(iris_memset(iris, NULL, 1, 0, NULL));
    CHECK_BAD(iris, iris_memcpy(iris, NULL, &byte, 1, NULL), IRIS_ERR_INVALID,
              "iris_memcpy: dst is NULL", "pass memory of 1 bytes");
    CHECK_BAD(iris, iris_memcpy(iris, &byte, NULL, 1, NULL), IRIS_ERR_INVALID,
              "iris_memcpy: src is NULL", "pass memory of 1 bytes");
    CHECK_BAD(iris, iris_memset(iris, NULL, 1, 1, NULL), IRIS_ERR_INVALID,
              "iris_memset: dst is NULL", "pass memory of 1 bytes");
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    CHECK_EQUAL(byte, 5);
    return 0;
}

static RANK_TEST(copies_past_a_heap_or_of_impossible_size_are_refused,
                 ALL_RANKS)
{
    int peer = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    struct iris_heap_stats stats;
    char who[32], bytes[64] = {0};
    char *block, *end;
    void *ptr;

    CHECK_OK(iris_heap_stats(iris, &stats));
    CHECK_OK(iris_calloc(iris, 64, 1, &ptr));
    block = ptr;
    end = (char *)(uintptr_t)iris_heap_bases(iris)[peer] + stats.heap_bytes;
    snprintf(who, sizeof who, "[%d/%d] iris_mem", iris_rank(iris),
             iris_num_ranks(iris));
    CHECK_STATUS(iris_memset(iris, block, 1, SIZE_MAX, NULL), IRIS_ERR_INVALID);
    CHECK_MESSAGE(who);
    CHECK_MESSAGE("from dst");
    CHECK_MESSAGE("check the size");
    CHECK_STATUS(iris_memset(iris, end - 8, 1, 16, NULL), IRIS_ERR_INVALID);
    CHECK_MESSAGE(who);
    CHECK_MESSAGE("8 bytes away; copy less");
    CHECK_STATUS(iris_memcpy(iris, bytes, end - 16, 17, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("from src");
    CHECK_MESSAGE("copy less");
    CHECK_STATUS(iris_memcpy(iris, block, bytes, stats.heap_bytes, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("from dst");
    CHECK_STATUS(iris_broadcast(iris, block, SIZE_MAX, 0, NULL),
                 IRIS_ERR_INVALID);
    CHECK_MESSAGE("check the size");
    CHECK_OK(harness_read(iris, bytes, block, sizeof bytes));
    for (size_t i = 0; i < sizeof bytes; i++) {
        CHECK_EQUAL(bytes[i], 0);
    }
    CHECK_OK(iris_free(iris, ptr));
    return 0;
}

TEST_GROUP(rank);
