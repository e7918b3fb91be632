/* SPDX-License-Identifier: MIT
 *
 * Making one collective call and judging it.
 */
#include "config.h"

#include "ccl/play.h"

#include "base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int play_open(iris_t *iris, size_t bytes, struct play_board *board_p)
{
    board_p->iris = iris;
    board_p->bytes = bytes + 4 * CASES_GUARD;
    CHECK_OK(iris_malloc(iris, board_p->bytes, (void **)&board_p->in));
    CHECK_OK(iris_malloc(iris, board_p->bytes, (void **)&board_p->out));
    return 0;
}

iris_ccl_variant_t play_variant(enum play_op op, int i)
{
    static const iris_ccl_variant_t variants[PLAY_NUM_OPS][5] = {
        {IRIS_CCL_ONE_SHOT, IRIS_CCL_TWO_SHOT, IRIS_CCL_ONE_SHOT_PACKET,
         IRIS_CCL_TWO_SHOT_PACKET},
        {IRIS_CCL_PUSH, IRIS_CCL_PULL, IRIS_CCL_PACKET},
        {IRIS_CCL_DIRECT, IRIS_CCL_PACKET},
        {IRIS_CCL_PUSH, IRIS_CCL_PULL, IRIS_CCL_PACKET},
        {IRIS_CCL_PUSH, IRIS_CCL_PULL, IRIS_CCL_PACKET},
        {IRIS_CCL_ONE_SHOT, IRIS_CCL_TWO_SHOT, IRIS_CCL_ONE_SHOT_PACKET,
         IRIS_CCL_TWO_SHOT_PACKET},
    };

    return variants[op][i];
}

void play_set_variant(struct play *play, iris_ccl_variant_t variant)
{
    iris_ccl_variant_t *of[PLAY_NUM_OPS] = {
        &play->options.all_reduce,     &play->options.all_gather,
        &play->options.reduce_scatter, &play->options.all_to_all,
        &play->options.broadcast,      &play->options.all_reduce,
        &play->options.broadcast,      &play->options.broadcast};

    *of[play->op] = variant;
}

void play_scale(struct play *play, size_t i)
{
    int reduces = play->op == PLAY_ALL_REDUCE || play->op == PLAY_REDUCE ||
                  play->op == PLAY_REDUCE_SCATTER;

    play->options.scale = 0;
    if (reduces && !play->type->is_integer && i % 3 != 0) {
        play->reduce = i % 3 == 1 ? IRIS_REDUCE_AVG : IRIS_REDUCE_SUM;
        play->options.scale = i % 3 == 1 ? 0 : -0.3;
    }
}

int play_can(const iris_t *iris, const struct play *play,
             iris_ccl_variant_t variant)
{
    int packets = variant == IRIS_CCL_ONE_SHOT_PACKET ||
                  variant == IRIS_CCL_TWO_SHOT_PACKET ||
                  variant == IRIS_CCL_PACKET || variant == IRIS_CCL_AUTO;

    if (harness_on_gpu(iris) && iris_dtype_size(play->type->dtype) == 1 &&
        !play->type->is_integer &&
        (play->op == PLAY_ALL_REDUCE || play->op == PLAY_REDUCE_SCATTER ||
         play->op == PLAY_REDUCE)) {
        return packets;
    }
    if (play->off_heap != PLAY_ON_HEAP) { /* on the CPU */
        return variant != IRIS_CCL_ONE_SHOT;
    }
    return packets || !play->in_place ||
           (variant != IRIS_CCL_ONE_SHOT && play->op != PLAY_ALL_TO_ALL);
}

iris_status_t play_call(iris_t *iris, const struct play *play, const void *in,
                        void *out)
{
    iris_dtype_t dtype = play->type->dtype;

    switch (play->op) {
    case PLAY_ALL_REDUCE:
        return iris_all_reduce(iris, in, out, play->count, dtype, play->reduce,
                               &play->options);
    case PLAY_ALL_GATHER:
        return iris_all_gather(iris, in, out, play->count, dtype,
                               &play->options);
    case PLAY_REDUCE_SCATTER:
        return iris_reduce_scatter(iris, in, out, play->count, dtype,
                                   play->reduce, &play->options);
    case PLAY_ALL_TO_ALL:
        return iris_all_to_all(iris, in, out, play->count, dtype,
                               &play->options);
    case PLAY_REDUCE:
        return iris_reduce(iris, in, out, play->count, dtype, play->reduce,
                           play->root, &play->options);
    case PLAY_GATHER:
        return iris_gather(iris, in, out, play->count, dtype, play->root,
                           &play->options);
    case PLAY_SCATTER:
        return iris_scatter(iris, in, out, play->count, dtype, play->root,
                            &play->options);
    default:
        return iris_ccl_broadcast(iris, in, out, play->count, dtype, play->root,
                                  &play->options);
    }
}

