/* SPDX-License-Identifier: MIT
 *
 * One point of a fused operation: its matrices, its collective, and what they
 * must come to.
 */
#ifndef IRIS_BENCH_FUSED_POINTS_H
#define IRIS_BENCH_FUSED_POINTS_H

#include "bench.h"

enum op { ALL_REDUCE, ALL_GATHER_FIRST, ALL_GATHER, REDUCE_SCATTER };

/* What is measured in alternation; from the second on references. */
enum way {
    FUSED,
    UNFUSED = 1 + BENCH_UNFUSED,
    PRODUCT = 1 + BENCH_PRODUCT,
    COLLECTIVE = 1 + BENCH_COLLECTIVE,
    PEER = 1 + BENCH_PEER
};

struct fused {
    iris_group_t *self; /* this rank alone, whose operations are products */
    char *a;            /* on the heap, as the next ones */
    char *b;
    char *out;
    char *kept; /* gathered rows of a, or products to be summed */
    char *host;
    bench_cblas_fn cblas; /* NULL: the peer's product is ours */
    char peer[96];
};

struct point {
    enum op op;
    const struct bench_shape *shape;
    iris_tensor_t a; /* of the fused operation */
    iris_tensor_t b;
    iris_tensor_t out;
    iris_tensor_t product_a; /* of the product that is apart */
    iris_tensor_t product_out;
    struct bench_ccl ccl;   /* after or before it */
    struct bench_ccl alone; /* between buffers that stay finite */
};

/* The point of a row, between the buffers of the group, which is open. */
struct point fused_point(const struct bench *b, enum op op,
                         const struct bench_row *row);

/* Fills a and b. Waits. */
iris_status_t fused_fill(struct bench *b, const struct point *p);

/* Counts what is wrong of what a way has left. Waits. */
iris_status_t fused_check(struct bench *b, const struct point *p, enum way way,
                          uint64_t *wrong_p);

#endif /* IRIS_BENCH_FUSED_POINTS_H */
