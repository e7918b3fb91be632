/* SPDX-License-Identifier: MIT
 *
 * all_reduce: every variant gives every rank the bits that adding in the
 * group's order gives, whatever the type, the count, the place.
 */
#include "config.h"

#include "ccl/play.h"

#include <stdlib.h>

#define MOST ((size_t)300 << 10)

static struct play first_play(void)
{
    struct play play = {.op = PLAY_ALL_REDUCE,
                        .type = &case_types[0],
                        .reduce = IRIS_REDUCE_SUM};

    iris_ccl_options_init(&play.options);
    return play;
}

/* The first in-place call's input is what peers read, so each rank waits for
 * the others before it overwrites a buffer: by play_and_check(), which waits
 * for the stream, and by a collective being one. */
static int each_variant(struct play_board *board, struct play play)
{
    for (int i = 0; play_variant(play.op, i) != IRIS_CCL_AUTO; i++) {
        if (play_can(board->iris, &play, play_variant(play.op, i))) {
            play_set_variant(&play, play_variant(play.op, i));
            play.round++;
            CHECK_EQUAL(play_and_check(board, &play), 0);
        }
    }
    play_set_variant(&play, IRIS_CCL_AUTO);
    return play_and_check(board, &play);
}

static RANK_TEST(each_type_and_operation_has_the_bits_of_the_order, ALL_RANKS,
                 3)
{
    static const size_t counts[] = {1, 3, 1031, 130, 64, 257, 4100};
    size_t step = iris_num_ranks(iris) == 2 || iris_num_ranks(iris) == 3
                      ? 1
                      : 4 - 3 * harness_count(1, 0);
    struct play_board board;
    struct play play = first_play();

    CHECK_EQUAL(play_open(iris, 8 * 4100 + 64, &board), 0);
    for (size_t t = 0; t < case_num_types; t++) {
        for (size_t op = t % step; op <= IRIS_REDUCE_AVG; op += step) {
            play.type = &case_types[t];
            play.reduce = (iris_reduce_op_t)op;
            play.count = counts[(t + op) % 7];
            play.round += 10;
            play.in_place = op & 1;
            play.options.scale =
                !play.type->is_integer && play.reduce == IRIS_REDUCE_SUM
                    ? (double)(t % 3) / 3
                    : 0;
            if (case_reduces(play.type, play.reduce)) {
                CHECK_EQUAL(each_variant(&board, play), 0);
            }
        }
    }
    return 0;
}

/* Counts around what a word, a packet, a block, a share, a slot hold. */
static RANK_TEST(each_count_and_alignment_works, ALL_RANKS)
{
    static const size_t counts[] = {0,    1,     2,     4,     5,     7,
                                    127,  128,   129,   1023,  4096,  4097,
                                    8191, 16384, 16385, 32771, 70001, 76800};
    struct play_board board;
    struct play play = first_play();

    CHECK_EQUAL(play_open(iris, MOST + 64, &board), 0);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        play.type = &case_types[i % 2 == 0 ? 10 : 8]; /* f32, f16 */
        play.count = counts[i];
        play.shift = i % 5;
        play.options.num_cus = (int)(i % 3);
        play.round += 10;
        play.in_place = i % 3 == 1;
        CHECK_EQUAL(each_variant(&board, play), 0);
    }
    return 0;
}

TEST_GROUP(matrix, slow);
