/* SPDX-License-Identifier: MIT
 *
 * Vector operations that compilers do not generate from plain code: builtins
 * and asm, as in atomic.h. On CPUs they need instructions that some CPUs lack,
 * so the code asks the processor.
 */
#ifndef IRIS_DEVICE_VECTOR_H
#define IRIS_DEVICE_VECTOR_H

#include <iris/device/core/atomic.h>
#include <iris/device/core/half.h>

#if !IRIS_ON_CPU
/* Adds to a word of global memory without waiting for the old value. nvcc
 * generates an update that the lane waits for, because the word might be in the
 * workgroup's own memory. */
IRIS_DEVICE void iris_d_count_u64(iris_d_u64_t *p, uint64_t value,
                                  iris_d_order_t how)
{
#if IRIS_ON_CUDA
    (void)how; /* always relaxed, at system scope */
    __asm__ volatile("red.relaxed.sys.global.add.u64 [%0], %1;"
                     :
                     : "l"(__cvta_generic_to_global(p)), "l"(value)
                     : "memory");
#else
    (void)iris_d_add_u64(p, value, how);
#endif
}
#endif

/* Two words of 8 bytes next to each other, aligned to 16, relaxed and of system
 * scope: each arrives whole, and if the target has one access for both, they
 * travel together. The meaning of one must not depend on the other. */
