/* SPDX-License-Identifier: MIT
 *
 * AMD's GPUs as a target: hipcc, or clang for them. compat.h explains the
 * names.
 */
#ifndef IRIS_DEVICE_TARGET_HIP_H
#define IRIS_DEVICE_TARGET_HIP_H

/* IRIS_D_WAIT_MEMORY is right for these GPUs only: other families count loads and
 * stores in other ways. Only the device pass knows the GPU, so the check is made
 * there. */
#if defined(__HIP_DEVICE_COMPILE__) && !defined(__gfx900__) &&              \
    !defined(__gfx906__) && !defined(__gfx908__) && !defined(__gfx90a__) && \
    !defined(__gfx940__) && !defined(__gfx941__) && !defined(__gfx942__) && \
    !defined(__gfx950__) && !defined(__gfx1250__)
#error \
    "Iris supports AMD Instinct GPUs of family gfx9 and gfx1250; add this one"
#endif

/* Lanes of a wavefront. The wait until all loads and stores of this lane are
 * complete. The bits that number this compute unit. HW_ID1 has WGP, array and
 * engine there, and HW_ID has compute unit, array and engine. */
#if defined(__gfx1250__)
#define IRIS_D_WAVE 32u
#define IRIS_D_WAIT_MEMORY "s_wait_loadcnt 0x0\n\ts_wait_storecnt 0x0"
#define IRIS_D_CU_ID (23 | 10 << 6 | 10 << 11)
#else
#define IRIS_D_WAVE 64u
#define IRIS_D_WAIT_MEMORY "s_waitcnt vmcnt(0)"
#define IRIS_D_CU_ID (4 | 8 << 6 | 7 << 11)
#endif

#define IRIS_HOST_DEVICE \
    __host__ __device__ static inline __attribute__((always_inline, unused))
#define IRIS_DEVICE \
    __device__ static inline __attribute__((always_inline, unused))
#define IRIS_DEVICE_LARGE __device__ static inline __attribute__((unused))
#define IRIS_DEVICE_APART IRIS_DEVICE
#define IRIS_DEVICE_CALLED __device__ static __attribute__((noinline, unused))
#define IRIS_D_CALLS 0

/* A poll takes about a microsecond and a check about three. The deadlines that
 * they check are milliseconds. */
#define IRIS_D_WATCHED 1
#define IRIS_D_NOTES 0
#define IRIS_D_POLLS_PER_CHECK 1024u
#define IRIS_D_CAN_TRACE 1
#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || \
    defined(__gfx950__)
#define IRIS_D_HAS_XCC 1
#else
#define IRIS_D_HAS_XCC 0
#endif
#define IRIS_D_PAUSED() ((void)0)
#define IRIS_D_HALF_FENCES 0
#if defined(__HIP_DEVICE_COMPILE__)
#define IRIS_D_CONVERTS_F16 1
#else
#define IRIS_D_CONVERTS_F16 0
#endif
#define IRIS_D_CONVERTS_BF16 0
#if defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || \
    defined(__gfx942__) || defined(__gfx950__)
#define IRIS_D_HAS_MMA 1
#else
#define IRIS_D_HAS_MMA 0
#endif
/* Cache bits of a store of system scope. */
#if defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || \
    defined(__gfx950__)
#define IRIS_D_SYSTEM_BITS " sc0 sc1"
#elif defined(__gfx1250__)
#define IRIS_D_SYSTEM_BITS " scope:SCOPE_SYS"
#else
#define IRIS_D_SYSTEM_BITS ""
#endif

/* With 8 words of 16 bytes, two rounds take 64 registers: half of the 128 that
 * a lane has where a workgroup may have 1024 lanes. `iris bench --ops depth`
 * measures other depths. Clang before 17 is not known to keep rounds in
 * registers; 15 does not. */
#if __clang_major__ < 17
#define IRIS_D_BULK_DEPTH 0
#elif IRIS_FAR /* far accesses need registers, too */
#define IRIS_D_BULK_DEPTH 6
#else
#define IRIS_D_BULK_DEPTH 8
#endif
#define IRIS_D_BULK_MAX_DEPTH 12
#define IRIS_D_UNROLL _Pragma("unroll")
/* Sums of 16 bytes at once: clang 15 keeps them in local memory. */
#define IRIS_D_BLOCK_SUMS (__clang_major__ > 15)

IRIS_DEVICE float iris_d_product_f32(float a, float b)
{
#pragma clang fp contract(off)
    return a * b;
}

IRIS_DEVICE double iris_d_product_f64(double a, double b)
{
#pragma clang fp contract(off)
    return a * b;
}

/* HIP's name for this attribute is in hip_runtime.h. Images are compiled
 * without that header. */
#define IRIS_D_MAX_LANES(n) __attribute__((amdgpu_flat_work_group_size(1, n)))

#endif /* IRIS_DEVICE_TARGET_HIP_H */