/* ---- What comes out ---- */

struct sizes {
    size_t members;
    size_t index;
    size_t in;  /* elements */
    size_t out; /* the same */
};

static struct sizes sizes_of(const iris_t *iris, const struct play *play)
{
    struct sizes sizes = {(size_t)iris_group_size(iris, play->options.group),
                          (size_t)iris_group_index(iris, play->options.group),
                          play->count, play->count};

    if (play->op == PLAY_REDUCE_SCATTER || play->op == PLAY_ALL_TO_ALL ||
        play->op == PLAY_SCATTER) {
        sizes.in *= sizes.members;
    }
    if (play->op == PLAY_ALL_GATHER || play->op == PLAY_ALL_TO_ALL ||
        play->op == PLAY_GATHER) {
        sizes.out *= sizes.members;
    }
    return sizes;
}

/* Whether this rank's output changes. */
static int gets(const struct play *play, struct sizes sizes)
{
    return (play->op != PLAY_REDUCE && play->op != PLAY_GATHER) ||
           sizes.index == (size_t)play->root;
}

size_t play_expect(const iris_t *iris, const struct play *play, char *to)
{
    struct sizes sizes = sizes_of(iris, play);
    size_t bytes = play->count * play->type->bytes;
    uint64_t seeds[CASES_MEMBERS];

    case_seeds(iris, play->options.group, play->round, seeds);
    if (!gets(play, sizes)) {
        return 0;
    }
    if (play->op == PLAY_ALL_REDUCE || play->op == PLAY_REDUCE_SCATTER ||
        play->op == PLAY_REDUCE) {
        const struct case_reduction how = {play->reduce, play->options.scale,
                                           seeds, (int)sizes.members};

        play->type->reduce(
            to, play->op == PLAY_REDUCE_SCATTER ? sizes.index * play->count : 0,
            play->count, &how);
    } else if (play->op == PLAY_SCATTER) {
        play->type->fill(to, sizes.index * play->count, play->count,
                         seeds[play->root]);
    } else if (play->op == PLAY_BROADCAST) {
        play->type->fill(to, 0, play->count, seeds[play->root]);
    } else {
        for (size_t i = 0; i < sizes.members; i++) {
            size_t first =
                play->op == PLAY_ALL_TO_ALL ? sizes.index * play->count : 0;

            play->type->fill(to + i * bytes, first, play->count, seeds[i]);
        }
    }
    return sizes.out * play->type->bytes;
}

/* ---- One call ---- */

/* Where in the larger of the two buffers the smaller one is, in place. */
static size_t part_of(const struct play *play, struct sizes sizes)
{
    return play->op == PLAY_ALL_GATHER || play->op == PLAY_REDUCE_SCATTER ||
                   play->op == PLAY_GATHER || play->op == PLAY_SCATTER
               ? sizes.index * play->count * play->type->bytes
               : 0;
}

/* Host images of both buffers, and what they are to be. */
struct images {
    size_t in_bytes;
    size_t out_bytes;
    char *in;
    char *out;
    char *expected;
    char *seen;
};

static int make_images(const iris_t *iris, const struct play *play,
                       struct images *images)
{
    struct sizes sizes = sizes_of(iris, play);
    size_t most;

    images->in_bytes = sizes.in * play->type->bytes;
    images->out_bytes = sizes.out * play->type->bytes;
    most = images->in_bytes > images->out_bytes ? images->in_bytes
                                                : images->out_bytes;
    images->in = case_host(most, 0x5a);
    images->out = case_host(most, 0xa5);
    images->expected = case_host(most, 0xa5);
    images->seen = case_host(most, 0);
    CHECK(images->in != NULL && images->out != NULL &&
          images->expected != NULL && images->seen != NULL);
    play->type->fill(images->in, 0, sizes.in,
                     case_seed(iris_rank(iris), play->round));
    play_expect(iris, play, images->expected);
    return 0;
}

static void free_images(struct images *images)
{
    case_host_free(images->in);
    case_host_free(images->out);
    case_host_free(images->expected);
    case_host_free(images->seen);
}

