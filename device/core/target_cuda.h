/* SPDX-License-Identifier: MIT
 *
 * NVIDIA's GPUs as a target: nvcc. compat.h explains the names.
 */
#ifndef IRIS_DEVICE_TARGET_CUDA_H
#define IRIS_DEVICE_TARGET_CUDA_H

#if !defined(__NVCC__)
#error "Iris kernels for NVIDIA GPUs need nvcc"
#elif __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1208
#error "Iris kernels for NVIDIA GPUs need nvcc 12.8 or later"
#endif

#define IRIS_HOST_DEVICE __host__ __device__ static __forceinline__
#define IRIS_DEVICE __device__ static __forceinline__
#define IRIS_DEVICE_LARGE __device__ static inline
#define IRIS_DEVICE_APART __device__ static inline __noinline__
#define IRIS_DEVICE_CALLED IRIS_DEVICE_APART
#define IRIS_D_CALLS 1

/* A poll takes about a microsecond and a check about three. The deadlines that
 * they check are milliseconds. */
#define IRIS_D_WATCHED 1
#define IRIS_D_NOTES 1
#define IRIS_D_POLLS_PER_CHECK 1024u
#define IRIS_D_CAN_TRACE 1
#define IRIS_D_PAUSED() ((void)0)

/* f16 conversions exist on all GPUs, bf16 conversions and matrix instructions
 * since Ampere, half fences since Hopper. */
#if defined(__CUDA_ARCH__)
#define IRIS_D_HALF_FENCES (__CUDA_ARCH__ >= 900)
#define IRIS_D_CONVERTS_F16 1
#define IRIS_D_CONVERTS_BF16 (__CUDA_ARCH__ >= 800)
#define IRIS_D_HAS_MMA (__CUDA_ARCH__ >= 800)
#else
#define IRIS_D_HALF_FENCES 0
#define IRIS_D_CONVERTS_F16 0
#define IRIS_D_CONVERTS_BF16 0
#define IRIS_D_HAS_MMA 0
#endif

/* Loads wait for no stores here. More than four under way were no faster. */
#define IRIS_D_BULK_DEPTH 0
#define IRIS_D_BULK_MAX_DEPTH 12
#define IRIS_D_UNROLL _Pragma("unroll")
#define IRIS_D_BLOCK_SUMS 1

IRIS_DEVICE float iris_d_product_f32(float a, float b)
{
    return __fmul_rn(a, b);
}

IRIS_DEVICE double iris_d_product_f64(double a, double b)
{
    return __dmul_rn(a, b);
}

IRIS_DEVICE float iris_d_fused_f32(float a, float b, float c)
{
    return __fmaf_rn(a, b, c);
}

IRIS_DEVICE double iris_d_fused_f64(double a, double b, double c)
{
    return __fma_rn(a, b, c);
}

#define IRIS_D_MAX_LANES(n) __launch_bounds__(n)

#endif /* IRIS_DEVICE_TARGET_CUDA_H */
