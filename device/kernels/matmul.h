/* SPDX-License-Identifier: MIT
 *
 * The product of two matrices without a vendor's library: a blocked loop on the
 * CPU, one element per lane on GPUs. Each element is the sum of its products in
 * the order of k, in float, rounded once at the end. The bits are the same on
 * every target, for every grid, and for every division of rows and columns into
 * calls.
 */
#ifndef IRIS_DEVICE_KERNELS_MATMUL_H
#define IRIS_DEVICE_KERNELS_MATMUL_H

#include <iris/device/core/half.h>
#include <iris/device/wg/kernel.h>
#include <iris/device/kernels/matmul_args.h>
#include <iris/device/core/vector.h>

IRIS_DEVICE float iris_d_plain_f32(float value)
{
    return value;
}

#if IRIS_ON_CPU
/* A tile of the result, and the part of k that is added to it at a time. Both
 * blocks of input and the tile fit in a second-level cache. */
enum {
    IRIS_D_TILE_ROWS = 32,
    IRIS_D_TILE_COLS = 64,
    IRIS_D_TILE_DEPTH = 256,
};

typedef struct iris_d_tile {
    float a[IRIS_D_TILE_ROWS][IRIS_D_TILE_DEPTH];
    float b[IRIS_D_TILE_DEPTH][IRIS_D_TILE_COLS];
    float sum[IRIS_D_TILE_ROWS][IRIS_D_TILE_COLS];
    uint64_t row; /* position of its first element */
    uint64_t col;
    uint64_t rows;
    uint64_t cols;
} iris_d_tile_t;

/* Adds `depth` products to each sum. */
IRIS_DEVICE void iris_d_tile_multiply(iris_d_tile_t *tile, uint64_t depth)
{
    for (uint64_t i = 0; i < tile->rows; i++) {
        for (uint64_t k = 0; k < depth; k++) {
            float x = tile->a[i][k];

            for (int j = 0; j < IRIS_D_TILE_COLS; j++) {
                tile->sum[i][j] += iris_d_product_f32(x, tile->b[k][j]);
            }
        }
    }
}

#if IRIS_ON_X86
IRIS_D_AVX2 void iris_d_tile_multiply_avx2(iris_d_tile_t *tile, uint64_t depth)
{
    iris_d_tile_multiply(tile, depth);
}
#endif

IRIS_DEVICE void iris_d_tile_add(iris_d_tile_t *tile, uint64_t depth)
{
#if IRIS_ON_X86
    if (iris_d_has_avx2()) {
        iris_d_tile_multiply_avx2(tile, depth);
        return;
    }
#endif
    iris_d_tile_multiply(tile, depth);
}

IRIS_DEVICE uint64_t iris_d_tile_least(uint64_t left, uint64_t size)
{
    return left < size ? left : size;
}

IRIS_DEVICE void iris_d_tile_begin(iris_d_tile_t *tile,
                                   const struct iris_matmul_args *args,
                                   uint64_t down, uint64_t across)
{
    tile->row = down * IRIS_D_TILE_ROWS;
    tile->col = across * IRIS_D_TILE_COLS;
    tile->rows = iris_d_tile_least(args->m - tile->row, IRIS_D_TILE_ROWS);
    tile->cols = iris_d_tile_least(args->n - tile->col, IRIS_D_TILE_COLS);
    for (uint64_t i = 0; i < tile->rows; i++) {
        for (int j = 0; j < IRIS_D_TILE_COLS; j++) {
            tile->sum[i][j] = 0;
        }
    }
}

