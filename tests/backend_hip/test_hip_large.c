/* SPDX-License-Identifier: MIT
 *
 * More bytes than 32 bits count, by collectives, messages, copies and fills. Most
 * of each buffer is one piece of memory, mapped again and again: only its two ends
 * are memory of its own. No power of two is a multiple of a piece, so an index that
 * wraps around comes to other bytes, and a size that does not reach the end.
 */
#include "config.h"

#include "support/hip_job.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MB ((size_t)1 << 20)
#define PIECE (3 * MB)
#define PAGE ((size_t)4096)

/* A part of a buffer: an end, pieces, an end. */
struct part {
    uint32_t *at[3];
    size_t words[3];
};

static struct part fold(char *at, size_t bytes)
{
    char *first = at + PIECE;
    size_t pieces = bytes / PIECE - 3;
    char *last = first + pieces * PIECE;
    struct part part = {
        {(uint32_t *)(void *)at, (uint32_t *)(void *)first,
         (uint32_t *)(void *)last},
        {PIECE / 4, PIECE / 4, (size_t)(at + bytes - last) / 4}};
    int fd = memfd_create("piece", MFD_CLOEXEC);

    if (fd < 0 || ftruncate(fd, (off_t)PIECE) != 0) {
        abort();
    }
    for (size_t i = 0; i < pieces; i++) {
        if (mmap(first + i * PIECE, PIECE, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED) {
            abort();
        }
    }
    close(fd);
    return part;
}

/* What a part has; its three stretches differ. */
static uint32_t word_of(uint32_t key, int stretch, size_t i)
{
    return ((uint32_t)i * 3 + (uint32_t)stretch) * 2654435761u +
           key * 0x9e3779b9u;
}

static void write_part(const struct part *part, uint32_t key)
{
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < part->words[k]; i++) {
            part->at[k][i] = word_of(key, k, i);
        }
    }
}

/* Of each word the multiple, and more. */
static int has_part(const struct part *part, uint32_t key, uint32_t times,
                    uint32_t more)
{
    for (int k = 0; k < 3; k++) {
        for (size_t i = 0; i < part->words[k]; i++) {
            CHECK(part->at[k][i] == word_of(key, k, i) * times + more);
        }
    }
    return 0;
}

/* Two buffers, of a part or of one for each of two ranks. */
struct board {
    iris_t *iris;
    size_t bytes;
    char *memory[2]; /* in, out */
    struct part parts[2][2];
};

enum { IN, OUT };

static int open_board(iris_t *iris, struct board *board)
{
    board->iris = iris;
    for (int side = IN; side <= OUT; side++) {
        size_t half = board->bytes / 2;

        CHECK_OK(iris_malloc(iris, board->bytes + PAGE,
                             (void **)&board->memory[side]));
        board->memory[side] +=
            (PAGE - (uintptr_t)board->memory[side] % PAGE) % PAGE;
        for (int i = 0; i < 2; i++) {
            board->parts[side][i] =
                fold(board->memory[side] + (size_t)i * half, half);
        }
    }
    return 0;
}

/* New contents: part i of rank r has the key 10 * r + i + 1. Nothing is in out. */
static int begin(struct board *board)
{
    CHECK_OK(iris_barrier(board->iris, NULL, NULL));
    for (int i = 0; i < 2; i++) {
        write_part(&board->parts[IN][i],
                   (uint32_t)(10 * iris_rank(board->iris) + i + 1));
        write_part(&board->parts[OUT][i], 1000);
    }
    CHECK_OK(iris_barrier(board->iris, NULL, NULL));
    return 0;
}

static int end(struct board *board, uint32_t first, uint32_t second,
               uint32_t times)
{
    CHECK_OK(iris_stream_synchronize(board->iris, NULL));
    CHECK_EQUAL(has_part(&board->parts[OUT][0], first, times, 0), 0);
    return second == 0 ? 0 : has_part(&board->parts[OUT][1], second, times, 0);
}

