/* SPDX-License-Identifier: MIT
 *
 * The kernels behind iris_rand(), iris_randn() and iris_randint(): numbers from
 * Philox4x32-10 (Salmon et al., SC 2011), with Random123's implementation. Only
 * the library includes this header, so that programs do not need Random123.
 */
#ifndef IRIS_DEVICE_KERNELS_RANDOM_H
#define IRIS_DEVICE_KERNELS_RANDOM_H

#include <iris/device/core/half.h>
#include <iris/device/wg/kernel.h>
#include <iris/device/kernels/normal.h>
#include <iris/device/kernels/random_args.h>
#include <iris/device/core/vector.h>

/* Settings of Random123, independent of its checks of the compiler. */
#if IRIS_ON_HIP
#define R123_CUDA_DEVICE __host__ __device__
#endif
#define R123_ASSERT(condition) ((void)0)
#define R123_USE_SSE 0
#define R123_USE_X86INTRIN_H 0
#include <Random123/philox.h>

struct iris_d_philox {
    uint32_t word[4];
};

/* Philox of a counter. */
IRIS_DEVICE struct iris_d_philox iris_d_philox(const struct iris_random_args *a,
                                               struct iris_d_philox counter)
{
    philox4x32_ctr_t block = {
        {counter.word[0], counter.word[1], counter.word[2], counter.word[3]}};
    const philox4x32_key_t key = {
        {(uint32_t)a->seed, (uint32_t)(a->seed >> 32)}};

    block = philox4x32_R(10, block, key);
    for (int i = 0; i < 4; i++) {
        counter.word[i] = block.v[i];
    }
    return counter;
}

/* Block `i` of this call. */
IRIS_DEVICE struct iris_d_philox iris_d_block(const struct iris_random_args *a,
                                              uint64_t i)
{
    struct iris_d_philox counter = {
        {(uint32_t)(a->offset + i), (uint32_t)((a->offset + i) >> 32),
         (uint32_t)a->sequence, (uint32_t)(a->sequence >> 32)}};

    return iris_d_philox(a, counter);
}

IRIS_DEVICE uint64_t iris_d_double_word(struct iris_d_philox block, int i)
{
    return (uint64_t)block.word[2 * i + 1] << 32 | block.word[2 * i];
}

/* Total number of blocks, and the count of numbers wanted from block `i`. */
IRIS_DEVICE uint64_t iris_d_blocks(const struct iris_random_args *a,
                                   uint64_t per_block)
{
    return a->count / per_block + (a->count % per_block != 0);
}

IRIS_DEVICE uint64_t iris_d_numbers(const struct iris_random_args *a,
                                    uint64_t i, uint64_t per_block)
{
    return i < a->count / per_block ? per_block : a->count % per_block;
}

/* Offset of number `i`. */
IRIS_DEVICE int64_t iris_d_place(const struct iris_random_args *a, uint64_t i)
{
    int64_t place = a->ndim == 0 ? (int64_t)i : 0;

    for (int d = a->ndim - 1; d >= 0; d--) {
        place += (int64_t)(i % (uint64_t)a->sizes[d]) * a->strides[d];
        i /= (uint64_t)a->sizes[d];
    }
    return place;
}

/* ---- [0, 1): a multiple of 2^-p, where p is the type's precision ---- */

IRIS_DEVICE void iris_d_uniform_f32(const struct iris_random_args *a,
                                    uint64_t i, float *values)
{
    struct iris_d_philox block = iris_d_block(a, i);

    for (int j = 0; j < 4; j++) {
        values[j] = (float)(int32_t)(block.word[j] >> 8) * 0x1p-24f;
    }
}

IRIS_DEVICE void iris_d_uniform_f64(const struct iris_random_args *a,
                                    uint64_t i, double *values)
{
    struct iris_d_philox block = iris_d_block(a, i);

    for (int j = 0; j < 2; j++) {
        values[j] =
            (double)(int64_t)(iris_d_double_word(block, j) >> 11) * 0x1p-53;
    }
}

