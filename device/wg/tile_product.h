/* SPDX-License-Identifier: MIT
 *
 * The product of two tiles by a workgroup: matrix instructions on GPUs that
 * have them, vectors on CPUs, a plain loop elsewhere.
 *
 * @use workgroup; never blocks; CPU nodes
 * @param sums  sums in the local memory of the workgroup
 * @param a, b  the factors
 * @param to  target of the sums
 */
#ifndef IRIS_DEVICE_TILE_PRODUCT_H
#define IRIS_DEVICE_TILE_PRODUCT_H

#include <iris/device/wg/product_cpu.h>
#include <iris/device/wg/product_gpu.h>

IRIS_DEVICE void iris_d_tile_product(iris_wg_t wg, iris_tile_sums_t *sums,
                                     iris_tile_t a, iris_tile_t b,
                                     iris_dtype_t dtype, iris_bool_t in_order)
{
    uint32_t whole;

    a.rows = a.rows < IRIS_SUMS_ROWS ? a.rows : IRIS_SUMS_ROWS;
    b.cols = b.cols < IRIS_SUMS_COLS ? b.cols : IRIS_SUMS_COLS;
    whole = a.cols < b.rows ? a.cols : b.rows;
    a.cols = b.rows = whole;
    iris_wg_barrier(wg);
    if (iris_d_sums_know(dtype)) {
        iris_d_sums_product(wg, sums, a, b, whole, dtype, in_order);
    }
    iris_wg_barrier(wg);
}

/** Adds the product of `a` and `b`, both in this rank's global memory, to the
 *  sums, in f32. Rows of `a` beyond IRIS_SUMS_ROWS and columns of `b` beyond
 *  IRIS_SUMS_COLS are ignored. k is the lesser of a.cols and b.rows. A multiple
 *  of 256 lanes is best. With fewer, each wavefront takes several blocks in
 *  turn.
 *
 *  gfx90a, gfx942 and gfx950 multiply with MFMA; gfx90a takes subnormal f16 and
 *  bf16 as 0. NVIDIA GPUs since sm_80 use mma.sync for f16 and bf16, and a
 *  plain loop for f32. CPUs use vectors. So the target decides the order of the
 *  additions and the number of roundings, and with them the last bits.
 *
 *  Begins and ends with iris_wg_barrier(): all lanes may then use the sums, and
 *  write to `a` and `b`. */
IRIS_DEVICE void iris_wg_tile_product(iris_wg_t wg, iris_tile_sums_t *sums,
                                      iris_tile_t a, iris_tile_t b,
                                      iris_dtype_t dtype)
{
    iris_d_tile_product(wg, sums, a, b, dtype, 0);
}

/** Like iris_wg_tile_product(), in the order of a plain loop: rounds each
 *  product, then adds it, in the order of k. Sums have the same bits on every
 *  target, with any number of lanes, and however k is divided between calls.
 *  Slower, because it uses no matrix instructions. */
IRIS_DEVICE void iris_wg_tile_product_in_order(iris_wg_t wg,
                                               iris_tile_sums_t *sums,
                                               iris_tile_t a, iris_tile_t b,
                                               iris_dtype_t dtype)
{
    iris_d_tile_product(wg, sums, a, b, dtype, 1);
}

/* The rows and columns of the sums that a tile has. */
IRIS_DEVICE iris_tile_t iris_d_sums_cut(iris_tile_t tile, iris_dtype_t dtype)
{
    tile.rows = tile.rows < IRIS_SUMS_ROWS ? tile.rows : IRIS_SUMS_ROWS;
    tile.cols = tile.cols < IRIS_SUMS_COLS ? tile.cols : IRIS_SUMS_COLS;
    tile.rows = iris_d_sums_know(dtype) ? tile.rows : 0;
    return tile;
}

#if !IRIS_ON_CPU
/* Stores 16 bytes per lane if that is possible. */
IRIS_DEVICE void iris_d_sums_store(iris_wg_t wg, const iris_tile_sums_t *sums,
                                   const iris_tile_t *to, iris_dtype_t dtype)
{
    uint32_t elems = dtype == IRIS_DTYPE_F32 ? 4 : 8;

    if (!iris_d_stage_wide(to)) {
        IRIS_WG_LANES (wg, i, to->rows * IRIS_SUMS_COLS) {
            uint32_t r = (uint32_t)i / IRIS_SUMS_COLS;
            uint32_t c = (uint32_t)i % IRIS_SUMS_COLS;

            if (c < to->cols) {
                iris_d_sums_to_element(
                    iris_d_global((uintptr_t)iris_d_tile_at(to, r, c)),
                    sums->values[r][c], dtype);
            }
        }
        return;
    }
    IRIS_WG_LANES (wg, i, to->rows * (IRIS_SUMS_COLS / elems)) {
        uint32_t r = (uint32_t)i / (IRIS_SUMS_COLS / elems);
        uint32_t c = (uint32_t)i % (IRIS_SUMS_COLS / elems) * elems;
        const float *from = &sums->values[r][c];
        iris_d_stage_word_t word;

        IRIS_D_UNROLL
        for (int w = 0; w < 4; w++) {
            word.words[w] = dtype == IRIS_DTYPE_F32
                                ? iris_d_sums_bits(from[w], dtype)
                                : iris_d_sums_bits(from[2 * w], dtype) |
                                      iris_d_sums_bits(from[2 * w + 1], dtype)
                                          << 16;
        }
        if (c < to->cols) {
            *(iris_d_u128_t *)iris_d_global(
                (uintptr_t)iris_d_tile_at(to, r, c)) = word.wide;
        }
    }
}
#endif

/** Rounds each sum to `dtype` once and stores it to where to_rank keeps `to`.
 *  Stores the rows and columns that both `to` and the sums have. to_rank may be
 *  this rank. Orders nothing, like iris_wg_put(). The sums may be written after
 *  the next iris_wg_barrier(). */
IRIS_DEVICE void iris_wg_tile_sums_put(iris_wg_t wg, iris_dev_t dev,
                                       const iris_tile_sums_t *sums,
                                       iris_tile_t to, iris_dtype_t dtype,
                                       int to_rank)
{
#if IRIS_ON_CPU
    float rounded[IRIS_SUMS_ROWS * IRIS_SUMS_COLS];
    char *at = (char *)rounded;

    to = iris_d_sums_cut(to, dtype);
    for (uint32_t i = 0; i < to.rows * to.cols; i++) {
        iris_d_sums_to_element(at + (size_t)i * to.elem_bytes,
                               sums->values[i / to.cols][i % to.cols], dtype);
    }
    iris_wg_tile_store(wg, dev, to, rounded, to_rank);
#else
    to = iris_d_sums_cut(to, dtype);
    to.elem_bytes = dtype == IRIS_DTYPE_F32 ? 4 : 2;
    if (to.rows == 0 || to.cols == 0) {
        return;
    }
    IRIS_D_HOOK(dev.watched,
                IRIS_D_CALL(before_both, dev, to.data, dev.rank, to.data,
                            to_rank,
                            iris_d_bulk(IRIS_OP_PUT, (size_t)to.rows * to.cols *
                                                         to.elem_bytes)));
    to.data = iris_d_translate(dev, to.data, to_rank);
    iris_d_sums_store(wg, sums, &to, dtype);
    IRIS_D_HOOK(dev.watched, IRIS_D_CALL(after_both, dev, 0));
#endif
}

#endif /* IRIS_DEVICE_TILE_PRODUCT_H */