static void describe(const struct play *play, const char *what, char *text)
{
    static const char *const ops[] = {
        "all_reduce", "all_gather", "reduce_scatter", "all_to_all",
        "broadcast",  "reduce",     "gather",         "scatter"};

    snprintf(text, 200,
             "%s of %zu %s, %s, scale %g, shift %zu, %s%s variants %d %d %d %d "
             "%d, cus %d: %s",
             ops[play->op], play->count, play->type->name,
             iris_i_reduce_op_name(play->reduce), play->options.scale,
             play->shift, play->in_place ? "in place, " : "",
             play->off_heap == PLAY_ON_HEAP    ? ""
             : play->off_heap == PLAY_OFF_HEAP ? "off the heap, "
                                               : "partly off the heap, ",
             play->options.all_reduce, play->options.all_gather,
             play->options.reduce_scatter, play->options.all_to_all,
             play->options.broadcast, play->options.num_cus, what);
}

static int check_apart(struct play_board *board, const struct play *play,
                       struct images *images, char *in, char *out)
{
    iris_t *iris = board->iris;
    char text[200];

    CHECK_OK(case_write(iris, in, images->in, images->in_bytes));
    CHECK_OK(case_write(iris, out, images->out, images->out_bytes));
    CHECK_OK(play_call(iris, play, in, out));
    CHECK_OK(iris_stream_synchronize(iris, play->options.stream));
    CHECK_OK(case_read(iris, images->seen, out, images->out_bytes));
    describe(play, "out", text);
    CHECK(case_same(images->seen, images->expected, images->out_bytes, text));
    memset(images->seen, 0, images->in_bytes);
    CHECK_OK(case_read(iris, images->seen, in, images->in_bytes));
    describe(play, "in", text);
    CHECK(case_same(images->seen, images->in, images->in_bytes, text));
    return 0;
}

/* In the larger buffer of the two. */
static int check_in_place(struct play_board *board, const struct play *play,
                          struct images *images, char *buffer)
{
    iris_t *iris = board->iris;
    struct sizes sizes = sizes_of(iris, play);
    size_t part = part_of(play, sizes);
    int in_is_larger = images->in_bytes > images->out_bytes;
    size_t bytes = in_is_larger ? images->in_bytes : images->out_bytes;
    char text[200];

    if (in_is_larger) { /* reduce_scatter: out is a part; peers' are read */
        CHECK_OK(case_write(iris, buffer, images->in, bytes));
    } else {
        memcpy(images->out + part, images->in, images->in_bytes);
        if (!gets(play, sizes)) {
            memcpy(images->expected + part, images->in, images->in_bytes);
        }
        CHECK_OK(case_write(iris, buffer, images->out, bytes));
    }
    CHECK_OK(play_call(iris, play, buffer + (in_is_larger ? 0 : part),
                       buffer + (in_is_larger ? part : 0)));
    CHECK_OK(iris_stream_synchronize(iris, play->options.stream));
    CHECK_OK(case_read(iris, images->seen, buffer, bytes));
    describe(play, "in place", text);
    if (in_is_larger) {
        memcpy(images->in + part, images->expected, images->out_bytes);
        CHECK(case_same(images->seen, images->in, bytes, text));
    } else {
        CHECK(case_same(images->seen, images->expected, bytes, text));
    }
    return 0;
}

int play_and_check(struct play_board *board, const struct play *play)
{
    size_t shift = 2 * CASES_GUARD + play->shift * play->type->bytes;
    char *in = board->in, *out = board->out;
    char *memory[2] = {NULL, NULL};
    struct images images;
    int failed;

    if (make_images(board->iris, play, &images) != 0) {
        return 1;
    }
    if (!harness_on_gpu(board->iris) &&
        (play->off_heap == PLAY_OFF_HEAP ||
         (play->off_heap == PLAY_MIXED && iris_rank(board->iris) % 2 == 0))) {
        memory[0] = in = malloc(images.in_bytes + shift + 2 * CASES_GUARD);
        memory[1] = out = malloc(images.out_bytes + shift + 2 * CASES_GUARD);
        CHECK(in != NULL && out != NULL);
    }
    failed = play->in_place
                 ? check_in_place(
                       board, play, &images,
                       (images.in_bytes > images.out_bytes ? in : out) + shift)
                 : check_apart(board, play, &images, in + shift, out + shift);
    free(memory[0]);
    free(memory[1]);
    free_images(&images);
    return failed;
}
