/* SPDX-License-Identifier: MIT
 *
 * One point of a fused operation: its matrices, its collective, and the check
 * of its results.
 */
#ifndef IRIS_BENCH_FUSED_POINTS_H
#define IRIS_BENCH_FUSED_POINTS_H

#include "bench.h"

enum op { ALL_REDUCE, ALL_GATHER_FIRST, ALL_GATHER, REDUCE_SCATTER };

/* The ways that are timed in alternation. All but the first are references. */
enum way {
    FUSED,
    UNFUSED = 1 + BENCH_UNFUSED,
    PRODUCT = 1 + BENCH_PRODUCT,
    COLLECTIVE = 1 + BENCH_COLLECTIVE,
    PEER = 1 + BENCH_PEER
};

struct fused {
    iris_group_t *self; /* this rank alone: its operations are products */
    char *a;            /* on the heap, like b, out and kept */
    char *b;
    char *out;
    char *kept; /* gathered rows of a, or products to be summed */
    char *host;
    bench_cblas_fn cblas; /* NULL: the peer uses our product */
    char peer[96];
};

struct point {
    enum op op;
    const struct bench_shape *shape;
    iris_tensor_t a; /* the fused operation's matrices */
    iris_tensor_t b;
    iris_tensor_t out;
    iris_tensor_t product_a; /* the separate product's matrices */
    iris_tensor_t product_out;
    struct bench_ccl ccl;   /* after or before the product */
    struct bench_ccl alone; /* the same between buffers that stay finite */
};

/* Makes the point of a row, with the buffers of the open group. */
struct point fused_point(const struct bench *b, enum op op,
                         const struct bench_row *row);

/* Fills a and b. Waits. */
iris_status_t fused_fill(struct bench *b, const struct point *p);

/* Counts the wrong elements that one way has left. Waits. */
iris_status_t fused_check(struct bench *b, const struct point *p, enum way way,
                          uint64_t *wrong_p);

#endif /* IRIS_BENCH_FUSED_POINTS_H */
