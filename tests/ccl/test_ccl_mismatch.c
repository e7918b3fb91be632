/* SPDX-License-Identifier: MIT
 *
 * Members of a group that make different calls: every one of them gets an
 * error that says who calls what, whatever the calls are.
 */
#include "config.h"

#include "ccl/play.h"

#include <stdio.h>
#include <string.h>

#define BYTES ((size_t)128 << 10) /* of a buffer */

/* A call in everything that members have to have alike. */
struct kind {
    enum play_op op;
    iris_dtype_t dtype;
    size_t count;
    iris_reduce_op_t reduce;
    int root; /* of an all_reduce the scale, in quarters */
    iris_ccl_variant_t variant;
    int off_heap;
};

#define AUTO IRIS_CCL_AUTO
static const struct kind kinds[] = {
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F64, 4, IRIS_REDUCE_SUM, 0, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F64, 4, IRIS_REDUCE_PRODUCT, 0, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F64, 4, IRIS_REDUCE_AVG, 0, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F64, 4, IRIS_REDUCE_SUM, 2, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F64, 4, IRIS_REDUCE_SUM, 1, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F32, 8, IRIS_REDUCE_SUM, 0, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_I32, 8, IRIS_REDUCE_SUM, 0, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_I32, 1, IRIS_REDUCE_SUM, 0, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F32, 500, IRIS_REDUCE_SUM, 0, AUTO, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F32, 5000, IRIS_REDUCE_SUM, 0, AUTO, 1},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F32, 5000, IRIS_REDUCE_MAX, 0, AUTO, 1},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F32, 8, IRIS_REDUCE_SUM, 0,
     IRIS_CCL_TWO_SHOT_PACKET, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F32, 1, IRIS_REDUCE_SUM, 0,
     IRIS_CCL_TWO_SHOT_PACKET, 0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F32, 8, IRIS_REDUCE_SUM, 0, IRIS_CCL_TWO_SHOT,
     0},
    {PLAY_ALL_REDUCE, IRIS_DTYPE_F32, 8, IRIS_REDUCE_SUM, 0, IRIS_CCL_RING, 0},
    {PLAY_ALL_GATHER, IRIS_DTYPE_F32, 1, 0, 0, AUTO, 0},
    {PLAY_ALL_GATHER, IRIS_DTYPE_F32, 2, 0, 0, AUTO, 0},
    {PLAY_ALL_GATHER, IRIS_DTYPE_F32, 500, 0, 0, AUTO, 0},
    {PLAY_ALL_GATHER, IRIS_DTYPE_F32, 500, 0, 0, AUTO, 1},
    {PLAY_REDUCE_SCATTER, IRIS_DTYPE_F32, 2, IRIS_REDUCE_SUM, 0, AUTO, 0},
    {PLAY_REDUCE_SCATTER, IRIS_DTYPE_F32, 2, IRIS_REDUCE_MIN, 0, AUTO, 0},
    {PLAY_REDUCE_SCATTER, IRIS_DTYPE_F32, 500, IRIS_REDUCE_SUM, 0, AUTO, 1},
    {PLAY_ALL_TO_ALL, IRIS_DTYPE_F32, 2, 0, 0, AUTO, 0},
    {PLAY_ALL_TO_ALL, IRIS_DTYPE_U32, 2, 0, 0, AUTO, 0},
    {PLAY_ALL_TO_ALL, IRIS_DTYPE_F32, 500, 0, 0, IRIS_CCL_PUSH, 0},
    {PLAY_BROADCAST, IRIS_DTYPE_F32, 2, 0, 0, AUTO, 0},
    {PLAY_BROADCAST, IRIS_DTYPE_F32, 2, 0, 1, AUTO, 0},
    {PLAY_BROADCAST, IRIS_DTYPE_F32, 5000, 0, 1, AUTO, 1},
};
#undef AUTO
#define KINDS (sizeof kinds / sizeof kinds[0])

static const char *const names[] = {"iris_all_reduce", "iris_all_gather",
                                    "iris_reduce_scatter", "iris_all_to_all",
                                    "iris_ccl_broadcast"};

struct board {
    iris_t *iris;
    char *on[2]; /* in and out; the same of memory that is not on this heap */
    char *off[2];
    iris_ccl_workspace_t *workspace;
};

