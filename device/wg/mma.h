/* SPDX-License-Identifier: MIT
 *
 * Matrix instructions: a wavefront adds the product of two blocks in local
 * memory to sums in its registers. Uses builtins and asm, like atomic.h.
 */
#ifndef IRIS_DEVICE_MMA_H
#define IRIS_DEVICE_MMA_H

#include <iris/device/core/rma.h>
#include <iris/device/core/vector.h>

/* A step is 64 bytes of each line: 32 elements of 16 bits, or 16 floats. A line
 * is a row of A or a column of B. A lane loads 16 bytes of it. Both operands
 * pass their elements to the instructions in the same order, which differs from
 * the order of k. This is one reason why the bits of the sums differ from those
 * of a loop.
 *
 * The pitch is the distance between lines in local memory. It is chosen so that
 * a wavefront's loads have no bank conflicts. */
#if IRIS_ON_HIP && IRIS_D_HAS_MMA
#define IRIS_D_MMA_PITCH 80u
#define IRIS_D_MMA_ROWS 32u
#define IRIS_D_MMA_COLS 32u

typedef float iris_d_mma_sum_t __attribute__((ext_vector_type(4)));
typedef _Float16 iris_d_mma_f16_t __attribute__((ext_vector_type(4)));
typedef short iris_d_mma_bf16_t __attribute__((ext_vector_type(4)));

/* A block of 32 * 32 sums as blocks of 16 * 16. In each, lane l has four rows,
 * from 4 * (l / 16) on, of column l % 16. */
typedef struct iris_d_mma {
    iris_d_mma_sum_t sums[2][2];
} iris_d_mma_t;

IRIS_DEVICE iris_bool_t iris_d_mma_can(iris_dtype_t dtype)
{
    (void)dtype;
    return 1;
}

/* The row, and below the column, of the calling lane's i-th of 16 sums. */
IRIS_DEVICE uint32_t iris_d_mma_row(uint32_t i)
{
    return 16 * (i / 8) + 4 * (iris_d_lane() % 64 / 16) + i % 4;
}

IRIS_DEVICE uint32_t iris_d_mma_col(uint32_t i)
{
    return 16 * (i / 4 % 2) + iris_d_lane() % 16;
}

IRIS_DEVICE float iris_d_mma_get(const iris_d_mma_t *mma, uint32_t i)
{
    return mma->sums[i / 8][i / 4 % 2][i % 4];
}

IRIS_DEVICE void iris_d_mma_set(iris_d_mma_t *mma, uint32_t i, float value)
{
    mma->sums[i / 8][i / 4 % 2][i % 4] = value;
}

/* Adds the product of 16 bytes of each line to a block of 16 * 16 sums. */
IRIS_DEVICE iris_d_mma_sum_t iris_d_mma_block(iris_d_mma_sum_t sum,
                                              iris_quad_t a, iris_quad_t b,
                                              iris_dtype_t dtype)
{
    typedef uint32_t pair_t __attribute__((ext_vector_type(2)));

    IRIS_D_UNROLL
    for (int i = 0; i < 4; i++) {
        pair_t x = {a.words[i], a.words[(i + 1) % 4]};
        pair_t y = {b.words[i], b.words[(i + 1) % 4]};

        if (dtype == IRIS_DTYPE_F32) {
            sum = __builtin_amdgcn_mfma_f32_16x16x4f32(
                __builtin_bit_cast(float, a.words[i]),
                __builtin_bit_cast(float, b.words[i]), sum, 0, 0, 0);
        } else if (i % 2 == 0 && dtype == IRIS_DTYPE_F16) {
            sum = __builtin_amdgcn_mfma_f32_16x16x16f16(
                __builtin_bit_cast(iris_d_mma_f16_t, x),
                __builtin_bit_cast(iris_d_mma_f16_t, y), sum, 0, 0, 0);
        } else if (i % 2 == 0) {
            sum = __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(
                __builtin_bit_cast(iris_d_mma_bf16_t, x),
                __builtin_bit_cast(iris_d_mma_bf16_t, y), sum, 0, 0, 0);
        }
    }
    return sum;
}

/* Adds a step to a wavefront's block of sums: `a` and `b` are its first lines.
 * All lanes of the wavefront. */
