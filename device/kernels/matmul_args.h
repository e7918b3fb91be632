/* SPDX-License-Identifier: MIT
 *
 * The arguments of the kernels of matmul.h. The host shares this header.
 */
#ifndef IRIS_DEVICE_KERNELS_MATMUL_ARGS_H
#define IRIS_DEVICE_KERNELS_MATMUL_ARGS_H

#include <stdint.h>

/* Element (i, j) is at data + i * row + j * col elements. */
struct iris_d_matrix {
    const void *data;
    int64_t row;
    int64_t col;
};

/* out = a * b + bias: m rows of n columns, each the sum of k products. */
struct iris_matmul_args {
    struct iris_d_matrix a;
    struct iris_d_matrix b;
    struct iris_d_matrix bias; /* data NULL: no bias */
    void *out;                 /* its rows are contiguous */
    int64_t out_row;
    uint64_t m;
    uint64_t n;
    uint64_t k;
};

#endif /* IRIS_DEVICE_KERNELS_MATMUL_ARGS_H */