IRIS_DEVICE void iris_d_store_pair(iris_d_u64_t *to, uint64_t low,
                                   uint64_t high)
{
#if IRIS_ON_CUDA
    __asm__ volatile("st.relaxed.sys.global.v2.b64 [%0], {%1, %2};"
                     :
                     : "l"(__cvta_generic_to_global(to)), "l"(low), "l"(high)
                     : "memory");
#elif IRIS_ON_HIP
    typedef uint64_t pair_t __attribute__((vector_size(16)));
    pair_t pair = {low, high};

    /* The instruction after such a wide store must not write its registers. */
    __asm__ volatile("global_store_dwordx4 %0, %1, off" IRIS_D_SYSTEM_BITS
                     "\n\ts_nop 0"
                     :
                     : "v"(to), "v"(pair)
                     : "memory");
#else
    iris_d_store_u64(to, low, iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
    iris_d_store_u64(to + 1, high,
                     iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
#endif
}

/* The same, but the store of `high` releases at system scope: a reader that
 * acquires it sees `low` and all earlier writes. */
IRIS_DEVICE void iris_d_release_pair(iris_d_u64_t *to, uint64_t low,
                                     uint64_t high)
{
#if IRIS_ON_CUDA
    __asm__ volatile("st.release.sys.global.v2.b64 [%0], {%1, %2};"
                     :
                     : "l"(__cvta_generic_to_global(to)), "l"(low), "l"(high)
                     : "memory");
#elif IRIS_ON_HIP
    (void)iris_d_released(iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
    iris_d_store_pair(to, low, high);
#else
    iris_d_store_u64(to, low, iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
    iris_d_store_u64(to + 1, high,
                     iris_d_order(IRIS_RELEASE, IRIS_SCOPE_SYSTEM));
#endif
}

/* The same value; compilers do not know it. */
IRIS_DEVICE uint64_t iris_d_hidden(uint64_t value)
{
#if IRIS_ON_HIP
    __asm__ volatile("" : "+v"(value));
#elif IRIS_ON_CUDA
    __asm__ volatile("" : "+l"(value));
#endif
    return value;
}

/* On AMD, this is two loads. The compiler would have to wait at once for a load
 * in asm, whereas several of these are in flight. */
IRIS_DEVICE void iris_d_load_pair(iris_d_u64_t *from, uint64_t *low_p,
                                  uint64_t *high_p)
{
#if IRIS_ON_CUDA
    __asm__ volatile("ld.relaxed.sys.global.v2.b64 {%0, %1}, [%2];"
                     : "=l"(*low_p), "=l"(*high_p)
                     : "l"(__cvta_generic_to_global(from))
                     : "memory");
#else
    *low_p =
        iris_d_load_u64(from, iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
    *high_p = iris_d_load_u64(from + 1,
                              iris_d_order(IRIS_RELAXED, IRIS_SCOPE_SYSTEM));
#endif
}

/* ---- Stores past the cache ----
 *
 * A plain store first reads its line into the cache. Stores past the cache
 * avoid this for data that will not stay cached. Whether `bytes` are enough for
 * that: half of a large server's cache divided among a few cores. */
IRIS_DEVICE iris_bool_t iris_d_past_cache(size_t bytes)
{
    return IRIS_ON_CPU && IRIS_ON_X86 && bytes >= (size_t)16 << 20;
}

/* A store past the cache. Only iris_d_past_fence() orders it before other
 * stores. */
IRIS_DEVICE void iris_d_store_past(iris_d_u128_t *to, iris_d_u128_t word)
{
#if IRIS_ON_CPU && IRIS_ON_X86
    typedef long long pair_t
        __attribute__((vector_size(16), may_alias, unused));

    IRIS_D_GCC_CLANG(__builtin_ia32_movntdq((pair_t *)to, (pair_t)word),
                     __builtin_nontemporal_store(word, to));
#else
    *to = word;
#endif
}

IRIS_DEVICE void iris_d_past_fence(void)
{
#if IRIS_ON_CPU && IRIS_ON_X86
    __builtin_ia32_sfence();
#endif
}

/* ---- Lanes of a wavefront ----
 *
 * The number of lanes of a wavefront. The last wavefront of a workgroup may
 * have fewer. */
#if IRIS_ON_CPU
#define IRIS_D_WAVE 1u
#elif !IRIS_ON_HIP
#define IRIS_D_WAVE 32u
#endif

/* The word of lane `from` of this wavefront, which has `lanes` lanes; `from` is
 * less than that. */
IRIS_DEVICE uint32_t iris_d_lane_word(uint32_t word, uint32_t from,
                                      uint32_t lanes)
{
#if IRIS_ON_HIP
    (void)lanes;
    return (uint32_t)__builtin_amdgcn_ds_bpermute((int)(from * 4), (int)word);
#elif IRIS_ON_CUDA
    return __shfl_sync(~0u >> (32 - lanes), word, (int)from);
#else
    (void)from;
    (void)lanes;
    return word;
#endif
}

IRIS_DEVICE uint64_t iris_d_lane_bits(uint64_t bits, uint32_t from,
                                      uint32_t lanes)
{
    return iris_d_lane_word((uint32_t)bits, from, lanes) |
           (uint64_t)iris_d_lane_word((uint32_t)(bits >> 32), from, lanes)
               << 32;
}

#if !IRIS_ON_CPU
/* The lanes of a wavefront, of which there are `lanes`, see each other's earlier
 * accesses, and a release by one of them covers these. */
IRIS_DEVICE void iris_d_wave_barrier(uint32_t lanes)
{
#if IRIS_ON_HIP
    (void)lanes;
    __asm__ volatile("s_waitcnt vmcnt(0)" ::: "memory");
#else
    __syncwarp(~0u >> (32 - lanes));
#endif
}
#endif

/* Tells the compiler that the number is the same in all lanes of a
 * wavefront. */
IRIS_DEVICE uint32_t iris_d_uniform(uint32_t number)
{
#if IRIS_ON_HIP
    return (uint32_t)__builtin_amdgcn_readfirstlane((int)number);
#else
    return number;
#endif
}

/* a * b + c, rounded once: the same bits everywhere. target_cuda.h has CUDA's
 * version. On a CPU without FMA this calls the C library. */
#if IRIS_ON_CPU || IRIS_ON_HIP
IRIS_DEVICE float iris_d_fused_f32(float a, float b, float c)
{
    return __builtin_fmaf(a, b, c);
}

IRIS_DEVICE double iris_d_fused_f64(double a, double b, double c)
{
    return __builtin_fma(a, b, c);
}

#endif

#if IRIS_ON_CPU
/* Copies by stores past the cache. `to` is aligned to 16; the ranges do not
 * overlap. */
IRIS_DEVICE void iris_d_copy_past(char *to, const char *from, size_t bytes)
{
    size_t whole = bytes / sizeof(iris_d_u128_t) * sizeof(iris_d_u128_t);

    for (size_t i = 0; i < whole; i += sizeof(iris_d_u128_t)) {
        iris_d_u128_t word;

        iris_d_copy_bytes(&word, from + i, sizeof word);
        iris_d_store_past((iris_d_u128_t *)(void *)(to + i), word);
    }
    iris_d_copy_bytes(to + whole, from + whole, bytes - whole);
}
#endif

#if IRIS_ON_CPU && IRIS_ON_X86
/* Vectors of 32 bytes. All CPUs that have them also convert f16. Not every
 * compiler can ask for that. */
IRIS_DEVICE iris_bool_t iris_d_has_avx2(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

/* Whether the CPU has them and fused multiply-add, too. */
IRIS_DEVICE iris_bool_t iris_d_has_fma(void)
{
    return iris_d_has_avx2() && __builtin_cpu_supports("fma") != 0;
}

typedef int iris_d_int8_t __attribute__((vector_size(32)));
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

/* start + step * i of `count` indices from `first` on, a multiple of 8. */
IRIS_D_AVX2 void iris_d_f16_line_avx2(iris_f16_t *to, float start, float step,
                                      int32_t first, int32_t count)
{
    const iris_d_int8_t steps = {0, 1, 2, 3, 4, 5, 6, 7};

    for (int32_t k = 0; k < count; k += 8) {
        iris_d_float8_t index =
            __builtin_convertvector(steps + (first + k), iris_d_float8_t);

        *(iris_d_short8_t *)(to + k) =
            __builtin_ia32_vcvtps2ph256(start + step * index, 0);
    }
}

/* iris_f16_to_f32() of `count` elements. A NaN becomes quiet, too. */
IRIS_D_AVX2 void iris_d_f32_row_avx2(float *to, const iris_f16_t *from,
                                     size_t count)
{
    size_t k = 0;

    for (; k + 8 <= count; k += 8) {
        *(iris_d_float8_t *)(to + k) =
            __builtin_ia32_vcvtph2ps256(*(const iris_d_short8_t *)(from + k));
    }
    for (; k < count; k++) {
        to[k] = iris_f16_to_f32(from[k]);
    }
}

IRIS_DEVICE iris_bool_t iris_d_has_avx512(void)
{
    return __builtin_cpu_supports("avx512f");
}

typedef long long iris_d_long8_t __attribute__((vector_size(64)));

/* Philox4x32-10 of `count` counters from `block` on, a multiple of 4 * LANES,
 * as floats or doubles in [0, 1): the values of iris_d_uniform_f32() and
 * _f64(). A counter's words are in the low halves of 64-bit lanes, where the
 * multiplication takes them. Joining two words to a lane discards the upper
 * halves. Compilers do not find this by themselves. */
/* clang-format off */
#define IRIS_D_STEPS_256 0, 1, 2, 3
#define IRIS_D_STEPS_512 0, 1, 2, 3, 4, 5, 6, 7
/* Multiplies the low halves of lanes to 64-bit products. */
#define IRIS_D_MUL_256(a, b)                                                   \
    (iris_d_wide_256_t)__builtin_ia32_pmuludq256((iris_d_signed_256_t)(a),     \
                                                 (iris_d_signed_256_t)(b))
#define IRIS_D_MUL_512(a, b)                                                   \
    (iris_d_wide_512_t)IRIS_D_MUL512(                                          \
        __builtin_ia32_pmuludq512, iris_d_long8_t, (iris_d_signed_512_t)(a),   \
        (iris_d_signed_512_t)(b))
/* Interleaves lanes of a and b: those of the lower halves, and those of the
 * upper halves. */
#define IRIS_D_LOWER_256(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define IRIS_D_UPPER_256(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define IRIS_D_LOWER_512(a, b)                                                 \
    __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define IRIS_D_UPPER_512(a, b)                                                 \
    __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)

#define IRIS_D_UNIFORM_TYPES(BITS, TARGET)                                     \
    typedef unsigned long long iris_d_wide_##BITS##_t                          \
        __attribute__((vector_size(BITS / 8)));                                \
    typedef unsigned long long iris_d_out_##BITS##_t                           \
        __attribute__((vector_size(BITS / 8), aligned(4), may_alias));         \
    typedef unsigned iris_d_narrow_##BITS##_t                                  \
        __attribute__((vector_size(BITS / 8)));                                \
    typedef int iris_d_signed_##BITS##_t                                       \
        __attribute__((vector_size(BITS / 8)));                                \
    typedef float iris_d_floats_##BITS##_t                                     \
        __attribute__((vector_size(BITS / 8)));                                \
    typedef double iris_d_doubles_##BITS##_t                                   \
        __attribute__((vector_size(BITS / 8)));                                \
    TARGET iris_d_wide_##BITS##_t iris_d_f32_of_##BITS(                 \
        iris_d_wide_##BITS##_t words)                                          \
    {                                                                          \
        return (iris_d_wide_##BITS##_t)(                                       \
            __builtin_convertvector(                                           \
                (iris_d_signed_##BITS##_t)(                                    \
                    (iris_d_narrow_##BITS##_t)words >> 8),                     \
                iris_d_floats_##BITS##_t) * 0x1p-24f);                         \
    }                                                                          \
    /* The 21 upper bits and the 32 lower ones, as mantissas of doubles, */    \
    /* are added to 2^31 and to 2^-1. All of it is exact. */                   \
    TARGET iris_d_wide_##BITS##_t iris_d_f64_of_##BITS(                 \
        iris_d_wide_##BITS##_t words)                                          \
    {                                                                          \
        iris_d_wide_##BITS##_t upper = words >> 43 | 0x41e0000000000000u;      \
        iris_d_wide_##BITS##_t lower =                                         \
            (words >> 11 & 0xffffffffu) | 0x3fe0000000000000u;                 \
        return (iris_d_wide_##BITS##_t)(                                       \
            (iris_d_doubles_##BITS##_t)upper - (0x1p31 + 0x1p-1) +             \
            (iris_d_doubles_##BITS##_t)lower);                                 \
    }
#define IRIS_D_UNIFORM_ROW(name, BITS, LANES, TARGET)                          \
    TARGET void iris_d_##name##_row_##BITS(void *to, uint64_t seed,            \
                                          uint64_t sequence, uint64_t block,   \
                                          uint64_t count)                      \
    {                                                                          \
        const iris_d_wide_##BITS##_t zero = {0};                               \
        const iris_d_wide_##BITS##_t steps = {IRIS_D_STEPS_##BITS};            \
        iris_d_wide_##BITS##_t a[4], b[4], c[4], d[4];                         \
        iris_d_out_##BITS##_t *out = (iris_d_out_##BITS##_t *)to;              \
                                                                               \
        for (uint64_t i = 0; i < count; i += 4 * LANES) {                      \
            uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);     \
            for (int u = 0; u < 4; u++) {                                      \
                a[u] = steps + (block + i + (uint64_t)u * LANES);              \
                b[u] = a[u] >> 32;                                             \
                c[u] = zero + (uint32_t)sequence;                              \
                d[u] = zero + (sequence >> 32);                                \
            }                                                                  \
            for (int round = 0; round < 10; round++) {                         \
                for (int u = 0; u < 4; u++) {                                  \
                    iris_d_wide_##BITS##_t p = \
                        IRIS_D_MUL_##BITS(a[u], zero + 0xd2511f53u);           \
                    iris_d_wide_##BITS##_t q = \
                        IRIS_D_MUL_##BITS(c[u], zero + 0xcd9e8d57u);           \
                    a[u] = q >> 32 ^ b[u] ^ key0;                              \
                    b[u] = q;                                                  \
                    c[u] = p >> 32 ^ d[u] ^ key1;                              \
                    d[u] = p;                                                  \
                }                                                              \
                key0 += 0x9e3779b9u;                                           \
                key1 += 0xbb67ae85u;                                           \
            }                                                                  \
            for (int u = 0; u < 4; u++) {                                      \
                iris_d_wide_##BITS##_t ab = (a[u] & 0xffffffffu) | b[u] << 32; \
                iris_d_wide_##BITS##_t cd = (c[u] & 0xffffffffu) | d[u] << 32; \
                *out++ = iris_d_##name##_of_##BITS(                            \
                    IRIS_D_LOWER_##BITS(ab, cd));                              \
                *out++ = iris_d_##name##_of_##BITS(                            \
                    IRIS_D_UPPER_##BITS(ab, cd));                              \
            }                                                                  \
        }                                                                      \
    }
IRIS_D_UNIFORM_TYPES(256, IRIS_D_AVX2)
IRIS_D_UNIFORM_TYPES(512, IRIS_D_AVX512)
IRIS_D_UNIFORM_ROW(f32, 256, 4, IRIS_D_AVX2)
IRIS_D_UNIFORM_ROW(f32, 512, 8, IRIS_D_AVX512)
IRIS_D_UNIFORM_ROW(f64, 256, 4, IRIS_D_AVX2)
IRIS_D_UNIFORM_ROW(f64, 512, 8, IRIS_D_AVX512)
#undef IRIS_D_UNIFORM_ROW
#undef IRIS_D_UNIFORM_TYPES
/* clang-format on */

#endif

#endif /* IRIS_DEVICE_VECTOR_H */