IRIS_DEVICE void iris_d_mma_step(iris_d_mma_t *mma, const char *a,
                                 const char *b, iris_dtype_t dtype)
{
    uint32_t lane = iris_d_lane() % 64;
    uint32_t at = lane % 16 * IRIS_D_MMA_PITCH + lane / 16 * 16;
    iris_quad_t x[2], y[2];

    IRIS_D_UNROLL
    for (int i = 0; i < 2; i++) {
        x[i] = *(const iris_quad_t *)(a + at + 16 * i * IRIS_D_MMA_PITCH);
        y[i] = *(const iris_quad_t *)(b + at + 16 * i * IRIS_D_MMA_PITCH);
    }
    IRIS_D_UNROLL
    for (int i = 0; i < 4; i++) {
        mma->sums[i / 2][i % 2] = iris_d_mma_block(mma->sums[i / 2][i % 2],
                                                   x[i / 2], y[i % 2], dtype);
    }
}

#elif IRIS_ON_CUDA && IRIS_D_HAS_MMA
#define IRIS_D_MMA_PITCH 64u
#define IRIS_D_MMA_ROWS 32u
#define IRIS_D_MMA_COLS 16u

/* A block of 32 * 16 sums as blocks of 16 * 8. In each, lane l has columns
 * 2 * (l % 4) and on of rows l / 4 and l / 4 + 8. */
typedef struct iris_d_mma {
    float sums[16];
} iris_d_mma_t;

/* f32 is not supported: the instructions take TF32, which has too few
 * digits. */
IRIS_DEVICE iris_bool_t iris_d_mma_can(iris_dtype_t dtype)
{
    return dtype != IRIS_DTYPE_F32;
}

IRIS_DEVICE uint32_t iris_d_mma_row(uint32_t i)
{
    return 16 * (i / 8) + iris_d_lane() % 32 / 4 + i % 4 / 2 * 8;
}

IRIS_DEVICE uint32_t iris_d_mma_col(uint32_t i)
{
    return 8 * (i / 4 % 2) + iris_d_lane() % 4 * 2 + i % 2;
}

IRIS_DEVICE float iris_d_mma_get(const iris_d_mma_t *mma, uint32_t i)
{
    return mma->sums[i];
}

IRIS_DEVICE void iris_d_mma_set(iris_d_mma_t *mma, uint32_t i, float value)
{
    mma->sums[i] = value;
}

/* Words 0 and 2 of a row of A belong to row l / 4, words 1 and 3 to the row 8
 * further down. */
#define IRIS_D_MMA(type)                                                   \
    __asm__("mma.sync.aligned.m16n8k16.row.col.f32." type "." type         \
            ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, " \
            "%2, %3};"                                                     \
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])   \
            : "r"(a.words[k]), "r"(below.words[k]), "r"(a.words[k + 1]),   \
              "r"(below.words[k + 1]), "r"(b.words[k]), "r"(b.words[k + 1]))

IRIS_DEVICE void iris_d_mma_block(float *sums, iris_quad_t a, iris_quad_t below,
                                  iris_quad_t b, iris_dtype_t dtype)
{
    IRIS_D_UNROLL
    for (int k = 0; k < 4; k += 2) {
        if (dtype == IRIS_DTYPE_F16) {
            IRIS_D_MMA("f16");
        } else {
            IRIS_D_MMA("bf16");
        }
    }
}
#undef IRIS_D_MMA

IRIS_DEVICE void iris_d_mma_step(iris_d_mma_t *mma, const char *a,
                                 const char *b, iris_dtype_t dtype)
{
    uint32_t lane = iris_d_lane() % 32;
    uint32_t at = lane / 4 * IRIS_D_MMA_PITCH + lane % 4 * 16;
    iris_quad_t x[4], y[2];

    IRIS_D_UNROLL
    for (int i = 0; i < 4; i++) {
        x[i] = *(const iris_quad_t *)(a + at + 8 * i * IRIS_D_MMA_PITCH);
    }
    IRIS_D_UNROLL
    for (int i = 0; i < 2; i++) {
        y[i] = *(const iris_quad_t *)(b + at + 8 * i * IRIS_D_MMA_PITCH);
    }
    IRIS_D_UNROLL
    for (int i = 0; i < 4; i++) {
        iris_d_mma_block(mma->sums + 4 * i, x[i / 2 * 2], x[i / 2 * 2 + 1],
                         y[i % 2], dtype);
    }
}
#endif

#endif /* IRIS_DEVICE_MMA_H */
