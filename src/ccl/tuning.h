/* SPDX-License-Identifier: MIT
 *
 * The tuning file: rules that name the best variant, and rates of the machine.
 */
#ifndef IRIS_SRC_CCL_TUNING_H
#define IRIS_SRC_CCL_TUNING_H

#include "ccl/ccl_types.h"

/* The best variant of an operation on such a device, for at most this number of
 * members and bytes (of `count` elements). */
struct iris_ccl_rule {
    enum iris_ccl_op op;
    int on_gpu;
    int members; /* the maximum; -4: exactly four */
    size_t bytes;
    iris_ccl_variant_t variant; /* IRIS_CCL_AUTO: the table's variant */
    int cus;                    /* most workgroups; 0: as many as are useful */
};

/* Rates from which fused operations are planned (ops/ops_rates.h): constant and
 * name in the file. */
#define IRIS_RATE_ROWS(X)                                                      \
    X(PRODUCT, "product") /* TFLOP/s of a product of `size` operations */      \
    X(LINK, "link")       /* GB/s that a rank sends to all its peers */        \
    X(PAIR, "pair")       /* GB/s that it sends to one of them */              \
    X(MEMORY, "memory")   /* GB/s at which a kernel reads and adds */          \
    X(LAUNCH, "launch")   /* us from one kernel of a stream to the next */     \
    X(SIGNAL, "signal")   /* us of a barrier of all ranks on a stream */       \
    X(HIDDEN, "hidden") /* fraction of the shorter time that overlap hides */  \
    X(HIDDEN_SUMS, "hidden_all_reduce") /* this fraction, for an all_reduce */ \
    X(CHUNK, "chunk") /* us that another chunk costs for each peer */          \
    X(MOST, "most")   /* most chunks of a call */
enum iris_rate_kind {
#define IRIS_RATE_KIND(NAME, name) IRIS_RATE_##NAME,
    IRIS_RATE_ROWS(IRIS_RATE_KIND)
#undef IRIS_RATE_KIND
        IRIS_RATE_KINDS
};

struct iris_rate {
    enum iris_rate_kind kind;
    int on_gpu;
    iris_dtype_t dtype; /* element type of a product */
    double size;        /* size of a product: operations, 2 M N K */
    double value;
};

/* The contents of a tuning file. They take precedence over the library's own
 * values. */
struct iris_ccl_tuning {
    struct iris_extension extension; /* attached to the context */
    struct iris_ccl_rule *rules;
    size_t count;
    struct iris_rate *rates;
    size_t num_rates;
    uint64_t hash; /* equal on members with the same lines */
};

/* The contents of the file that IRIS_CCL_TUNING names, read once; empty without
 * a file. IRIS_ERR_CONFIG names the wrong line. */
iris_status_t iris_i_ccl_tuning(iris_t *iris,
                                struct iris_ccl_tuning **tuning_p);

#endif /* IRIS_SRC_CCL_TUNING_H */
