/* SPDX-License-Identifier: MIT
 *
 * The arguments of the kernels of ops_chunk.h and ops_fused.h.
 */
#ifndef IRIS_DEVICE_KERNELS_OPS_ARGS_H
#define IRIS_DEVICE_KERNELS_OPS_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include <iris/device/kernels/matmul_args.h>
#include <iris/device/layout.h>

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

/* ---- One kernel for product and transport ---- */

/* The most members of such a call, and flags for a member's transport. */
#define IRIS_OPS_FUSED_MEMBERS 64
#define IRIS_OPS_FUSED_SLOTS 256

/* The calls of this rank and another one. They do not depend on the group. Each
 * rank counts alike, so a flag with the number of a call is never cleared. */
struct iris_ops_meeting {
    uint64_t ended; /* number of calls; this rank writes it */
    uint64_t begun; /* number of calls; the other rank writes it and the rest */
    struct iris_dev_call call[2];           /* the latest two */
    uint64_t arrived[IRIS_OPS_FUSED_SLOTS]; /* the call whose part has come */
};

/* A rank's own words, 0 between calls. */
struct iris_ops_progress {
    uint64_t left;                        /* workgroups that are done */
    uint64_t ready[IRIS_OPS_FUSED_SLOTS]; /* products in `partial` */
};

/* out = a * b + bias, m rows of n columns. `depth` elements of k make one of
 * its `parts`; each workgroup multiplies a tile in one part at a time. */
struct iris_ops_fused_args {
    const int64_t *context;
    struct iris_ops_meeting *meetings; /* of all ranks */
    struct iris_ops_progress *progress;
    struct iris_dev_call call;
    struct iris_d_matrix a; /* this member's own */
    struct iris_d_matrix b;
    struct iris_d_matrix bias; /* data NULL: no bias */
    void *kept; /* the gathered `a`; or each member's product, to be added */
    float *partial; /* a tile for each part of each tile of the product */
    void *out;
    int64_t out_row;
    uint32_t m;
    uint32_t n;
    uint32_t k;
    uint32_t parts;
    uint32_t depth;
    uint32_t block;    /* rows of `a` that are sent at a time */
    uint32_t per_slot; /* tiles with one flag */
    uint32_t pushers;  /* the first workgroups send `a`; 0: nothing to gather */
    uint32_t products; /* the next ones multiply, all others finish */
    uint32_t by_column; /* members have columns of `a` */
    uint32_t in_order;
    uint32_t members;
    uint32_t index;
    int32_t ranks[IRIS_OPS_FUSED_MEMBERS];
};

#endif /* IRIS_DEVICE_KERNELS_OPS_ARGS_H */
