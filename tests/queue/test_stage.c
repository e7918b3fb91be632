/* SPDX-License-Identifier: MIT
 *
 * Copies of the host's memory under load: every byte that rank threads or
 * processes put, get, fill and copy on several streams is right, whoever else
 * copies. With IRIS_TEST_LONG=1, a thousand rounds. Over the fake HIP runtime,
 * which is then as late as HIP allows.
 */
#include "config.h"

#include "support/harness.h"

#include <iris/device.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST ((size_t)300000) /* bytes of a copy, but for the largest */
#define LARGEST (((size_t)4 << 20) + 12345)
#define STREAMS 3
#define SMALL ((size_t)4092)
#define MANY 80 /* copies; more than the stage has blocks */

/* A rank's. */
struct game {
    iris_t *iris;
    iris_stream_t *streams[STREAMS]; /* the last: the program has it, too */
    unsigned char *heap;             /* LARGEST bytes */
    unsigned char *other;            /* the same */
    unsigned char *from_before;      /* MANY * SMALL; the rank before writes */
    unsigned char *host[4];          /* LARGEST bytes each */
    uint64_t *turns;                 /* symmetric, with the latest turn */
    uint64_t turn;
    uint64_t round;
    uint64_t random; /* the same on all ranks */
};

static size_t draw(struct game *game, size_t limit)
{
    game->random = game->random * UINT64_C(6364136223846793005) + 1442695041;
    return (size_t)(game->random >> 33) % limit;
}

static iris_stream_t *any_stream(struct game *game)
{
    size_t number = draw(game, STREAMS + 1);

    return number == STREAMS ? NULL : game->streams[number];
}

/* Sizes of those copies that went wrong once, and about a block of the stage.
 */
static size_t any_size(struct game *game)
{
    static const size_t sizes[] = {1,     8,     4092,   16384,  32764, 65535,
                                   65536, 65537, 131072, 200001, MOST};
    size_t number = draw(game, 12);

    return number == 11 ? 1 + draw(game, MOST) : sizes[number];
}

/* No word of it is the same for another rank, round, copy or place. */
static void pattern(const struct game *game, int rank, size_t copy,
                    unsigned char *to, size_t bytes)
{
    uint64_t key = game->round << 32 | (uint64_t)rank << 16 | copy;

    for (size_t i = 0; i < bytes; i += sizeof(uint64_t)) {
        uint64_t word = (key + i * 2654435761U) * UINT64_C(0x9e3779b97f4a7c15);
        size_t left = bytes - i < sizeof word ? bytes - i : sizeof word;

        memcpy(to + i, &word, left);
    }
}

/* Whether it is that pattern; says which other it is, if it is not. */
static int is_pattern(struct game *game, int rank, size_t copy,
                      const unsigned char *seen, size_t bytes)
{
    unsigned char *expected = malloc(bytes);
    uint64_t round = game->round;
    size_t at = 0;

    pattern(game, rank, copy, expected, bytes);
    while (at < bytes && seen[at] == expected[at]) {
        at++;
    }
    for (uint64_t back = 0; at < bytes && back < 3 * MANY; back++) {
        game->round = round - back / MANY;
        pattern(game, rank, back % MANY, expected, bytes);
        if (memcmp(expected, seen, bytes) == 0) {
            fprintf(stderr, "it is copy %d of round %llu\n", (int)back % MANY,
                    (unsigned long long)game->round);
        }
    }
    game->round = round;
    free(expected);
    if (at < bytes) {
        fprintf(stderr, "rank %d, round %llu, copy %zu: byte %zu of %zu\n",
                rank, (unsigned long long)round, copy, at, bytes);
    }
    return at == bytes;
}

/* ---- Plays: each enqueues, waits, checks ---- */

/* Each copy waited for, and its source overwritten at once. */
static int play_one_by_one(struct game *game)
{
    iris_stream_t *stream = any_stream(game);
    int rank = iris_rank(game->iris);
    unsigned char *in = game->host[0], *out = game->host[1];

    for (size_t copy = 0; copy < 4; copy++) {
        size_t bytes = any_size(game), shift = draw(game, 9);

        pattern(game, rank, copy, in + shift, bytes);
        CHECK_OK(
            iris_memcpy(game->iris, game->heap, in + shift, bytes, stream));
        CHECK_OK(iris_stream_synchronize(game->iris, stream));
        memset(in, 0xa5, bytes + shift);
        CHECK_OK(iris_memcpy(game->iris, out, game->heap, bytes, stream));
        CHECK_OK(iris_stream_synchronize(game->iris, stream));
        CHECK(is_pattern(game, rank, copy, out, bytes));
        memset(out, 0x5a, bytes);
    }
    return 0;
}