IRIS_DEVICE void iris_d_uniform_f16(const struct iris_random_args *a,
                                    uint64_t i, iris_f16_t *values)
{
    struct iris_d_philox block = iris_d_block(a, i);

    for (int j = 0; j < 4; j++) {
        values[j] =
            iris_f16_from_f32((float)(int32_t)(block.word[j] >> 21) * 0x1p-11f);
    }
}

IRIS_DEVICE void iris_d_uniform_bf16(const struct iris_random_args *a,
                                     uint64_t i, iris_bf16_t *values)
{
    struct iris_d_philox block = iris_d_block(a, i);

    for (int j = 0; j < 4; j++) {
        values[j] =
            iris_bf16_from_f32((float)(int32_t)(block.word[j] >> 24) * 0x1p-8f);
    }
}

/* ---- Normal ---- */

IRIS_DEVICE void iris_d_normals_f32(const struct iris_random_args *a,
                                    uint64_t i, float *values)
{
    struct iris_d_philox block = iris_d_block(a, i);

    for (int j = 0; j < 4; j += 2) {
        iris_d_normal_f32(block.word[j], block.word[j + 1], a->half, &values[j],
                          &values[j + 1]);
    }
}

IRIS_DEVICE void iris_d_normals_f64(const struct iris_random_args *a,
                                    uint64_t i, double *values)
{
    struct iris_d_philox block = iris_d_block(a, i);

    iris_d_normal_f64(iris_d_double_word(block, 0),
                      iris_d_double_word(block, 1), a->half, &values[0],
                      &values[1]);
}

IRIS_DEVICE void iris_d_normals_f16(const struct iris_random_args *a,
                                    uint64_t i, iris_f16_t *values)
{
    float wide[4];

    iris_d_normals_f32(a, i, wide);
    for (int j = 0; j < 4; j++) {
        values[j] = iris_f16_from_f32(wide[j]);
    }
}

IRIS_DEVICE void iris_d_normals_bf16(const struct iris_random_args *a,
                                     uint64_t i, iris_bf16_t *values)
{
    float wide[4];

    iris_d_normals_f32(a, i, wide);
    for (int j = 0; j < 4; j++) {
        values[j] = iris_bf16_from_f32(wide[j]);
    }
}

/* ---- Integers ----
 *
 * The upper half of range times a random word is a number below `range`. Each
 * number is equally likely if the words are rejected whose lower half is less
 * than the bias (Lemire, ACM TOMACS 29, 2019). After a rejection the number
 * draws again, as often as necessary. It draws from Philox of the block, whose
 * words are as good as those of an unused counter. */

IRIS_DEVICE uint64_t iris_d_below32(const struct iris_random_args *a,
                                    struct iris_d_philox block, int j)
{
    uint64_t product = block.word[j] * a->range;

    while ((uint32_t)product < (uint32_t)a->bias) {
        block = iris_d_philox(a, block);
        product = block.word[j] * a->range;
    }
    return a->low + (product >> 32);
}

IRIS_DEVICE uint64_t iris_d_below64(const struct iris_random_args *a,
                                    struct iris_d_philox block, int j)
{
    iris_d_uint128_t product =
        (iris_d_uint128_t)iris_d_double_word(block, j) * a->range;

    while ((uint64_t)product < a->bias) {
        block = iris_d_philox(a, block);
        product = (iris_d_uint128_t)iris_d_double_word(block, j) * a->range;
    }
    return a->low + (uint64_t)(product >> 64);
}

/* An integer as an element; the host has checked that it fits. */
#define IRIS_D_AS_SELF(type, bits) ((type)(bits))
#define IRIS_D_AS_FLOAT(type, bits) ((type)(int64_t)(bits))
#define IRIS_D_AS_F16(type, bits) iris_f16_from_f32((float)(int64_t)(bits))
#define IRIS_D_AS_BF16(type, bits) iris_bf16_from_f32((float)(int64_t)(bits))

/* X(name, type, per block, below, AS). Ranges up to 2^32 take one word for each
 * number, larger ones two. */
