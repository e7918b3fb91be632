/* SPDX-License-Identifier: MIT
 *
 * One collective call as the tests make it, with everything that may be
 * different about it, and what it has to give.
 */
#ifndef IRIS_TESTS_CCL_PLAY_H
#define IRIS_TESTS_CCL_PLAY_H

#include "ccl/cases.h"

enum play_op {
    PLAY_ALL_REDUCE,
    PLAY_ALL_GATHER,
    PLAY_REDUCE_SCATTER,
    PLAY_ALL_TO_ALL,
    PLAY_BROADCAST,
    PLAY_REDUCE,
    PLAY_GATHER,
    PLAY_SCATTER,
    PLAY_NUM_OPS,
};

/* Whose buffers are of malloc(). On GPUs none are. */
enum play_memory {
    PLAY_ON_HEAP,
    PLAY_OFF_HEAP,
    PLAY_MIXED, /* those of ranks 0, 2, ... */
};

struct play {
    enum play_op op;
    const struct case_type *type;
    iris_reduce_op_t reduce;
    int root; /* member index */
    size_t count;
    size_t shift; /* elements from an aligned address to the buffers */
    int in_place;
    enum play_memory off_heap;
    uint64_t round;
    struct iris_ccl_options options;
};

/* Buffers on the heap, for calls of at most so many bytes of each member. */
struct play_board {
    iris_t *iris;
    char *in;
    char *out;
    size_t bytes; /* of each */
};
int play_open(iris_t *iris, size_t bytes, struct play_board *board_p);

/* The variants a collective has: the i-th, or IRIS_CCL_AUTO when there are no
 * more. */
iris_ccl_variant_t play_variant(enum play_op op, int i);
void play_set_variant(struct play *play, iris_ccl_variant_t variant);

/* Makes every second and third call with floats an average or a scaled sum. */
void play_scale(struct play *play, size_t i);

/* Whether the variant takes such buffers. */
int play_can(const iris_t *iris, const struct play *play,
             iris_ccl_variant_t variant);

/* Fills the buffers, makes the call, waits, and compares every bit with what
 * has to come out, guards and input included. 0: all is well. */
int play_and_check(struct play_board *board, const struct play *play);

/* What has to come out of it; returns how many bytes, 0 if this rank gets none. */
size_t play_expect(const iris_t *iris, const struct play *play, char *to);

/* The call alone. */
iris_status_t play_call(iris_t *iris, const struct play *play, const void *in,
                        void *out);

#endif /* IRIS_TESTS_CCL_PLAY_H */
