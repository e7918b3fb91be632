/* SPDX-License-Identifier: MIT
 *
 * The sums of a tile of a product, in a workgroup's local memory.
 *
 * @use workgroup; never blocks
 * @param sums  sums in the local memory of the workgroup
 */
#ifndef IRIS_DEVICE_TILE_SUMS_H
#define IRIS_DEVICE_TILE_SUMS_H

#include <iris/device/core/rma.h>
#include <iris/device/wg/tile.h>
#include <iris/device/wg/wave.h>

/** Rows and columns of the sums: the largest tile of a result. */
#define IRIS_SUMS_ROWS 64u
#define IRIS_SUMS_COLS 64u

/* The part of k that is in local memory at a time. GPUs keep the elements in
 * their own type, with a line of `pitch` bytes for each row of A and each
 * column of B. */
#if IRIS_ON_CPU
#define IRIS_D_SUMS_DEPTH 128u

typedef struct iris_d_sums_stage {
    float a[IRIS_SUMS_ROWS][IRIS_D_SUMS_DEPTH];
    float b[IRIS_D_SUMS_DEPTH][IRIS_SUMS_COLS];
} iris_d_sums_stage_t;
#else
#define IRIS_D_SUMS_STEP 64u
#define IRIS_D_SUMS_PITCH 80u

typedef struct iris_d_sums_stage {
    iris_quad_t a[IRIS_SUMS_ROWS * IRIS_D_SUMS_PITCH / 16];
    iris_quad_t b[IRIS_SUMS_COLS * IRIS_D_SUMS_PITCH / 16];
} iris_d_sums_stage_t;
#endif

/** The sums of a tile of a result, in the workgroup's local memory:
 *
 *     IRIS_WG_LOCAL(iris_tile_sums_t, sums, 1);
 *
 *     iris_wg_tile_sums_zero(wg, sums);
 *     iris_wg_tile_product(wg, sums, a, b, IRIS_DTYPE_BF16);
 *     iris_wg_tile_sums_put(wg, dev, sums, c, IRIS_DTYPE_BF16, to_rank);
 *
 *  Lanes may read and write `values` between these calls, after
 *  iris_wg_barrier(). */
typedef struct iris_tile_sums {
    float values[IRIS_SUMS_ROWS][IRIS_SUMS_COLS];
    iris_d_sums_stage_t stage; /* the operands of the product */
} iris_tile_sums_t;

/* ---- Calls of a workgroup --------------------------------------------------
 *
 * All lanes of the workgroup call the functions below together, with the same
 * arguments, outside lane loops. `dtype` is IRIS_DTYPE_F32, _F16 or _BF16, best
 * a constant. With any other dtype they do nothing. */

/** Sets all sums to 0. */
IRIS_DEVICE void iris_wg_tile_sums_zero(iris_wg_t wg, iris_tile_sums_t *sums)
{
    IRIS_WG_LANES (wg, i, IRIS_SUMS_ROWS * IRIS_SUMS_COLS) {
        sums->values[i / IRIS_SUMS_COLS][i % IRIS_SUMS_COLS] = 0;
    }
}

IRIS_DEVICE iris_bool_t iris_d_sums_know(iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F32 || dtype == IRIS_DTYPE_F16 ||
           dtype == IRIS_DTYPE_BF16;
}

IRIS_DEVICE float iris_d_sums_element(const void *element, iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F32 ? *(const float *)element
           : dtype == IRIS_DTYPE_F16
               ? iris_f16_to_f32(*(const iris_f16_t *)element)
               : iris_bf16_to_f32(*(const iris_bf16_t *)element);
}

/* The bits of a sum as an element. */
IRIS_DEVICE uint32_t iris_d_sums_bits(float sum, iris_dtype_t dtype)
{
    return dtype == IRIS_DTYPE_F32   ? (uint32_t)iris_d_bits_f32(sum)
           : dtype == IRIS_DTYPE_F16 ? iris_f16_from_f32(sum).bits
                                     : iris_bf16_from_f32(sum).bits;
}

IRIS_DEVICE void iris_d_sums_to_element(void *element, float sum,
                                        iris_dtype_t dtype)
{
    if (dtype == IRIS_DTYPE_F32) {
        *(float *)element = sum;
    } else {
        *(iris_d_u16_t *)element = (uint16_t)iris_d_sums_bits(sum, dtype);
    }
}

/* Element (r, c) of a tile. */
IRIS_DEVICE char *iris_d_tile_at(const iris_tile_t *tile, uint32_t r,
                                 uint32_t c)
{
    return (char *)tile->data + (r * tile->row_stride + c * tile->col_stride) *
                                    (int64_t)tile->elem_bytes;
}

#endif /* IRIS_DEVICE_TILE_SUMS_H */
