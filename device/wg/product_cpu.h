/* SPDX-License-Identifier: MIT
 *
 * Products of tiles on CPUs: with the processor's widest vectors.
 */
#ifndef IRIS_DEVICE_PRODUCT_CPU_H
#define IRIS_DEVICE_PRODUCT_CPU_H

#include <iris/device/wg/tile_sums.h>

#if IRIS_ON_CPU
/* `block` rows of 16 sums stay in registers while k runs. */
typedef float iris_d_float16_t
    __attribute__((vector_size(64), may_alias, aligned(4)));

IRIS_DEVICE void iris_d_sums_rows(iris_tile_sums_t *sums, uint32_t rows,
                                  uint32_t cols, uint32_t depth, uint32_t block)
{
    for (uint32_t at = 0; at < (cols + 15) / 16 * rows; at += block) {
        uint32_t row = at % rows, col = at / rows * 16;
        iris_d_float16_t sum[8];

        for (uint32_t r = 0; r < block; r++) {
            sum[r] = *(iris_d_float16_t *)&sums->values[row + r][col];
        }
        for (uint32_t k = 0; k < depth; k++) {
            iris_d_float16_t y = *(iris_d_float16_t *)&sums->stage.b[k][col];

            for (uint32_t r = 0; r < block; r++) {
                sum[r] += sums->stage.a[row + r][k] * y;
            }
        }
        for (uint32_t r = 0; r < block; r++) {
            *(iris_d_float16_t *)&sums->values[row + r][col] = sum[r];
        }
    }
}

#if IRIS_ON_X86
/* Without and with fused multiply-add, which rounds once. */
IRIS_D_AVX2 void iris_d_sums_avx2(iris_tile_sums_t *sums, uint32_t rows,
                                  uint32_t cols, uint32_t depth)
{
    iris_d_sums_rows(sums, rows, cols, depth, 4);
}

IRIS_D_FMA void iris_d_sums_fma(iris_tile_sums_t *sums, uint32_t rows,
                                uint32_t cols, uint32_t depth)
{
    iris_d_sums_rows(sums, rows, cols, depth, 4);
}

IRIS_D_AVX512 void iris_d_sums_avx512(iris_tile_sums_t *sums, uint32_t rows,
                                      uint32_t cols, uint32_t depth)
{
    iris_d_sums_rows(sums, rows, cols, depth, 8);
}
#endif

IRIS_DEVICE void iris_d_sums_multiply(iris_tile_sums_t *sums, uint32_t rows,
                                      uint32_t cols, uint32_t depth,
                                      iris_bool_t in_order)
{
#if IRIS_ON_X86
    if (!in_order && iris_d_has_avx512()) {
        iris_d_sums_avx512(sums, rows, cols, depth);
        return;
    }
    if (!in_order && iris_d_has_fma()) {
        iris_d_sums_fma(sums, rows, cols, depth);
        return;
    }
    if (iris_d_has_avx2()) {
        iris_d_sums_avx2(sums, rows, cols, depth);
        return;
    }
#endif
    (void)in_order;
    iris_d_sums_rows(sums, rows, cols, depth, 4);
}

/* Pads rows to a multiple of 8, and columns to a multiple of 16, with zeros. */
IRIS_DEVICE void iris_d_sums_load(iris_tile_sums_t *sums, iris_tile_t a,
                                  iris_tile_t b, uint32_t k, uint32_t depth,
                                  iris_dtype_t dtype)
{
    for (uint32_t r = 0; r < (a.rows + 7) / 8 * 8; r++) {
        for (uint32_t d = 0; d < depth; d++) {
            sums->stage.a[r][d] =
                r < a.rows
                    ? iris_d_sums_element(iris_d_tile_at(&a, r, k + d), dtype)
                    : 0;
        }
    }
    for (uint32_t d = 0; d < depth; d++) {
        for (uint32_t c = 0; c < b.cols; c++) {
            sums->stage.b[d][c] =
                iris_d_sums_element(iris_d_tile_at(&b, k + d, c), dtype);
        }
        for (uint32_t c = b.cols; c < (b.cols + 15) / 16 * 16; c++) {
            sums->stage.b[d][c] = 0;
        }
    }
}

IRIS_DEVICE void iris_d_sums_product(iris_wg_t wg, iris_tile_sums_t *sums,
                                     iris_tile_t a, iris_tile_t b,
                                     uint32_t whole, iris_dtype_t dtype,
                                     iris_bool_t in_order)
{
    (void)wg;
    for (uint32_t k = 0; k < whole; k += IRIS_D_SUMS_DEPTH) {
        uint32_t depth =
            whole - k < IRIS_D_SUMS_DEPTH ? whole - k : IRIS_D_SUMS_DEPTH;

        if (dtype == IRIS_DTYPE_F32) { /* a loop for each type */
            iris_d_sums_load(sums, a, b, k, depth, IRIS_DTYPE_F32);
        } else if (dtype == IRIS_DTYPE_F16) {
            iris_d_sums_load(sums, a, b, k, depth, IRIS_DTYPE_F16);
        } else {
            iris_d_sums_load(sums, a, b, k, depth, IRIS_DTYPE_BF16);
        }
        iris_d_sums_multiply(sums, (a.rows + 7) / 8 * 8, b.cols, depth,
                             in_order);
    }
}
#endif

#endif /* IRIS_DEVICE_PRODUCT_CPU_H */