/* clang-format off */
#define IRIS_D_INTEGER_ROWS(X)                                                 \
    X(integer_u8,   uint8_t,     4, iris_d_below32, IRIS_D_AS_SELF)            \
    X(integer_u16,  uint16_t,    4, iris_d_below32, IRIS_D_AS_SELF)            \
    X(integer_u32,  uint32_t,    4, iris_d_below32, IRIS_D_AS_SELF)            \
    X(integer_u64,  uint64_t,    4, iris_d_below32, IRIS_D_AS_SELF)            \
    X(integer_f16,  iris_f16_t,  4, iris_d_below32, IRIS_D_AS_F16)             \
    X(integer_bf16, iris_bf16_t, 4, iris_d_below32, IRIS_D_AS_BF16)            \
    X(integer_f32,  float,       4, iris_d_below32, IRIS_D_AS_FLOAT)           \
    X(integer_f64,  double,      4, iris_d_below32, IRIS_D_AS_FLOAT)           \
    X(wide_u64,     uint64_t,    2, iris_d_below64, IRIS_D_AS_SELF)            \
    X(wide_f64,     double,      2, iris_d_below64, IRIS_D_AS_FLOAT)

#define IRIS_D_INTEGERS(name, type, per_block, below, AS)                      \
    IRIS_DEVICE void iris_d_##name(const struct iris_random_args *a,           \
                                   uint64_t i, type *values)                   \
    {                                                                          \
        struct iris_d_philox block = iris_d_block(a, i);                       \
        for (int j = 0; j < per_block; j++) {                                  \
            values[j] = AS(type, below(a, block, j));                          \
        }                                                                      \
    }
IRIS_D_INTEGER_ROWS(IRIS_D_INTEGERS)
#undef IRIS_D_INTEGERS

/* X(name, type, numbers per block, function for contiguous numbers, ) */
#define IRIS_D_REAL_ROWS(X)                                                    \
    X(uniform_f16,  iris_f16_t,  4, iris_d_uniform_f16_whole, )                \
    X(uniform_bf16, iris_bf16_t, 4, iris_d_uniform_bf16_whole, )               \
    X(uniform_f32,  float,       4, iris_d_uniform_f32_fast, )                 \
    X(uniform_f64,  double,      2, iris_d_uniform_f64_fast, )                 \
    X(normals_f16,  iris_f16_t,  4, iris_d_normals_f16_whole, )                \
    X(normals_bf16, iris_bf16_t, 4, iris_d_normals_bf16_whole, )               \
    X(normals_f32,  float,       4, iris_d_normals_f32_whole, )                \
    X(normals_f64,  double,      2, iris_d_normals_f64_whole, )

/* Defines iris_d_uniform_f32_wide() and so on, which writes this workgroup's
 * share of the blocks that GPUs store as 16-byte words. It makes as many blocks
 * at once as fill such words, or one larger block. Returns the total number of
 * blocks that all workgroups write in this way. Blocks enter at the end and
 * move down, since registers cannot be indexed. */
#if IRIS_ON_CPU
#define IRIS_D_RANDOM_WIDE(name, type, per_block, below, AS)                   \
    IRIS_DEVICE uint64_t iris_d_##name##_wide(                                 \
        iris_wg_t wg, const struct iris_random_args *args)                     \
    {                                                                          \
        (void)wg, (void)args;                                                  \
        return 0;                                                              \
    }
#else
#define IRIS_D_NEW_WORDS(type, per_block) (per_block * sizeof(type) / 4)
#define IRIS_D_WIDE_WORDS(type, per_block)                                     \
    (IRIS_D_NEW_WORDS(type, per_block) < 4 ? 4                                 \
                                           : IRIS_D_NEW_WORDS(type, per_block))
