/* SPDX-License-Identifier: MIT
 *
 * The compiler, and with it the target. This header tests the language, never
 * the compilation pass, so host and device pass of one file see the same code.
 */
#ifndef IRIS_DEVICE_COMPAT_H
#define IRIS_DEVICE_COMPAT_H

#include <stddef.h>
#include <stdint.h>

/* The target kernels are compiled for; exactly one is 1. HIP's NVIDIA platform
 * runs nvcc and counts as CUDA. */
#if defined(__CUDACC__)
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

/* Kernels of a program compiled with IRIS_FAR as 1 reach ranks of other nodes
 * on GPUs, too. On the CPU they always do. */
#ifndef IRIS_FAR
#define IRIS_FAR 0
#endif

/* Each target defines these names:
 *   IRIS_DEVICE          a function that kernels call, small enough to be
 *                        inlined always (constants of its caller must reach the
 *                        builtins)
 *   IRIS_DEVICE_LARGE    one that the compiler may leave out of line
 *   IRIS_DEVICE_APART    one of what is rare: out of line where a call costs
 *                        the rest no registers (IRIS_D_CALLS is 1)
 *   IRIS_DEVICE_CALLED   one that GPUs call: copies of it in all places would
 *                        take compilers minutes
 *   IRIS_HOST_DEVICE     one that host code may call, too
 *   IRIS_D_WATCHED       1: waits read struct iris_dev_watch
 *   IRIS_D_NOTES         1: waits of a second note themselves there
 *   IRIS_D_POLLS_PER_CHECK  how often they do
 *   IRIS_D_PAUSED()      in a loop that waits, between polls
 *   IRIS_D_FAR_OWN()     the CPU with IRIS_D_WATCHED: the struct iris_cpu_wg of a
 *                        workgroup that the library does not run, or NULL
 *   IRIS_D_CAN_TRACE     1: kernels record their operations themselves
 *   IRIS_D_HALF_FENCES   1: there are fences that only acquire, without a
 *                        memory barrier, or only release
 *   IRIS_D_CONVERTS_F16, IRIS_D_CONVERTS_BF16  1: the target has
 *                        instructions from f32 to f16 and back, and to bf16
 *   IRIS_D_HAS_MMA       1: the target has matrix instructions for f16 and bf16
 *                        (mma.h)
 *   IRIS_D_BULK_DEPTH    GPUs: how many words of 16 bytes a lane of a long bulk
 *                        copy loads in one round; 0: no rounds, four words are
 *                        loaded, then stored
 *   IRIS_D_BULK_MAX_DEPTH  the most of them that iris bench tries
 *   IRIS_D_UNROLL        ahead of a loop that is to be unrolled on GPUs
 *   iris_d_product_f32(), iris_d_product_f64()  a * b, rounded before anything
 *                        is added to it: never a part of a fused multiply-add.
 *                        (gcc on the CPU needs -ffp-contract=off for it.)
 * and for IRIS_KERNEL():
 *   IRIS_D_MAX_LANES(n)  GPUs: how many lanes a workgroup may have
 *   IRIS_D_GPU_IMAGE(name), IRIS_D_ENTER(wg), IRIS_D_WG_MEMBERS  the CPU: the
 *                        kernel's code for GPUs, the beginning of its entry,
 *                        further members of iris_wg_t
 * A program may bring a target of its own for a compiler for CPUs. */
#define IRIS_UNUSED __attribute__((unused))
#ifdef IRIS_TARGET_HEADER
#include IRIS_TARGET_HEADER
#elif IRIS_ON_CPU
#include <iris/device/core/target_cpu.h>
#elif IRIS_ON_HIP
#include <iris/device/core/target_hip.h>
#else
#include <iris/device/core/target_cuda.h>
#endif
#ifndef IRIS_DEVICE_CALLED
#define IRIS_DEVICE_CALLED IRIS_DEVICE_LARGE
#endif

/* iriscc --check: kernels on the CPU tell which lane an iteration of a lane loop
 * stands for. */
#ifndef IRIS_CHECK_LANES
#define IRIS_CHECK_LANES 0
#endif

/* The kernels of a program compiled with IRIS_TRACE as 1 record their
 * operations if the target can (IRIS_D_CAN_TRACE). On the CPU observers record
 * them in any case. IRIS_D_HOOKED: operations have hooks. */
#ifndef IRIS_TRACE
#define IRIS_TRACE 0
#endif
#define IRIS_D_TRACES (IRIS_TRACE && IRIS_D_CAN_TRACE)
#define IRIS_D_HOOKED (IRIS_ON_CPU || IRIS_D_TRACES)

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
