/* SPDX-License-Identifier: MIT
 *
 * The tuning file: rules of which variant is best, and rates of the machine.
 */
#ifndef IRIS_SRC_CCL_TUNING_H
#define IRIS_SRC_CCL_TUNING_H

#include "ccl/ccl_types.h"

/* What is best for an operation on such a device, in groups of at most so many
 * members and for at most so many bytes (of `count` elements). */
struct iris_ccl_rule {
    enum iris_ccl_op op;
    int on_gpu;
    int members; /* at most; -4: four and no fewer */
    size_t bytes;
    iris_ccl_variant_t variant; /* IRIS_CCL_AUTO: the table's */
    int cus; /* workgroups at most; 0: as many as are worth it */
};

/* Rates by which fused operations are planned (ops/ops_rates.h): name, unit. */
#define IRIS_RATE_ROWS(X)                                                    \
    X(PRODUCT, "product") /* TFLOP/s of a product of `size` operations */    \
    X(LINK, "link")       /* GB/s that a rank sends to all its peers */      \
    X(PAIR, "pair")       /* GB/s that it sends to one of them */            \
    X(MEMORY, "memory")   /* GB/s that a kernel reads and adds */            \
    X(LAUNCH, "launch")   /* us from kernel to kernel of a stream */         \
    X(SIGNAL, "signal")   /* us of a barrier of all ranks on a stream */     \
    X(HIDDEN, "hidden")   /* share of the shorter time that overlap hides */ \
    X(HIDDEN_SUMS, "hidden_all_reduce") /* this share, for an all_reduce */  \
    X(CHUNK, "chunk") /* us that a further chunk costs for each peer */      \
    X(MOST, "most")   /* chunks that a call may have */
enum iris_rate_kind {
#define IRIS_RATE_KIND(NAME, name) IRIS_RATE_##NAME,
    IRIS_RATE_ROWS(IRIS_RATE_KIND)
#undef IRIS_RATE_KIND
        IRIS_RATE_KINDS
};

struct iris_rate {
    enum iris_rate_kind kind;
    int on_gpu;
    iris_dtype_t dtype; /* of a product */
    double size;        /* of a product: operations, 2 M N K */
    double value;
};

/* What a tuning file says, which comes before the library's own. */
struct iris_ccl_tuning {
    struct iris_extension extension; /* of the context */
    struct iris_ccl_rule *rules;
    size_t count;
    struct iris_rate *rates;
    size_t num_rates;
    uint64_t hash; /* the same on all members that have the same lines */
};

/* What the file that IRIS_CCL_TUNING names says, read once; empty without one.
 * IRIS_ERR_CONFIG says which line is wrong. */
iris_status_t iris_i_ccl_tuning(iris_t *iris,
                                struct iris_ccl_tuning **tuning_p);

#endif /* IRIS_SRC_CCL_TUNING_H */