#define IRIS_D_RANDOM_WIDE(name, type, per_block, below, AS)                   \
    IRIS_DEVICE uint64_t iris_d_##name##_wide(                                 \
        iris_wg_t wg, const struct iris_random_args *args)                     \
    {                                                                          \
        const uint64_t words = IRIS_D_WIDE_WORDS(type, per_block);             \
        const uint64_t added = IRIS_D_NEW_WORDS(type, per_block);              \
        const uint64_t blocks = words / added;                                 \
        iris_d_u128_t *data = (iris_d_u128_t *)args->data;                     \
        uint64_t count = args->count / (blocks * per_block);                   \
        union {                                                                \
            type values[per_block];                                            \
            uint32_t words[IRIS_D_NEW_WORDS(type, per_block)];                 \
        } one;                                                                 \
        union {                                                                \
            uint32_t words[IRIS_D_WIDE_WORDS(type, per_block)];                \
            iris_d_u128_t wide[IRIS_D_WIDE_WORDS(type, per_block) / 4];        \
        } all = {{0}};                                                         \
                                                                               \
        if ((uintptr_t)data % sizeof *data != 0) {                             \
            return 0;                                                          \
        }                                                                      \
        IRIS_LANES (wg, i, count) {                                            \
            for (uint64_t b = 0; b < blocks; b++) {                            \
                iris_d_##name(args, i * blocks + b, one.values);               \
                IRIS_D_UNROLL                                                  \
                for (uint64_t k = 0; k < words; k++) {                         \
                    all.words[k] = k + added < words                           \
                                       ? all.words[k + added]                  \
                                       : one.words[k + added - words];         \
                }                                                              \
            }                                                                  \
            IRIS_D_UNROLL                                                      \
            for (uint64_t k = 0; k < words / 4; k++) {                         \
                data[i * (words / 4) + k] = all.wide[k];                       \
            }                                                                  \
        }                                                                      \
        return count * blocks;                                                 \
    }
#endif
IRIS_D_REAL_ROWS(IRIS_D_RANDOM_WIDE)
IRIS_D_INTEGER_ROWS(IRIS_D_RANDOM_WIDE)
#undef IRIS_D_RANDOM_WIDE
#undef IRIS_D_WIDE_WORDS
#undef IRIS_D_NEW_WORDS

/* Defines iris_d_uniform_f32_whole() and so on, which writes this workgroup's
 * share of the whole blocks of contiguous numbers. */
#define IRIS_D_RANDOM_WHOLE(name, type, per_block, below, AS)                  \
    IRIS_DEVICE void iris_d_##name##_whole(                                    \
        iris_wg_t wg, const struct iris_random_args *args)                     \
    {                                                                          \
        const struct iris_random_args own = *args;                             \
        type *data = (type *)own.data;                                         \
        uint64_t first = iris_d_##name##_wide(wg, &own);                       \
                                                                               \
        IRIS_LANES (wg, i, own.count / per_block - first) {                    \
            type values[per_block];                                            \
            iris_d_##name(&own, first + i, values);                            \
            for (int j = 0; j < per_block; j++) {                              \
                data[(first + i) * per_block + j] = values[j];                 \
            }                                                                  \
        }                                                                      \
    }
IRIS_D_REAL_ROWS(IRIS_D_RANDOM_WHOLE)
IRIS_D_INTEGER_ROWS(IRIS_D_RANDOM_WHOLE)
#undef IRIS_D_RANDOM_WHOLE
/* clang-format on */

#if IRIS_ON_CPU && IRIS_ON_X86
typedef void (*iris_d_uniform_row_t)(void *to, uint64_t seed, uint64_t sequence,
                                     uint64_t block, uint64_t count);

/* Every row function makes a multiple of this number of blocks. */
#define IRIS_D_ROW_BLOCKS 32

/* Makes the blocks from `i` to `end` with a row function. Returns the first
 * block that it did not make. */
IRIS_DEVICE size_t iris_d_uniform_rows(const struct iris_random_args *args,
                                       size_t i, size_t end,
                                       iris_d_uniform_row_t row)
{
    iris_d_u128_t *data = (iris_d_u128_t *)args->data;
    size_t done = (end - i) / IRIS_D_ROW_BLOCKS * IRIS_D_ROW_BLOCKS;

    row((char *)data + 16 * i, args->seed, args->sequence, args->offset + i,
        done);
    return i + done;
}
#endif

