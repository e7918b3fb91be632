/* SPDX-License-Identifier: MIT
 *
 * Products of tiles on GPUs: by matrix instructions, and by a plain loop.
 */
#ifndef IRIS_DEVICE_PRODUCT_GPU_H
#define IRIS_DEVICE_PRODUCT_GPU_H

#include <iris/device/wg/mma.h>
#include <iris/device/wg/tile_sums.h>

#if !IRIS_ON_CPU
/* Lanes copy 16 bytes of an operand at a time to local memory. The rows of
 * `tile` are the lines, and k runs along its columns. Zeros stand beyond its
 * edges. */

typedef union iris_d_stage_word {
    iris_d_u128_t wide;
    uint32_t words[4];
} iris_d_stage_word_t;

/* For elements that are adjacent along k. */
IRIS_DEVICE void iris_d_stage_along(iris_wg_t wg, char *to,
                                    const iris_tile_t *tile, uint32_t k,
                                    uint32_t pitch)
{
    uint32_t elems = 16 / tile->elem_bytes;

    IRIS_WG_LANES (wg, i, 64 * 4) {
        uint32_t line = (uint32_t)i / 4, part = (uint32_t)i % 4;
        iris_d_stage_word_t word = {{0, 0, 0, 0}};

        if (line < tile->rows && k + part * elems < tile->cols) {
            word.wide = *(const iris_d_u128_t *)iris_d_global(
                (uintptr_t)iris_d_tile_at(tile, line, k + part * elems));
        }
        *(iris_d_u128_t *)(to + line * pitch + part * 16) = word.wide;
    }
}

/* For elements that are adjacent across lines. */
IRIS_DEVICE void iris_d_stage_across(iris_wg_t wg, char *to,
                                     const iris_tile_t *tile, uint32_t k,
                                     uint32_t pitch)
{
    uint32_t elem = tile->elem_bytes, elems = 16 / elem, across = 64 / elems;

    IRIS_WG_LANES (wg, i, 64 * 4) {
        uint32_t line = (uint32_t)i % across * elems;
        uint32_t d = (uint32_t)i / across;
        char *at = to + line * pitch + d * elem;
        iris_d_stage_word_t word = {{0, 0, 0, 0}};

        if (line < tile->rows && k + d < tile->cols) {
            word.wide = *(const iris_d_u128_t *)iris_d_global(
                (uintptr_t)iris_d_tile_at(tile, line, k + d));
        }
        IRIS_D_UNROLL
        for (uint32_t w = 0; w < 4; w++) {
            if (elem == 4) {
                *(iris_d_u32_t *)(at + w * pitch) = word.words[w];
            } else {
                *(iris_d_u16_t *)(at + 2 * w * pitch) = (uint16_t)word.words[w];
                *(iris_d_u16_t *)(at + (2 * w + 1) * pitch) =
                    (uint16_t)(word.words[w] >> 16);
            }
        }
    }
}

/* For any strides and alignment. */
IRIS_DEVICE void iris_d_stage_each(iris_wg_t wg, char *to,
                                   const iris_tile_t *tile, uint32_t k,
                                   uint32_t pitch)
{
    uint32_t elem = tile->elem_bytes, step = IRIS_D_SUMS_STEP / elem;

    IRIS_WG_LANES (wg, i, 64 * step) {
        uint32_t line = (uint32_t)i / step, d = (uint32_t)i % step;
        iris_bool_t there = line < tile->rows && k + d < tile->cols;
        const void *from =
            iris_d_global((uintptr_t)(there ? iris_d_tile_at(tile, line, k + d)
                                            : (const char *)tile->data));
        char *at = to + line * pitch + d * elem;

        if (elem == 4) {
            *(iris_d_u32_t *)at = there ? *(const iris_d_u32_t *)from : 0;
        } else {
            *(iris_d_u16_t *)at = there ? *(const iris_d_u16_t *)from : 0;
        }
    }
}

/* Whether rows may be read 16 bytes at a time: they begin aligned and end at a
 * multiple of 16 bytes. */
IRIS_DEVICE iris_bool_t iris_d_stage_wide(const iris_tile_t *tile)
{
    return tile->col_stride == 1 &&
           (((uintptr_t)tile->data |
             (uint64_t)tile->row_stride * tile->elem_bytes |
             (uint64_t)tile->cols * tile->elem_bytes) &
            15) == 0;
}

IRIS_DEVICE void iris_d_stage(iris_wg_t wg, char *to, iris_tile_t tile,
                              uint32_t k, uint32_t pitch)
{
    iris_tile_t turned = iris_tile_transposed(tile);

    if (iris_d_stage_wide(&tile)) {
        iris_d_stage_along(wg, to, &tile, k, pitch);
    } else if (iris_d_stage_wide(&turned)) {
        iris_d_stage_across(wg, to, &tile, k, pitch);
    } else {
        iris_d_stage_each(wg, to, &tile, k, pitch);
    }
}

/* Copies the part of k that begins at `k` to local memory. */
IRIS_DEVICE void iris_d_sums_load(iris_wg_t wg, iris_tile_sums_t *sums,
                                  iris_tile_t a, iris_tile_t b, uint32_t k,
                                  uint32_t pitch)
{
    iris_d_wg_barrier(); /* no lane reads the last step's elements any more */
    iris_d_stage(wg, (char *)sums->stage.a, a, k, pitch);
    iris_d_stage(wg, (char *)sums->stage.b, iris_tile_transposed(b), k, pitch);
    iris_d_wg_barrier();
}

