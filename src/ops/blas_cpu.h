/* SPDX-License-Identifier: MIT
 *
 * The kernel that a product by a CPU library is.
 */
#ifndef IRIS_SRC_OPS_BLAS_CPU_H
#define IRIS_SRC_OPS_BLAS_CPU_H

#include "backend/backend.h"
#include "ops/blas.h"

struct iris_blas_cpu_args {
    const struct iris_blas *blas;
    void *state;
    struct iris_backend *backend; /* whose fault it is if memory is short */
    struct iris_blas_product what;
};

/* To be launched with a grid and a block of 1. */
const struct iris_kernel *iris_i_blas_kernel(void);

/* Whether sizes are such as libraries can count. */
int iris_i_blas_takes(const struct iris_blas_product *what);

#endif /* IRIS_SRC_OPS_BLAS_CPU_H */