static int board_open(iris_t *iris, struct board *board)
{
    int next = (iris_rank(iris) + 1) % iris_num_ranks(iris);
    char *lent;

    board->iris = iris;
    for (int i = 0; i < 2; i++) {
        CHECK_OK(iris_calloc(iris, 1, BYTES, (void **)&board->on[i]));
        CHECK_OK(iris_calloc(iris, 1, BYTES, (void **)&lent));
        CHECK_OK(iris_as_remote(iris, lent, next, (void **)&board->off[i]));
    }
    return 0;
}

static double scale_of(const struct kind *kind)
{
    return kind->op == PLAY_ALL_REDUCE ? kind->root / 4.0 : 0;
}

static iris_status_t call(const struct board *board, const struct kind *kind)
{
    struct case_type type = {.dtype = kind->dtype};
    struct play play = {.op = kind->op,
                        .type = &type,
                        .reduce = kind->reduce,
                        .root = kind->root,
                        .count = kind->count};
    char *const *buffers = kind->off_heap ? board->off : board->on;

    iris_ccl_options_init(&play.options);
    play.options.workspace = board->workspace;
    play.options.scale = scale_of(kind);
    play_set_variant(&play, kind->variant);
    return play_call(board->iris, &play, buffers[0], buffers[1]);
}

/* Whether the message says who called what: the other rank's call, this rank's,
 * and which of the group's it was. */
static int check_message(const struct board *board, const struct kind *own,
                         const struct kind *theirs, int count)
{
    char text[160];

    snprintf(text, sizeof text, "calls %s of %zu %s", names[theirs->op],
             theirs->count, iris_dtype_name(theirs->dtype));
    CHECK_MESSAGE(text);
    snprintf(text, sizeof text, "this rank %s of %zu %s", names[own->op],
             own->count, iris_dtype_name(own->dtype));
    CHECK_MESSAGE(text);
    snprintf(text, sizeof text, "call %d of the group", count);
    CHECK_MESSAGE(text);
    snprintf(text, sizeof text, "rank %d: ", iris_rank(board->iris));
    CHECK_MESSAGE(text);
    if (scale_of(own) != 0 && own->op == theirs->op &&
        own->count == theirs->count && own->dtype == theirs->dtype) {
        snprintf(text, sizeof text, "this rank %s of %zu %s (sum times %g",
                 names[own->op], own->count, iris_dtype_name(own->dtype),
                 scale_of(own));
        CHECK_MESSAGE(text);
    }
    return 0;
}

/* Whether two kinds differ at all: only this rank has to know where its buffers
 * are, as long as all members' variants are the same (test_ccl_places). */
static int differs(const struct kind *one, const struct kind *other)
{
    return one->op != other->op || one->dtype != other->dtype ||
           one->count != other->count || one->reduce != other->reduce ||
           one->root != other->root || one->variant != other->variant;
}

/* One rank makes a call, the others another, both as third one. What fails is
 * told with the pair of calls. */
static int differ(struct board *board, const struct kind *ones, int rank,
                  const struct kind *others)
{
    iris_t *iris = board->iris;
    int odd = iris_rank(iris) == rank;
    iris_status_t status;

    CHECK_OK(iris_ccl_workspace_create(iris, NULL, &board->workspace));
    CHECK_OK(call(board, others));
    CHECK_OK(call(board, others));
    status = call(board, odd ? ones : others);
    status = status == IRIS_OK ? iris_stream_synchronize(iris, NULL) : status;
    CHECK_STATUS(status, IRIS_ERR_MISMATCH);
    CHECK_EQUAL(
        check_message(board, odd ? ones : others, odd ? others : ones, 3), 0);
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    CHECK_OK(iris_ccl_workspace_destroy(iris, board->workspace));
    return 0;
}

