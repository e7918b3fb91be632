/* SPDX-License-Identifier: MIT
 *
 * Shared by the files of src/tensor: kernels and their launches, in C and in
 * C++ for GPUs.
 */
#ifndef IRIS_SRC_TENSOR_KERNELS_H
#define IRIS_SRC_TENSOR_KERNELS_H

#include <iris/device/kernels/random_args.h>
#include <iris/types.h>

/* ---- tensor_kernels.c ---- */

/* The arguments of each are in <iris/device/kernels/fill_args.h>. */
enum iris_tensor_op {
    IRIS_TENSOR_FILL,
    IRIS_TENSOR_FILL_STRIDED,
    IRIS_TENSOR_COPY_STRIDED,
    IRIS_TENSOR_ARANGE,
    IRIS_TENSOR_LINSPACE,
};

/* The last two by dtype; complex elements are two rows. NULL: not supported. */
const struct iris_kernel *iris_i_tensor_kernel(enum iris_tensor_op op,
                                               iris_dtype_t dtype);

/* ---- random_kernels.c ---- */

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

#endif /* IRIS_SRC_TENSOR_KERNELS_H */
