/* SPDX-License-Identifier: MIT
 *
 * The arguments of the kernels of ops_chunk.h.
 */
#ifndef IRIS_DEVICE_KERNELS_OPS_ARGS_H
#define IRIS_DEVICE_KERNELS_OPS_ARGS_H

#include <stddef.h>
#include <stdint.h>

/* The most chunks of a call. */
#define IRIS_OPS_CHUNKS_MOST 8

/* The most ranks that one kernel waits for. */
#define IRIS_OPS_RANKS_MOST 64

/* The words of one rank for another rank: how often it has sent each chunk to
 * that rank, and awaited each chunk from it. They only grow, and each launch
 * counts, so a graph may be launched many times. They do not depend on the
 * group. */
struct iris_ops_words {
    uint64_t sent[IRIS_OPS_CHUNKS_MOST];    /* to that rank */
    uint64_t awaited[IRIS_OPS_CHUNKS_MOST]; /* from it */
    uint64_t arrived[IRIS_OPS_CHUNKS_MOST]; /* that rank writes here how
                                             * often it has sent each chunk */
    uint64_t hello; /* this rank's word for the collective that begins a call */
};

struct iris_ops_signal_args {
    const int64_t *context;
    struct iris_ops_words *words; /* the words of all ranks, symmetric */
    int32_t rank;
    int32_t to_rank;
    uint32_t chunk;
    uint32_t failed; /* not 0: the chunk never arrives, because the call failed
                      * here; then a status as a positive number */
};

/* The bits of `arrived` above the count have such a status. */
#define IRIS_OPS_FAILED_SHIFT 48
#define IRIS_OPS_CALL_FAILED 18 /* IRIS_COMPARED_FAILED */

struct iris_ops_wait_args {
    const int64_t *context;
    struct iris_ops_words *words;
    uint32_t chunk;
    uint32_t count;
    uint64_t what; /* the call, for messages (struct iris_dev_call) */
    int32_t ranks[IRIS_OPS_RANKS_MOST];
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