static RANK_TEST(any_two_calls_are_told_apart_on_all_ranks, 2, 3, 4)
{
    size_t step = harness_is_long() ? 1 : 7;
    struct board board;

    CHECK_EQUAL(board_open(iris, &board), 0);
    for (size_t i = 0; i < KINDS * KINDS; i += step) {
        size_t one = i / KINDS, other = i % KINDS;
        int rank = (int)(i % (size_t)iris_num_ranks(iris));

        if (differs(&kinds[one], &kinds[other]) &&
            differ(&board, &kinds[one], rank, &kinds[other]) != 0) {
            fprintf(stderr,
                    "FAILED: rank %d of %d, kind %zu on rank %d, kind %zu on "
                    "others: %s\n",
                    iris_rank(iris), iris_num_ranks(iris), one, rank, other,
                    iris_last_error());
            return 1;
        }
    }
    return 0;
}

/* The same calls are none the worse for it, in any order. */
static RANK_TEST(equal_calls_are_accepted, 2, 3)
{
    struct board board = {0};

    CHECK_EQUAL(board_open(iris, &board), 0);
    for (size_t i = 0; i < KINDS * KINDS; i++) {
        CHECK_OK(call(&board, &kinds[i / KINDS]));
        CHECK_OK(call(&board, &kinds[i % KINDS]));
        if (i % KINDS == 0) { /* ranks go apart in between */
            CHECK_OK(iris_stream_synchronize(iris, NULL));
        }
    }
    CHECK_OK(iris_stream_synchronize(iris, NULL));
    return 0;
}

/* A call that one rank makes and the others do not shifts its later ones. */
static RANK_TEST(an_extra_call_is_found, 2, 4)
{
    static const struct kind extra = {PLAY_ALL_REDUCE,
                                      IRIS_DTYPE_F32,
                                      3,
                                      IRIS_REDUCE_SUM,
                                      0,
                                      IRIS_CCL_AUTO,
                                      0};
    struct board board = {0};
    int odd = iris_rank(iris) == 1;

    CHECK_EQUAL(board_open(iris, &board), 0);
    CHECK_OK(iris_ccl_workspace_create(iris, NULL, &board.workspace));
    for (int i = 0; i < 16; i++) {
        CHECK_OK(call(&board, &kinds[0]));
    }
    if (odd) {
        CHECK_OK(call(&board, &extra));
    }
    for (int i = 0; i < 4; i++) {
        CHECK_OK(call(&board, &kinds[0]));
    }
    CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
    CHECK_EQUAL(check_message(&board, odd ? &extra : &kinds[0],
                              odd ? &kinds[0] : &extra, 17),
                0);
    CHECK_OK(iris_clear_error(iris));
    /* The workspace was left in the middle of a step. */
    CHECK_OK(call(&board, &kinds[0]));
    CHECK_BAD(iris, iris_stream_synchronize(iris, NULL), IRIS_ERR_INVALID,
              "did not end", "workspace");
    CHECK_OK(iris_clear_error(iris));
    CHECK_OK(iris_barrier(iris, NULL, NULL));
    return 0;
}

/* What no name and no count tells apart. */
static RANK_TEST(options_that_differ_are_found, 2)
{
    struct board board = {0};
    struct iris_ccl_options options;
    int odd = iris_rank(iris) == 0;

    CHECK_EQUAL(board_open(iris, &board), 0);
    for (int i = 0; i < 4; i++) {
        iris_ccl_options_init(&options);
        CHECK_OK(iris_ccl_workspace_create(iris, NULL, &options.workspace));
        options.all_reduce =
            i == 0 ? (odd ? IRIS_CCL_TWO_SHOT : IRIS_CCL_ONE_SHOT_PACKET)
                   : IRIS_CCL_TWO_SHOT;
        options.async = i == 1 && odd;
        options.rows = i == 2 ? 4 : 0;
        options.in_stride = i == 2 ? (odd ? 8 : 9) : 0;
        CHECK_OK(iris_all_reduce(
            iris, board.on[0], board.on[1], 8, IRIS_DTYPE_F32,
            i == 3 && odd ? IRIS_REDUCE_MAX : IRIS_REDUCE_SUM, &options));
        CHECK_STATUS(iris_stream_synchronize(iris, NULL), IRIS_ERR_MISMATCH);
        CHECK_MESSAGE(i == 0   ? "either on all members or on no member"
                      : i == 3 ? "(max, variant two_shot)"
                               : "with the same options");
        CHECK_OK(iris_clear_error(iris));
        CHECK_OK(iris_barrier(iris, NULL, NULL));
    }
    return 0;
}

TEST_GROUP(rank, one_node);
