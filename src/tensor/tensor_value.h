/* SPDX-License-Identifier: MIT
 *
 * Converts numbers in calls to elements of a dtype.
 */
#ifndef IRIS_SRC_TENSOR_TENSOR_VALUE_H
#define IRIS_SRC_TENSOR_TENSOR_VALUE_H

#include <iris/tensor.h>

#include "base/error.h"

/* A number passed as the argument `name`. */
struct iris_argument {
    const struct iris_log *log;
    const char *call;
    const char *name;
    iris_value_t value;
};

/* Converts it to an element, as iris_full() does. IRIS_ERR_INVALID */
iris_status_t iris_i_value_convert(const struct iris_argument *argument,
                                   iris_dtype_t dtype, void *element_p);
int iris_i_value_is_whole(iris_value_t value);

static inline int iris_i_dtype_is_complex(iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_COMPLEX64 || dtype == IRIS_DTYPE_COMPLEX128;
}

/* Tensors of these are filled and copied, and have no other kernels. */
static inline int iris_i_dtype_is_float8(iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F8E4M3 || dtype == IRIS_DTYPE_F8E5M2;
}

/* An integer's bits, sign-extended. */
uint64_t iris_i_element_bits(const void *element, iris_dtype_t dtype);

/* A number as a double; for a complex element, part 0 or 1. */
double iris_i_element_part(const void *element, iris_dtype_t dtype, int part);

#endif /* IRIS_SRC_TENSOR_TENSOR_VALUE_H */
