/* SPDX-License-Identifier: MIT
 *
 * The kernel that runs a product by a CPU library.
 */
#ifndef IRIS_SRC_OPS_BLAS_CPU_H
#define IRIS_SRC_OPS_BLAS_CPU_H

#include "backend/backend.h"
#include "ops/blas.h"

struct iris_blas_cpu_args {
    const struct iris_blas *blas;
    void *state;
    struct iris_backend *backend; /* reports a lack of memory */
    struct iris_blas_product what;
};

/* To be launched with a grid and a block of 1. */
const struct iris_kernel *iris_i_blas_kernel(void);

/* Whether the sizes fit into the libraries' integers. */
int iris_i_blas_takes(const struct iris_blas_product *what);

#endif /* IRIS_SRC_OPS_BLAS_CPU_H */
