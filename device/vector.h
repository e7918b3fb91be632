/* SPDX-License-Identifier: MIT
 *
 * What a CPU does by the vector and no compiler makes of plain code: builtins,
 * as in atomic.h, but of single CPUs, which are asked for them.
 */
#ifndef IRIS_DEVICE_VECTOR_H
#define IRIS_DEVICE_VECTOR_H

#include <iris/device/half.h>

#if IRIS_ON_CPU && IRIS_ON_X86
/* Vectors of 32 bytes. All CPUs that have them convert f16, too, which not
 * every compiler can ask for. */
IRIS_DEVICE iris_bool_t iris_d_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

typedef float iris_d_float8_t
    __attribute__((vector_size(32), may_alias, aligned(4)));
typedef short iris_d_short8_t
    __attribute__((vector_size(16), may_alias, aligned(2)));

/* iris_f16_from_f32() of `count` floats. */
IRIS_D_AVX2 void iris_d_f16_row_avx2(iris_f16_t *to, const float *from,
                                     int32_t count)
{
    int32_t k = 0;

    for (; k + 8 <= count; k += 8) {
        *(iris_d_short8_t *)(to + k) = __builtin_ia32_vcvtps2ph256(
            *(const iris_d_float8_t *)(from + k), 0);
    }
    for (; k < count; k++) {
        to[k] = iris_f16_from_f32(from[k]);
    }
}
#endif

#endif /* IRIS_DEVICE_VECTOR_H */
