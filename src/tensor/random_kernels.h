/* SPDX-License-Identifier: MIT
 *
 * The library's kernels that make random numbers. C and C++:
 * random_kernels.c is compiled for GPUs, too.
 */
#ifndef IRIS_SRC_TENSOR_RANDOM_KERNELS_H
#define IRIS_SRC_TENSOR_RANDOM_KERNELS_H

#include <iris/types.h>

#include <iris/device/kernels/random_args.h>

enum iris_random_kind {
    IRIS_RANDOM_UNIFORM,
    IRIS_RANDOM_NORMAL,
    IRIS_RANDOM_INTEGER,      /* ranges up to 2^32 */
    IRIS_RANDOM_WIDE_INTEGER, /* all ranges; not all dtypes need them */
};

struct iris_random_kernel {
    const struct iris_kernel *kernel;
    uint64_t per_block;
};

/* The kernel that fills elements of a dtype, from its struct iris_random_args;
 * NULL: not supported. Complex dtypes use that of their parts. */
struct iris_random_kernel iris_i_random_kernel(enum iris_random_kind kind,
                                               iris_dtype_t dtype);

#endif /* IRIS_SRC_TENSOR_RANDOM_KERNELS_H */