/* clang-format off */
/* Defines the fast forms of iris_d_uniform_f32_whole() and of f64's:
 * iris_d_uniform_f32_fast() and so on. */
#if IRIS_ON_CPU && IRIS_ON_X86
#define IRIS_D_FAST(name, type, per_block)                                     \
    IRIS_DEVICE void iris_d_uniform_##name##_fast(                             \
        iris_wg_t wg, const struct iris_random_args *args)                     \
    {                                                                          \
        type *data = (type *)args->data;                                       \
        size_t blocks = args->count / per_block;                               \
        size_t i = iris_d_share(wg, wg.id, blocks);                            \
        size_t end = iris_d_share(wg, wg.id + 1, blocks);                      \
        if (iris_d_has_avx512()) {                                             \
            i = iris_d_uniform_rows(args, i, end, iris_d_##name##_row_512);    \
        } else if (iris_d_has_avx2()) {                                        \
            i = iris_d_uniform_rows(args, i, end, iris_d_##name##_row_256);    \
        }                                                                      \
        for (; i < end; i++) {                                                 \
            iris_d_uniform_##name(args, i, data + per_block * i);              \
        }                                                                      \
    }
#else
#define IRIS_D_FAST(name, type, per_block)                                     \
    IRIS_DEVICE void iris_d_uniform_##name##_fast(                             \
        iris_wg_t wg, const struct iris_random_args *args)                     \
    {                                                                          \
        iris_d_uniform_##name##_whole(wg, args);                               \
    }
#endif
IRIS_D_FAST(f32, float, 4)
IRIS_D_FAST(f64, double, 2)
#undef IRIS_D_FAST

/* Defines the kernel iris_k_uniform_f32 and so on. Numbers that are not
 * contiguous, and incomplete blocks, go element by element. */
#define IRIS_D_RANDOM_KERNEL(name, type, per_block, dense)                     \
    IRIS_DEVICE void iris_d_##name##_any(const struct iris_random_args *args,  \
                                         uint64_t i)                           \
    {                                                                          \
        type values[per_block];                                                \
        uint64_t count = iris_d_numbers(args, i, per_block), first;            \
        iris_d_##name(args, i, values);                                        \
        first = i * per_block;                                                 \
        IRIS_D_UNROLL /* so that the values stay in registers */               \
        for (uint64_t j = 0; j < per_block; j++) {                             \
            if (j < count) {                                                   \
                ((type *)args->data)[iris_d_place(args, first + j)] =          \
                    values[j];                                                 \
            }                                                                  \
        }                                                                      \
    }                                                                          \
    IRIS_KERNEL(iris_k_##name, struct iris_random_args)                        \
    {                                                                          \
        if (args->ndim != 0) {                                                 \
            IRIS_LANES (wg, i, iris_d_blocks(args, per_block)) {               \
                iris_d_##name##_any(args, i);                                  \
            }                                                                  \
            return;                                                            \
        }                                                                      \
        dense(wg, args);                                                       \
        if (wg.id == 0 && iris_wg_leader(wg) && args->count % per_block) {     \
            iris_d_##name##_any(args, args->count / per_block);                \
        }                                                                      \
    }
#define IRIS_D_REAL_KERNEL(name, type, per_block, dense, AS)                   \
    IRIS_D_RANDOM_KERNEL(name, type, per_block, dense)
#define IRIS_D_INTEGER_KERNEL(name, type, per_block, below, AS)                \
    IRIS_D_RANDOM_KERNEL(name, type, per_block, iris_d_##name##_whole)
IRIS_D_REAL_ROWS(IRIS_D_REAL_KERNEL)
IRIS_D_INTEGER_ROWS(IRIS_D_INTEGER_KERNEL)
#undef IRIS_D_INTEGER_KERNEL
#undef IRIS_D_REAL_KERNEL
#undef IRIS_D_RANDOM_KERNEL
/* clang-format on */

#endif /* IRIS_DEVICE_KERNELS_RANDOM_H */
