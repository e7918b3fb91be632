/* SPDX-License-Identifier: MIT
 *
 * The only file that asks which compiler this is. It tests the language, never
 * the compilation pass, so host and device pass of one file see the same code.
 */
#ifndef IRIS_DEVICE_COMPAT_H
#define IRIS_DEVICE_COMPAT_H

#include <stddef.h>
#include <stdint.h>

/* The target kernels are compiled for; exactly one is 1. HIP's NVIDIA platform
 * runs nvcc and counts as CUDA. */
#if defined(__CUDACC__)
#if !defined(__NVCC__)
#error "Iris kernels for NVIDIA GPUs need nvcc"
#elif __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1208
#error "Iris kernels for NVIDIA GPUs need nvcc 12.8 or later"
#endif
#define IRIS_ON_CPU 0
#define IRIS_ON_HIP 0
#define IRIS_ON_CUDA 1
#elif defined(__HIPCC__)
#define IRIS_ON_CPU 0
#define IRIS_ON_HIP 1
#define IRIS_ON_CUDA 0
#elif defined(__GNUC__) || defined(__clang__)
#define IRIS_ON_CPU 1
#define IRIS_ON_HIP 0
#define IRIS_ON_CUDA 0
#else
#error "Iris knows gcc, clang, hipcc and nvcc; add this compiler here"
#endif

/* The wait in iris_i_wg_barrier() is right for gfx9 only: later families count
 * stores apart from loads. Only the device pass knows the GPU, so only there
 * can this be said. */
#if defined(__HIP_DEVICE_COMPILE__) && !IRIS_ON_CUDA &&                     \
    !defined(__gfx900__) && !defined(__gfx906__) && !defined(__gfx908__) && \
    !defined(__gfx90a__) && !defined(__gfx940__) && !defined(__gfx941__) && \
    !defined(__gfx942__) && !defined(__gfx950__)
#error "Iris supports AMD Instinct GPUs of family gfx9; add this one's barrier"
#endif

/* IRIS_DEVICE: a function that kernels call, small enough to be inlined always
 * (constants of its caller must reach the builtins). IRIS_DEVICE_LARGE: one
 * that the compiler may leave out of line. IRIS_HOST_DEVICE: host code may call
 * it too. */
#define IRIS_UNUSED __attribute__((unused))
#if IRIS_ON_CPU
#if defined(__OPTIMIZE__) /* without, inlining only costs time */
#define IRIS_DEVICE static inline __attribute__((always_inline, unused))
#else
#define IRIS_DEVICE static inline __attribute__((unused))
#endif
#define IRIS_HOST_DEVICE IRIS_DEVICE
#define IRIS_DEVICE_LARGE static inline __attribute__((unused))
#define IRIS_CPU_COLD static __attribute__((cold, noinline, unused))
/* A function whose result depends on its arguments only, and that compilers may
 * not look into and find otherwise: weak, one for each program. */
#define IRIS_CPU_CONST \
    __attribute__((const, weak, noinline, nothrow, visibility("hidden")))
#elif IRIS_ON_HIP
#define IRIS_HOST_DEVICE \
    __host__ __device__ static inline __attribute__((always_inline, unused))
#define IRIS_DEVICE \
    __device__ static inline __attribute__((always_inline, unused))
#define IRIS_DEVICE_LARGE __device__ static inline __attribute__((unused))
#else
#define IRIS_HOST_DEVICE __host__ __device__ static __forceinline__
#define IRIS_DEVICE __device__ static __forceinline__
#define IRIS_DEVICE_LARGE __device__ static inline
#endif

/* Whether waits look at struct iris_dev_watch: on GPUs, and where the fake HIP
 * runtime of our tests runs a kernel's CPU version in a GPU's place. */
#if IRIS_ON_CPU && !defined(IRIS_I_STAND_IN)
#define IRIS_I_WATCHED 0
#else
#define IRIS_I_WATCHED 1
#endif

/* Whether the GPU has fences that only acquire, without a memory barrier, or
 * only release: NVIDIA's have since Hopper. */
#if IRIS_ON_CUDA && defined(__CUDA_ARCH__)
#define IRIS_I_HALF_FENCES (__CUDA_ARCH__ >= 900)
#else
#define IRIS_I_HALF_FENCES 0
#endif

/* A kernel's attribute: how many lanes a workgroup of it may have. HIP's own
 * name for it is in hip_runtime.h, which images are compiled without. */
#if IRIS_ON_HIP
#define IRIS_I_MAX_LANES(n) __attribute__((amdgpu_flat_work_group_size(1, n)))
#elif IRIS_ON_CUDA
#define IRIS_I_MAX_LANES(n) __launch_bounds__(n)
#endif

#define IRIS_UNLIKELY(condition) __builtin_expect((condition) ? 1 : 0, 0)

#ifdef __cplusplus
#define IRIS_STATIC_ASSERT(condition, text) static_assert(condition, text)
typedef bool iris_bool_t;
#else
#define IRIS_STATIC_ASSERT(condition, text) _Static_assert(condition, text)
typedef _Bool iris_bool_t; /* so that a wide mask is never cut short */
#endif

/* Values travel as the low bytes of a 64-bit word. */
IRIS_STATIC_ASSERT(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
                   "Iris is for little-endian machines");

/* Set where ThreadSanitizer watches. It does not understand fences. */
#if defined(__SANITIZE_THREAD__)
#define IRIS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define IRIS_TSAN 1
#endif
#endif
#ifndef IRIS_TSAN
#define IRIS_TSAN 0
#endif

/* The CPU has x86's pause instruction, or Arm's yield. */
#if defined(__x86_64__) || defined(__i386__)
#define IRIS_ON_X86 1
#else
#define IRIS_ON_X86 0
#endif
#if defined(__aarch64__)
#define IRIS_ON_ARM64 1
#else
#define IRIS_ON_ARM64 0
#endif

#endif /* IRIS_DEVICE_COMPAT_H */
