/* SPDX-License-Identifier: MIT
 *
 * What products and their sums are made of, and what they must come to.
 */
#ifndef IRIS_BENCH_FUSED_VALUES_H
#define IRIS_BENCH_FUSED_VALUES_H

#include <stdint.h>

#include <iris/iris.h>

/* A product's elements, or sums of such of several ranks: they repeat after as
 * many rows and columns. */
enum { FUSED_ROWS = 13, FUSED_COLUMNS = 11 };
struct fused_sums {
    int at[FUSED_ROWS][FUSED_COLUMNS];
};

/* Fills dense matrices on the host with what the rank has in a and b. */
void fused_fill_a(const iris_tensor_t *a, int rank);
void fused_fill_b(const iris_tensor_t *b, int rank);

/* Adds the product of one rank's a and another's b, of depth k. */
void fused_add(struct fused_sums *sums, int rank_a, int rank_b, int64_t k);

/* How many elements are wrong in dense rows on the host, which are the
 * product's from `first` on. */
uint64_t fused_wrong(const struct fused_sums *sums, const iris_tensor_t *rows,
                     int64_t first);

#endif /* IRIS_BENCH_FUSED_VALUES_H */
