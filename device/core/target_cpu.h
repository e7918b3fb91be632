/* SPDX-License-Identifier: MIT
 *
 * The CPU as a target: gcc and clang. compat.h explains the names.
 */
#ifndef IRIS_DEVICE_TARGET_CPU_H
#define IRIS_DEVICE_TARGET_CPU_H

#if defined(__OPTIMIZE__) /* without optimisation, inlining only costs time */
#define IRIS_DEVICE static inline __attribute__((always_inline, unused))
#else
#define IRIS_DEVICE static inline __attribute__((unused))
#endif
#define IRIS_HOST_DEVICE IRIS_DEVICE
#define IRIS_DEVICE_LARGE static inline __attribute__((unused))
#define IRIS_DEVICE_APART IRIS_DEVICE
#define IRIS_D_CALLS 0
/* A function that must not be inlined into its callers. */
#define IRIS_CPU_APART static __attribute__((noinline, unused))
#define IRIS_CPU_COLD static __attribute__((cold, noinline, unused))
/* A function whose result depends on its arguments only, and whose body
 * compilers may not see: weak, one for each program. */
#define IRIS_CPU_CONST \
    __attribute__((const, weak, noinline, nothrow, visibility("hidden")))

/* A function compiled for x86 CPUs for which iris_d_has_avx2() is true. */
#define IRIS_D_AVX2 \
    __attribute__((target("avx2,f16c"), noinline, unused)) static
/* A function compiled for CPUs for which iris_d_has_fma() is true. */
#define IRIS_D_FMA \
    __attribute__((target("avx2,f16c,fma"), noinline, unused)) static
/* A function compiled for CPUs for which iris_d_has_avx512() is true. One of
 * its builtins differs between the compilers: gcc's also takes the values of
 * masked lanes, and a mask. */
#define IRIS_D_AVX512 \
    __attribute__((target("avx512f"), noinline, unused)) static
#if defined(__clang__)
#define IRIS_D_MUL512(builtin, type, a, b) builtin(a, b)
#else
#define IRIS_D_MUL512(builtin, type, a, b) builtin##_mask(a, b, (type)(a), 255)
#endif

/* The compiler's own one of two builtins. */
#if defined(__clang__)
#define IRIS_D_GCC_CLANG(gcc, clang) clang
#else
#define IRIS_D_GCC_CLANG(gcc, clang) gcc
#endif

#define IRIS_D_WATCHED 0
#define IRIS_D_NOTES 0
#define IRIS_D_CAN_TRACE 0
#define IRIS_D_PAUSED() ((void)0)
#define IRIS_D_HALF_FENCES 0
#define IRIS_D_CONVERTS_F16 0
#define IRIS_D_CONVERTS_BF16 0
#define IRIS_D_HAS_MMA 0
#define IRIS_D_UNROLL
#define IRIS_D_BLOCK_SUMS 0

IRIS_DEVICE float iris_d_product_f32(float a, float b)
{
    return a * b;
}

IRIS_DEVICE double iris_d_product_f64(double a, double b)
{
    return a * b;
}

/* The image of this object, which iriscc puts there. Its address is NULL in an
 * object without an image. */
#ifdef __cplusplus
extern "C" {
#endif
extern const char iris_i_gpu_image[]
    __attribute__((weak, visibility("hidden")));
#ifdef __cplusplus
}
#endif
#define IRIS_D_GPU_IMAGE(name) iris_i_gpu_image
#define IRIS_D_ENTER(wg) ((void)(wg))
#define IRIS_D_WG_MEMBERS struct iris_cpu_wg *cpu; /* NULL outside a kernel */

#endif /* IRIS_DEVICE_TARGET_CPU_H */