/* 4 * 4 sums of a lane: adjacent rows, columns 16 apart. */
IRIS_DEVICE void iris_d_sums_step(float sum[4][4], const char *a, const char *b,
                                  uint32_t depth, iris_dtype_t dtype)
{
    uint32_t elem = dtype == IRIS_DTYPE_F32 ? 4 : 2;

    for (uint32_t d = 0; d < depth; d++) {
        IRIS_D_UNROLL
        for (int i = 0; i < 4; i++) {
            float x = iris_d_sums_element(
                a + i * (int)IRIS_D_SUMS_PITCH + d * elem, dtype);

            IRIS_D_UNROLL
            for (int j = 0; j < 4; j++) {
                sum[i][j] += iris_d_product_f32(
                    x,
                    iris_d_sums_element(
                        b + 16 * j * (int)IRIS_D_SUMS_PITCH + d * elem, dtype));
            }
        }
    }
}

/* Sums in the order of k. Each lane has 4 * 4 sums; with fewer lanes, each
 * takes several such blocks in turn. */
IRIS_DEVICE void iris_d_sums_plain(iris_wg_t wg, iris_tile_sums_t *sums,
                                   iris_tile_t a, iris_tile_t b, uint32_t whole,
                                   iris_dtype_t dtype)
{
    uint32_t step = IRIS_D_SUMS_STEP / a.elem_bytes;

    for (uint32_t first = 0; first < 256; first += wg.num_lanes) {
        uint32_t mine = first + iris_d_lane();
        uint32_t row = mine / 16 * 4, col = mine % 16;
        float sum[4][4];

        IRIS_D_UNROLL
        for (int i = 0; i < 16; i++) {
            sum[i / 4][i % 4] =
                mine < 256 ? sums->values[row + i / 4][col + 16 * (i % 4)] : 0;
        }
        for (uint32_t k = 0; k < whole; k += step) {
            iris_d_sums_load(wg, sums, a, b, k, IRIS_D_SUMS_PITCH);
            if (mine < 256) {
                iris_d_sums_step(
                    sum, (char *)sums->stage.a + row * IRIS_D_SUMS_PITCH,
                    (char *)sums->stage.b + col * IRIS_D_SUMS_PITCH,
                    whole - k < step ? whole - k : step, dtype);
            }
        }
        IRIS_D_UNROLL
        for (int i = 0; i < 16; i++) {
            if (mine < 256) {
                sums->values[row + i / 4][col + 16 * (i % 4)] =
                    sum[i / 4][i % 4];
            }
        }
    }
}

#if IRIS_D_HAS_MMA
/* Each wavefront has a block of sums; with fewer wavefronts, each takes several
 * blocks in turn. */
IRIS_DEVICE void iris_d_sums_mma(iris_wg_t wg, iris_tile_sums_t *sums,
                                 iris_tile_t a, iris_tile_t b, uint32_t whole,
                                 iris_dtype_t dtype)
{
    const uint32_t across = IRIS_SUMS_COLS / IRIS_D_MMA_COLS;
    const uint32_t blocks = IRIS_SUMS_ROWS / IRIS_D_MMA_ROWS * across;
    uint32_t waves = wg.num_lanes / IRIS_D_WAVE, wave = iris_wave_id(wg);
    iris_d_mma_t mma;

    for (uint32_t first = 0; first < blocks; first += waves) {
        iris_bool_t works = wave < waves && first + wave < blocks;
        uint32_t row = (first + wave) / across * IRIS_D_MMA_ROWS;
        uint32_t col = (first + wave) % across * IRIS_D_MMA_COLS;

        IRIS_D_UNROLL
        for (uint32_t i = 0; i < 16; i++) {
            iris_d_mma_set(&mma, i,
                           works ? sums->values[row + iris_d_mma_row(i)]
                                               [col + iris_d_mma_col(i)]
                                 : 0);
        }
        for (uint32_t k = 0; k < whole; k += IRIS_D_SUMS_STEP / a.elem_bytes) {
            iris_d_sums_load(wg, sums, a, b, k, IRIS_D_MMA_PITCH);
            if (works) {
                iris_d_mma_step(
                    &mma, (char *)sums->stage.a + row * IRIS_D_MMA_PITCH,
                    (char *)sums->stage.b + col * IRIS_D_MMA_PITCH, dtype);
            }
        }
        IRIS_D_UNROLL
        for (uint32_t i = 0; works && i < 16; i++) {
            sums->values[row + iris_d_mma_row(i)][col + iris_d_mma_col(i)] =
                iris_d_mma_get(&mma, i);
        }
    }
}
#endif

IRIS_DEVICE void iris_d_sums_product(iris_wg_t wg, iris_tile_sums_t *sums,
                                     iris_tile_t a, iris_tile_t b,
                                     uint32_t whole, iris_dtype_t dtype,
                                     iris_bool_t in_order)
{
    a.elem_bytes = b.elem_bytes = dtype == IRIS_DTYPE_F32 ? 4 : 2;
#if IRIS_D_HAS_MMA
    if (!in_order && wg.num_lanes >= IRIS_D_WAVE && iris_d_mma_can(dtype)) {
        iris_d_sums_mma(wg, sums, a, b, whole, dtype);
        return;
    }
#endif
    (void)in_order;
    iris_d_sums_plain(wg, sums, a, b, whole, dtype);
}
#endif

#endif /* IRIS_DEVICE_PRODUCT_GPU_H */
