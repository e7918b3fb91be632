/* SPDX-License-Identifier: MIT
 *
 * Elements of the factors, and the expected products and sums.
 */
#ifndef IRIS_BENCH_FUSED_VALUES_H
#define IRIS_BENCH_FUSED_VALUES_H

#include <stdint.h>

#include <iris/iris.h>

/* Elements of a product, or of the sum of several ranks' products. They repeat
 * after FUSED_ROWS rows and after FUSED_COLUMNS columns. */
enum { FUSED_ROWS = 13, FUSED_COLUMNS = 11 };
struct fused_sums {
    int at[FUSED_ROWS][FUSED_COLUMNS];
};

/* Fill dense matrices on the host with the rank's a and b. */
void fused_fill_a(const iris_tensor_t *a, int rank);
void fused_fill_b(const iris_tensor_t *b, int rank);

/* Adds the product of one rank's a and another's b, of depth k. */
void fused_add(struct fused_sums *sums, int rank_a, int rank_b, int64_t k);

/* Counts the wrong elements of dense rows on the host. The rows begin at row
 * `first` of the product. */
uint64_t fused_wrong(const struct fused_sums *sums, const iris_tensor_t *rows,
                     int64_t first);

#endif /* IRIS_BENCH_FUSED_VALUES_H */
