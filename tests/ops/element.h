/* SPDX-License-Identifier: MIT
 *
 * Elements of matrices of the types that fused operations take.
 */
#ifndef IRIS_TESTS_OPS_ELEMENT_H
#define IRIS_TESTS_OPS_ELEMENT_H

#include <iris/device/core/half.h>
#include <iris/iris.h>

static inline float get(const void *data, iris_dtype_t dtype, int64_t at)
{
    switch (dtype) {
    case IRIS_DTYPE_F16:
        return iris_f16_to_f32(((const iris_f16_t *)data)[at]);
    case IRIS_DTYPE_BF16:
        return iris_bf16_to_f32(((const iris_bf16_t *)data)[at]);
    default:
        return ((const float *)data)[at];
    }
}

static inline void put(void *data, iris_dtype_t dtype, int64_t at, float value)
{
    switch (dtype) {
    case IRIS_DTYPE_F16:
        ((iris_f16_t *)data)[at] = iris_f16_from_f32(value);
        break;
    case IRIS_DTYPE_BF16:
        ((iris_bf16_t *)data)[at] = iris_bf16_from_f32(value);
        break;
    default:
        ((float *)data)[at] = value;
    }
}

#endif /* IRIS_TESTS_OPS_ELEMENT_H */