/* Put, copy, get, put what that got, copy it on the host, get: at once. */
static int play_chain(struct game *game)
{
    iris_stream_t *stream = any_stream(game);
    size_t bytes = any_size(game);
    unsigned char **host = game->host;
    int rank = iris_rank(game->iris);
    iris_t *iris = game->iris;

    pattern(game, rank, 0, host[0], bytes);
    CHECK_OK(iris_memcpy(iris, game->heap, host[0], bytes, stream));
    CHECK_OK(iris_memcpy(iris, game->other, game->heap, bytes, stream));
    CHECK_OK(iris_memset(iris, game->heap, 0, bytes, stream));
    CHECK_OK(iris_memcpy(iris, host[1], game->other, bytes, stream));
    CHECK_OK(iris_memcpy(iris, game->heap, host[1], bytes, stream));
    CHECK_OK(iris_memcpy(iris, host[2], host[1], bytes, stream));
    CHECK_OK(iris_memcpy(iris, host[3], game->heap, bytes, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    for (int i = 1; i < 4; i++) {
        CHECK(is_pattern(game, rank, 0, host[i], bytes));
        memset(host[i], 0x5a, bytes);
    }
    memset(host[0], 0xa5, bytes);
    return 0;
}

/* More than the stage holds, to the next rank's heap, and by turns back from
 * the own one. */
static int play_many(struct game *game)
{
    int num_ranks = iris_num_ranks(game->iris), rank = iris_rank(game->iris);
    iris_stream_t *stream = any_stream(game);
    iris_stream_t *other = game->streams[draw(game, STREAMS)];
    unsigned char *in = game->host[0], *out = game->host[1];

    for (size_t i = 0; i < MANY; i++) {
        pattern(game, rank, i, in + i * SMALL, SMALL);
        pattern(game, rank, i, game->host[2] + i * SMALL, SMALL);
    }
    CHECK_OK(iris_barrier(game->iris, NULL, NULL));
    for (size_t i = 0; i < MANY; i++) {
        size_t at = i * SMALL;

        CHECK_OK(iris_put_on_stream(game->iris, game->from_before + at, in + at,
                                    SMALL, (rank + 1) % num_ranks, stream));
        CHECK_OK(iris_memcpy(game->iris, game->heap + at, game->host[2] + at,
                             SMALL, other));
        CHECK_OK(iris_memcpy(game->iris, game->host[3] + at, game->heap + at,
                             SMALL, other));
    }
    CHECK_OK(iris_stream_synchronize(game->iris, stream));
    CHECK_OK(iris_stream_synchronize(game->iris, other));
    memset(in, 0xa5, MANY * SMALL);
    memset(game->host[2], 0xa5, MANY * SMALL);
    CHECK_OK(iris_barrier(game->iris, NULL, NULL));
    CHECK_OK(
        iris_memcpy(game->iris, out, game->from_before, MANY * SMALL, stream));
    CHECK_OK(iris_stream_synchronize(game->iris, stream));
    for (size_t i = 0; i < MANY; i++) {
        CHECK(is_pattern(game, rank, i, game->host[3] + i * SMALL, SMALL));
        CHECK(is_pattern(game, (rank + num_ranks - 1) % num_ranks, i,
                         out + i * SMALL, SMALL));
    }
    return 0;
}

/* The host's memory is filled, then put, on one stream. */
static int play_fill(struct game *game)
{
    iris_stream_t *stream = any_stream(game);
    size_t bytes = any_size(game);
    int value = (int)(game->round * 7 + (uint64_t)iris_rank(game->iris)) & 0xff;
    unsigned char *in = game->host[0], *out = game->host[1];

    CHECK_OK(iris_memset(game->iris, in, value, bytes, stream));
    CHECK_OK(iris_memcpy(game->iris, game->other, in, bytes, stream));
    CHECK_OK(iris_memset(game->iris, in, ~value & 0xff, bytes, stream));
    CHECK_OK(iris_memcpy(game->iris, out, game->other, bytes, stream));
    CHECK_OK(iris_stream_synchronize(game->iris, stream));
    for (size_t i = 0; i < bytes; i++) {
        CHECK_EQUAL(out[i], value);
        CHECK_EQUAL(in[i], ~value & 0xff);
    }
    return 0;
}

struct move_args {
    const unsigned char *from;
    unsigned char *to;
    size_t bytes;
};

IRIS_KERNEL(move_bytes, struct move_args)
{
    IRIS_LANES (wg, i, args->bytes) {
        args->to[i] = args->from[i];
    }
}

/* Later work of the second stream comes behind earlier work of the first. */
static int pass_turn(struct game *game, iris_stream_t *first,
                     iris_stream_t *second)
{
    if (first == second) {
        return 0;
    }
    game->turn++;
    CHECK_OK(iris_signal_on_stream(game->iris, game->turns, game->turn,
                                   iris_rank(game->iris), first));
    CHECK_OK(iris_wait_on_stream(game->iris, game->turns, IRIS_CMP_GE,
                                 game->turn, second));
    return 0;
}

/* A fill, a copy from the host over it, and a kernel that reads both: on one
 * stream, or the copy on another. A copy that a fill overtakes is lost. */
static int play_copy_after_fill(struct game *game)
{
    size_t bytes = any_size(game), half = bytes / 2;
    iris_stream_t *stream = game->streams[0];
    iris_stream_t *copies = game->streams[draw(game, 2)];
    struct move_args args = {game->heap, game->other, bytes};
    int rank = iris_rank(game->iris);
    unsigned char *in = game->host[0], *out = game->host[1];
    iris_t *iris = game->iris;

    pattern(game, rank, 0, in, bytes);
    CHECK_OK(iris_memset(iris, game->heap, 0x77, bytes, stream));
    CHECK_EQUAL(pass_turn(game, stream, copies), 0);
    CHECK_OK(iris_memcpy(iris, game->heap, in, half, copies));
    CHECK_EQUAL(pass_turn(game, copies, stream), 0);
    CHECK_OK(iris_launch(iris, move_bytes, 3, 64, &args, sizeof args, stream));
    CHECK_OK(iris_memcpy(iris, out, game->other, bytes, stream));
    CHECK_OK(iris_stream_synchronize(iris, stream));
    CHECK(is_pattern(game, rank, 0, out, half));
    for (size_t i = half; i < bytes; i++) {
        CHECK_EQUAL(out[i], 0x77);
    }
    return 0;
}

/* More than the stage has, and less. */
static int play_large(struct game *game)
{
    iris_stream_t *stream = any_stream(game);
    int rank = iris_rank(game->iris);
    unsigned char *in = game->host[0], *out = game->host[1];

    for (size_t bytes = LARGEST; bytes > 65536; bytes /= 3) {
        pattern(game, rank, 0, in, bytes);
        CHECK_OK(iris_memcpy(game->iris, game->heap, in, bytes, stream));
        CHECK_OK(iris_memcpy(game->iris, out, game->heap, bytes, stream));
        CHECK_OK(iris_stream_synchronize(game->iris, stream));
        CHECK(is_pattern(game, rank, 0, out, bytes));
    }
    return 0;
}

/* ---- Games ---- */

static int open_game(iris_t *iris, struct game *game)
{
    *game = (struct game){.iris = iris, .random = 35};
    for (int i = 0; i < STREAMS; i++) {
        CHECK_OK(iris_stream_create(iris, &game->streams[i]));
    }
    (void)iris_stream_native(iris, game->streams[STREAMS - 1]);
    CHECK_OK(iris_malloc(iris, LARGEST, (void **)&game->heap));
    CHECK_OK(iris_malloc(iris, LARGEST, (void **)&game->other));
    CHECK_OK(iris_malloc(iris, MANY * SMALL, (void **)&game->from_before));
    CHECK_OK(iris_calloc(iris, 1, sizeof *game->turns, (void **)&game->turns));
    for (int i = 0; i < 4; i++) {
        game->host[i] = malloc(LARGEST);
        CHECK(game->host[i] != NULL);
    }
    return 0;
}

static int game_body(iris_t *iris, void *arg)
{
    static int (*const plays[])(struct game *) = {
        play_one_by_one, play_chain, play_fill,  play_copy_after_fill,
        play_one_by_one, play_many,  play_chain, play_copy_after_fill,
    };
    const size_t *rounds = arg;
    struct game game;

    CHECK_EQUAL(open_game(iris, &game), 0);
    for (size_t i = 0; i < *rounds; i++) {
        game.round++;
        CHECK_EQUAL(plays[i % 8](&game), 0);
    }
    game.round++;
    CHECK_EQUAL(play_large(&game), 0);
    for (int i = 0; i < STREAMS; i++) {
        iris_stream_destroy(iris, game.streams[i]);
    }
    for (int i = 0; i < 4; i++) {
        free(game.host[i]);
    }
    return iris_barrier(iris, NULL, NULL);
}

static TEST(every_byte_is_right_whoever_copies_beside)
{
    static const int ranks[] = {2, 8, 3, 5, 1};
    size_t rounds = harness_count(1000, 12);
    char seed[8];

    for (size_t i = 0; i < harness_count(5, 2); i++) {
        snprintf(seed, sizeof seed, "%zu", i + 1);
        setenv("FAKEHIP_LATE", seed, 1);
        harness_run(ranks[i], game_body, &rounds);
        unsetenv("FAKEHIP_LATE");
    }
}

TEST_GROUP(rank);