static int collectives(struct board *board)
{
    iris_t *iris = board->iris;
    char *in = board->memory[IN], *out = board->memory[OUT];
    size_t bytes = board->bytes;
    uint32_t own = (uint32_t)iris_rank(iris);

    CHECK_EQUAL(begin(board), 0);
    CHECK_OK(iris_ccl_broadcast(iris, in, out, bytes, IRIS_DTYPE_U8, 1, NULL));
    CHECK_EQUAL(end(board, 11, 12, 1), 0);
    CHECK_EQUAL(begin(board), 0);
    CHECK_OK(iris_all_gather(iris, in, out, bytes / 2, IRIS_DTYPE_U8, NULL));
    CHECK_EQUAL(end(board, 1, 11, 1), 0);
    CHECK_EQUAL(begin(board), 0);
    CHECK_OK(iris_all_to_all(iris, in, out, bytes / 2, IRIS_DTYPE_U8, NULL));
    CHECK_EQUAL(end(board, own + 1, own + 11, 1), 0);
    CHECK_EQUAL(begin(board), 0);
    write_part(&board->parts[IN][0], 1);
    write_part(&board->parts[IN][1], 2);
    CHECK_OK(iris_all_reduce(iris, in, out, bytes / 4, IRIS_DTYPE_U32,
                             IRIS_REDUCE_SUM, NULL));
    CHECK_EQUAL(end(board, 1, 2, 2), 0);
    CHECK_OK(iris_reduce_scatter(iris, in, out, bytes / 8, IRIS_DTYPE_U32,
                                 IRIS_REDUCE_SUM, NULL));
    return end(board, own + 1, 0, 2);
}

static int copies(struct board *board)
{
    iris_t *iris = board->iris;
    char *in = board->memory[IN], *out = board->memory[OUT];
    int rank = iris_rank(iris), other = 1 - rank;
    uint32_t key = (uint32_t)(10 * other + 1);

    CHECK_EQUAL(begin(board), 0);
    CHECK_OK(iris_send_recv(iris, in, board->bytes, other, out, board->bytes,
                            other, IRIS_DTYPE_U8, NULL));
    CHECK_EQUAL(end(board, key, key + 1, 1), 0);
    CHECK_EQUAL(begin(board), 0);
    CHECK_OK(iris_put_on_stream(iris, out, in, board->bytes, other, NULL));
    CHECK_OK(iris_device_barrier(iris, NULL, NULL));
    CHECK_EQUAL(end(board, key, key + 1, 1), 0);
    CHECK_EQUAL(begin(board), 0);
    CHECK_OK(iris_memcpy(iris, out, in, board->bytes, NULL));
    CHECK_EQUAL(
        end(board, (uint32_t)(10 * rank + 1), (uint32_t)(10 * rank + 2), 1), 0);
    CHECK_OK(iris_memset(iris, out, 1, board->bytes, NULL));
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return has_part(&board->parts[OUT][1], 0, 0, 0x01010101);
}

static int large_body(iris_t *iris, void *arg)
{
    struct board board = {.bytes = *(const size_t *)arg};

    CHECK_EQUAL(open_board(iris, &board), 0);
    CHECK_EQUAL(collectives(&board), 0);
    return copies(&board);
}

/* By the library's own choice, and by the variants that only read, which
 * docs/amd.md names. */
static void run_sizes(const char *variants, size_t count)
{
    const size_t sizes[] = {512 * MB, 1024 * MB, 3072 * MB, 5120 * MB};

    setenv("IRIS_HEAP_SIZE", "12G", 1);
    setenv("IRIS_TIMEOUT_MS", "600000", 1);
    if (variants != NULL) {
        setenv("IRIS_CCL", variants, 1);
    }
    for (size_t i = 4 - count; i < 4; i++) {
        size_t bytes = sizes[i] + 2 * PAGE;

        harness_run(2, large_body, &bytes);
    }
    unsetenv("IRIS_CCL");
}

static TEST(buffers_have_more_bytes_than_32_bits_count)
{
    run_sizes(NULL, harness_count(4, 1));
}

static TEST(variants_that_only_read_have_them_too)
{
    if (harness_count(4, 0) == 0) {
        skip(); /* in a long run */
    }
    run_sizes("all_reduce=one_shot,all_gather=pull,reduce_scatter=direct,"
              "all_to_all=pull,broadcast=pull",
              4);
}

TEST_GROUP_WITH(hip_setup, harness_teardown, hip);
