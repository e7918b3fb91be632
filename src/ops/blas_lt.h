/* SPDX-License-Identifier: MIT
 *
 * Products by cuBLASLt and by hipBLASLt, which has the same calls with other
 * names. A dialect describes the differences.
 */
#ifndef IRIS_SRC_OPS_BLAS_LT_H
#define IRIS_SRC_OPS_BLAS_LT_H

#include "ops/blas_vendor.h"

/* Size of an algorithm in the result of the library's heuristics. */
#define IRIS_LT_RESULT_BYTES 96

/* One library's names, and the values of its enums. Static and const. */
struct iris_lt_dialect {
    const char *name;   /* for people */
    const char *prefix; /* prefix of functions */
    struct iris_blas_places places;

    /* The result of a heuristic has three parts: an algorithm, a size_t with
     * the bytes of workspace, and a status. */
    size_t algorithm_bytes;

    int type_f32;
    int type_f16;
    int type_bf16;
    int compute_f32; /* sums in f32, without TF32 */
    int op_none;
    int op_transpose;
    int desc_trans_a;
    int desc_trans_b;
    int desc_epilogue;
    int desc_bias;
    int desc_bias_type;
    int epilogue_bias;
    int pref_workspace;
    int pref_alignment[4]; /* for A, B, C and D; -1: not supported */
    /* The mask of allowed ways to add the parts of a sum over k, and the value
     * that allows them in f32 only. -1: the library has no such mask. */
    int pref_reduction;
    uint32_t reduction_f32;

    int status_no_memory;
    int status_invalid;
    int status_unsupported;
    const char *const *status_names; /* number: `num_statuses`; NULL: no such
                                      * status */
    int num_statuses;
};

/* Slots of struct iris_blas. A state is a handle and the chosen algorithms.
 * Only open() uses the dialect. */
iris_status_t iris_i_lt_open(const struct iris_lt_dialect *dialect,
                             void **state_p, char *why);
void iris_i_lt_close(void *state);
void iris_i_lt_describe(void *state, char *text);
iris_status_t iris_i_lt_product(void *state,
                                const struct iris_blas_product *what,
                                void *stream, char *why);

#endif /* IRIS_SRC_OPS_BLAS_LT_H */
