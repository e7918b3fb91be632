/* SPDX-License-Identifier: MIT
 *
 * Calls that members of a group compare: their packed format, and the message
 * about two that differ.
 */
#ifndef IRIS_SRC_BACKEND_MISMATCH_H
#define IRIS_SRC_BACKEND_MISMATCH_H

#include <stddef.h>

#include <iris/device/layout.h>
#include <iris/status.h>

/* The public functions: X(NAME, name). The collectives are in the order of enum
 * iris_ccl_op; those after the broadcast start at REDUCE. The products are in
 * the order of enum iris_ops_op. Programs contain the value of GATHER. */
#define IRIS_COMPARED_ROWS(X)                              \
    X(ALL_REDUCE, "iris_all_reduce")                       \
    X(ALL_GATHER, "iris_all_gather")                       \
    X(REDUCE_SCATTER, "iris_reduce_scatter")               \
    X(ALL_TO_ALL, "iris_all_to_all")                       \
    X(BROADCAST, "iris_ccl_broadcast")                     \
    X(MATMUL_ALL_REDUCE, "iris_matmul_all_reduce")         \
    X(ALL_GATHER_MATMUL, "iris_all_gather_matmul")         \
    X(MATMUL_ALL_GATHER, "iris_matmul_all_gather")         \
    X(MATMUL_REDUCE_SCATTER, "iris_matmul_reduce_scatter") \
    X(GATHER, "iris_wg_gather") /* for workgroups */       \
    X(REDUCE, "iris_reduce")                               \
    X(GATHER_TO, "iris_gather")                            \
    X(SCATTER_FROM, "iris_scatter")                        \
    X(ALL_GATHERV, "iris_all_gatherv")                     \
    X(ALL_TO_ALLV, "iris_all_to_allv")                     \
    X(SEND, "iris_send")                                   \
    X(RECV, "iris_recv")                                   \
    X(SEND_RECV, "iris_send_recv")                         \
    X(FAILED, "a call that failed") /* sizes[0]: -status */

enum iris_compared_op {
#define IRIS_COMPARED_ENUM(NAME, name) IRIS_COMPARED_##NAME,
    IRIS_COMPARED_ROWS(IRIS_COMPARED_ENUM)
#undef IRIS_COMPARED_ENUM
        IRIS_COMPARED_NUM_OPS,
};

/* A call. struct iris_dev_call has the parts that fit. */
struct iris_compared {
    int op; /* enum iris_compared_op */
    int dtype;
    int reduce;
    int variant;
    int root;          /* of a product: number of chunks */
    uint64_t sizes[3]; /* count, rows and bits of the scale; bytes of messages,
                        * or for all_gatherv a hash of the counts; or M, N and K
                        * of a product */
};

struct iris_dev_call iris_i_compared_pack(const struct iris_compared *call);

/* Sets the message of IRIS_ERR_MISMATCH and returns it. For a workspace that
 * was left in the middle of a step, it is IRIS_ERR_INVALID; for a call that
 * failed on a member, that member's status. */
iris_status_t iris_i_mismatch_describe(const struct iris_dev_mismatch *mismatch,
                                       char *text, size_t bytes);

#endif /* IRIS_SRC_BACKEND_MISMATCH_H */
