/* SPDX-License-Identifier: MIT
 *
 * The kernels of tensors, by name. C and C++: tensor_kernels.c is compiled for
 * GPUs, too.
 */
#ifndef IRIS_SRC_TENSOR_TENSOR_KERNELS_H
#define IRIS_SRC_TENSOR_TENSOR_KERNELS_H

#include <iris/types.h>

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

#endif /* IRIS_SRC_TENSOR_TENSOR_KERNELS_H */