/* The functions of one element type. */
#define IRIS_D_MATMUL_OF(name, TYPE, to_f32, from_f32)                        \
    IRIS_DEVICE void iris_d_tile_load_##name(                                 \
        iris_d_tile_t *tile, const struct iris_matmul_args *args, uint64_t k, \
        uint64_t depth)                                                       \
    {                                                                         \
        const TYPE *a = (const TYPE *)args->a.data +                          \
                        (int64_t)tile->row * args->a.row +                    \
                        (int64_t)k * args->a.col;                             \
        const TYPE *b = (const TYPE *)args->b.data +                          \
                        (int64_t)tile->col * args->b.col +                    \
                        (int64_t)k * args->b.row;                             \
                                                                              \
        for (uint64_t i = 0; i < tile->rows; i++) {                           \
            for (uint64_t d = 0; d < depth; d++) {                            \
                tile->a[i][d] = to_f32(                                       \
                    a[(int64_t)i * args->a.row + (int64_t)d * args->a.col]);  \
            }                                                                 \
        }                                                                     \
        for (uint64_t d = 0; d < depth; d++) {                                \
            for (uint64_t j = 0; j < tile->cols; j++) {                       \
                tile->b[d][j] = to_f32(                                       \
                    b[(int64_t)d * args->b.row + (int64_t)j * args->b.col]);  \
            }                                                                 \
            for (uint64_t j = tile->cols; j < IRIS_D_TILE_COLS; j++) {        \
                tile->b[d][j] = 0;                                            \
            }                                                                 \
        }                                                                     \
    }                                                                         \
                                                                              \
    IRIS_DEVICE void iris_d_tile_store_##name(                                \
        const iris_d_tile_t *tile, const struct iris_matmul_args *args)       \
    {                                                                         \
        const TYPE *bias = (const TYPE *)args->bias.data;                     \
        TYPE *out = (TYPE *)args->out;                                        \
                                                                              \
        for (uint64_t i = 0; i < tile->rows; i++) {                           \
            for (uint64_t j = 0; j < tile->cols; j++) {                       \
                int64_t row = (int64_t)(tile->row + i);                       \
                int64_t col = (int64_t)(tile->col + j);                       \
                float sum = tile->sum[i][j];                                  \
                                                                              \
                if (bias != NULL) {                                           \
                    sum += to_f32(                                            \
                        bias[row * args->bias.row + col * args->bias.col]);   \
                }                                                             \
                out[row * args->out_row + col] = from_f32(sum);               \
            }                                                                 \
        }                                                                     \
    }

#define IRIS_D_MATMUL_BODY(name)                                           \
    uint64_t across = (args->n + IRIS_D_TILE_COLS - 1) / IRIS_D_TILE_COLS; \
    uint64_t down = (args->m + IRIS_D_TILE_ROWS - 1) / IRIS_D_TILE_ROWS;   \
    iris_d_tile_t tile;                                                    \
                                                                           \
    IRIS_LANES (wg, t, across * down) {                                    \
        iris_d_tile_begin(&tile, args, t / across, t % across);            \
        for (uint64_t k = 0; k < args->k; k += IRIS_D_TILE_DEPTH) {        \
            uint64_t depth =                                               \
                iris_d_tile_least(args->k - k, IRIS_D_TILE_DEPTH);         \
                                                                           \
            iris_d_tile_load_##name(&tile, args, k, depth);                \
            iris_d_tile_add(&tile, depth);                                 \
        }                                                                  \
        iris_d_tile_store_##name(&tile, args);                             \
    }

#else
/* One element of the result, by one lane. */
#define IRIS_D_MATMUL_OF(name, TYPE, to_f32, from_f32)                      \
    IRIS_DEVICE void iris_d_element_##name(                                 \
        const struct iris_matmul_args *args, uint64_t row, uint64_t col)    \
    {                                                                       \
        const TYPE *a =                                                     \
            (const TYPE *)args->a.data + (int64_t)row * args->a.row;        \
        const TYPE *b =                                                     \
            (const TYPE *)args->b.data + (int64_t)col * args->b.col;        \
        const TYPE *bias = (const TYPE *)args->bias.data;                   \
        float sum = 0;                                                      \
                                                                            \
        for (uint64_t k = 0; k < args->k; k++) {                            \
            sum += iris_d_product_f32(to_f32(a[(int64_t)k * args->a.col]),  \
                                      to_f32(b[(int64_t)k * args->b.row])); \
        }                                                                   \
        if (bias != NULL) {                                                 \
            sum += to_f32(bias[(int64_t)row * args->bias.row +              \
                               (int64_t)col * args->bias.col]);             \
        }                                                                   \
        ((TYPE *)args->out)[(int64_t)row * args->out_row + (int64_t)col] =  \
            from_f32(sum);                                                  \
    }

#define IRIS_D_MATMUL_BODY(name)                               \
    IRIS_LANES (wg, i, args->m * args->n) {                    \
        iris_d_element_##name(args, i / args->n, i % args->n); \
    }

#endif

#define IRIS_D_MATMUL(name, TYPE, to_f32, from_f32)            \
    IRIS_D_MATMUL_OF(name, TYPE, to_f32, from_f32)             \
    IRIS_KERNEL(iris_k_matmul_##name, struct iris_matmul_args) \
    {                                                          \
        IRIS_D_MATMUL_BODY(name)                               \
    }

IRIS_D_MATMUL(f32, float, iris_d_plain_f32, iris_d_plain_f32)
IRIS_D_MATMUL(f16, iris_f16_t, iris_f16_to_f32, iris_f16_from_f32)
IRIS_D_MATMUL(bf16, iris_bf16_t, iris_bf16_to_f32, iris_bf16_from_f32)

#endif /* IRIS_DEVICE_KERNELS_MATMUL_H */
