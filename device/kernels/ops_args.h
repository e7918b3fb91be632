/* SPDX-License-Identifier: MIT
 *
 * The arguments of the kernels of ops_chunk.h.
 */
#ifndef IRIS_DEVICE_KERNELS_OPS_ARGS_H
#define IRIS_DEVICE_KERNELS_OPS_ARGS_H

#include <stddef.h>
#include <stdint.h>

/* The most parts that a call asks for, and so the most chunks of a share. */
#define IRIS_OPS_CHUNKS_MOST 8

/* The words that one rank sets on another in a call: one for each chunk, and one
 * for the end. iris_matmul_all_reduce has at most half as many chunks of a share, and
 * a word more for the sum of each. */
#define IRIS_OPS_WORDS_MOST (IRIS_OPS_CHUNKS_MOST + 1)

/* The words of one rank for another rank, which sets them. They are 0 between
 * calls. A rank sets a word only after all members have begun the call, so the
 * last kernel of the call before has cleared it. They do not depend on the
 * group. The words of all ranks are followed by as many for the meeting that
 * begins a call: the members' largest ones, which are 0, too. */
struct iris_ops_words {
    uint64_t arrived[IRIS_OPS_WORDS_MOST]; /* 0, IRIS_OPS_ARRIVED, or more */
};

/* The value of a word that has come. A larger one has a status added, as a
 * positive number: the call failed on that rank. */
#define IRIS_OPS_ARRIVED 1
#define IRIS_OPS_CALL_FAILED 18 /* IRIS_COMPARED_FAILED */

struct iris_ops_close_args {
    const int64_t *context;
    struct iris_ops_words *words; /* those of all ranks, then the meeting's */
    uint64_t ranks;
    uint64_t what; /* the call, for messages (struct iris_dev_call) */
};

/* out = the sum over the members: rows of `columns` elements. Each member's
 * rows are contiguous; the next member's begin `pitch` bytes later. */
struct iris_ops_sum_args {
    const void *in;
    void *out;
    uint64_t pitch;
    uint64_t members;
    uint64_t rows;
    uint64_t columns;
    int64_t out_row; /* elements from one row of out to the next */
};

#endif /* IRIS_DEVICE_KERNELS_OPS_ARGS_H */
