/* SPDX-License-Identifier: MIT
 *
 * Reductions on the CPU: rows of elements, combined one member after the other
 * in loops that compilers vectorise, with vectors of 32 bytes where the CPU has
 * them.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_ROWS_H
#define IRIS_DEVICE_KERNELS_CCL_ROWS_H

#include <iris/device/kernels/ccl_fold.h>
#include <iris/device/kernels/ccl_meet.h>
#include <iris/device/core/vector.h>

/* Bytes of a row: its sums stay in the processor's first cache. */
#define IRIS_CCL_ROW 2048

#if IRIS_ON_CPU
/* `count` members' rows of n elements, `at` bytes after the addresses in a
 * table. `avx2` is a constant when the loops are compiled. */
typedef struct iris_d_ccl_row {
    const iris_d_u64_t *in;
    size_t at;
    size_t n;
    uint32_t count;
    iris_reduce_op_t op;
    struct iris_ccl_scale scale;
    const void *before; /* not NULL: sums that these elements are added to */
    void *sums; /* not NULL: gets the sums, neither scaled nor rounded */
    iris_bool_t avx2;
} iris_d_ccl_row_t;

/* clang-format off */
/* For f32: to[i] = iris_d_merge_f32(op, a[i], b[i]). `to` is neither `a` nor
 * `b`: compilers vectorise only ranges that they know not to overlap. */
#define IRIS_D_CASE(name, op)                                                  \
    case op:                                                                   \
        for (size_t i = 0; i < n; i++) {                                       \
            to[i] = iris_d_merge_##name(op, a[i], b[i]);                       \
        }                                                                      \
        break;
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_d_merge_row_##name(                                  \
        iris_reduce_op_t op, c_type *__restrict to,                            \
        const c_type *__restrict a, const c_type *__restrict b, size_t n)      \
    {                                                                          \
        switch (op) {                                                          \
            IRIS_D_CASE(name, IRIS_REDUCE_SUM)                                 \
            IRIS_D_CASE(name, IRIS_REDUCE_PRODUCT)                             \
            IRIS_D_CASE(name, IRIS_REDUCE_MIN)                                 \
            IRIS_D_CASE(name, IRIS_REDUCE_MAX)                                 \
            arg(name)                                                          \
        default: /* the host has refused it */                                 \
            break;                                                             \
        }                                                                      \
    }
#define IRIS_D_BITWISE(name)                                                   \
    IRIS_D_CASE(name, IRIS_REDUCE_BAND)                                        \
    IRIS_D_CASE(name, IRIS_REDUCE_BOR)                                         \
    IRIS_D_CASE(name, IRIS_REDUCE_BXOR)
#define IRIS_D_NO_MORE(name)
IRIS_INTEGER_TYPES(IRIS_D_ROW, IRIS_D_BITWISE)
IRIS_D_ROW(f32, float, IRIS_D_NO_MORE)
IRIS_D_ROW(f64, double, IRIS_D_NO_MORE)
#undef IRIS_D_NO_MORE
#undef IRIS_D_BITWISE
#undef IRIS_D_ROW
#undef IRIS_D_CASE
#define iris_d_merge_row_f16 iris_d_merge_row_f32
#define iris_d_merge_row_bf16 iris_d_merge_row_f32
#define iris_d_merge_row_f8e4m3 iris_d_merge_row_f32
#define iris_d_merge_row_f8e5m2 iris_d_merge_row_f32

/* A row as sums: the row itself, or a conversion in `space`. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE const c_type *iris_d_widen_row_##name(                         \
        const iris_d_ccl_row_t *row, const c_type *from, c_type *space)        \
    {                                                                          \
        (void)row;                                                             \
        (void)space;                                                           \
        return from;                                                           \
    }
IRIS_INTEGER_TYPES(IRIS_D_ROW, )
IRIS_D_ROW(f32, float, )
IRIS_D_ROW(f64, double, )
#undef IRIS_D_ROW

#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE const float *iris_d_widen_row_##name(                          \
        const iris_d_ccl_row_t *row, const c_type *from, float *space)         \
    {                                                                          \
        for (size_t i = 0; i < row->n; i++) {                                  \
            space[i] = iris_d_widen_##name(from[i]);                           \
        }                                                                      \
        return space;                                                          \
    }
IRIS_D_ROW(bf16, iris_bf16_t, )
IRIS_FLOAT8_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

IRIS_DEVICE const float *iris_d_widen_row_f16(const iris_d_ccl_row_t *row,
                                              const iris_f16_t *from,
                                              float *space)
{
#if IRIS_ON_X86
    if (row->avx2) {
        iris_d_f32_row_avx2(space, from, row->n);
        return space;
    }
#endif
    for (size_t i = 0; i < row->n; i++) {
        space[i] = iris_f16_to_f32(from[i]);
    }
    return space;
}

/* For f32: multiplies the sums by the call's factor, if it has one. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_d_scale_row_##name(const iris_d_ccl_row_t *row,      \
                                             IRIS_D_SUM_##name *sums)          \
    {                                                                          \
        for (size_t i = 0; row->scale.arg != 1 && i < row->n; i++) {           \
            sums[i] = IRIS_D_SCALE_##name(sums[i], row->scale);                \
        }                                                                      \
    }
IRIS_D_ROW(f32, float, f32)
IRIS_D_ROW(f64, double, f64)
#undef IRIS_D_ROW
#define iris_d_scale_row_f16 iris_d_scale_row_f32
#define iris_d_scale_row_bf16 iris_d_scale_row_f32
#define iris_d_scale_row_f8e4m3 iris_d_scale_row_f32
#define iris_d_scale_row_f8e5m2 iris_d_scale_row_f32
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_d_scale_row_##name(const iris_d_ccl_row_t *row,      \
                                             c_type *sums)                     \
    {                                                                          \
        (void)row;                                                             \
        (void)sums;                                                            \
    }
IRIS_INTEGER_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/* Sums as elements. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_d_narrow_row_##name(const iris_d_ccl_row_t *row,     \
                                              c_type *__restrict to,           \
                                              IRIS_D_SUM_##name *__restrict sums) \
    {                                                                          \
        arg(name)                                                              \
        for (size_t i = 0; i < row->n; i++) {                                  \
            to[i] = iris_d_narrow_##name(sums[i]);                             \
        }                                                                      \
    }
#define IRIS_D_PLAIN(name)
#if IRIS_ON_X86
#define IRIS_D_BY_VECTOR(name)                                                 \
    if (row->avx2) {                                                           \
        for (size_t i = 0; i < row->n; i++) {                                  \
            sums[i] = iris_d_narrow_f32(sums[i]);                              \
        }                                                                      \
        iris_d_f16_row_avx2(to, sums, (int32_t)row->n);                        \
        return;                                                                \
    }
#else
#define IRIS_D_BY_VECTOR(name)
#endif
IRIS_INTEGER_TYPES(IRIS_D_ROW, IRIS_D_PLAIN)
IRIS_D_ROW(f16, iris_f16_t, IRIS_D_BY_VECTOR)
IRIS_D_ROW(bf16, iris_bf16_t, IRIS_D_PLAIN)
IRIS_D_ROW(f32, float, IRIS_D_PLAIN)
IRIS_D_ROW(f64, double, IRIS_D_PLAIN)
IRIS_FLOAT8_TYPES(IRIS_D_ROW, IRIS_D_PLAIN)
#undef IRIS_D_BY_VECTOR
#undef IRIS_D_PLAIN
#undef IRIS_D_ROW

/* For f32: iris_d_row_f32() combines the rows of two or more members, or of
 * one with the sums before it or after it, and
 * writes the result after it has read all of them. iris_d_row_avx2_f32() does
 * so with vectors of 32 bytes. */
#define IRIS_D_AT(row, k) (iris_d_ccl_at((row)->in, k) + (row)->at)
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_d_row_##name(const iris_d_ccl_row_t *row, char *to)  \
    {                                                                          \
        IRIS_D_SUM_##name sums[2][IRIS_CCL_ROW / sizeof(c_type)];              \
        IRIS_D_SUM_##name next[IRIS_CCL_ROW / sizeof(c_type)];                 \
        const IRIS_D_SUM_##name *before =                                      \
            row->before != NULL                                                \
                ? (const IRIS_D_SUM_##name *)row->before                       \
                : iris_d_widen_row_##name(                                     \
                      row, (const c_type *)(void *)IRIS_D_AT(row, 0), sums[0]);\
        for (uint32_t k = row->before == NULL; k < row->count; k++) {          \
            iris_d_merge_row_##name(                                           \
                row->op, sums[k & 1], before,                                  \
                iris_d_widen_row_##name(                                       \
                    row, (const c_type *)(void *)IRIS_D_AT(row, k), next),     \
                row->n);                                                       \
            before = sums[k & 1];                                              \
        }                                                                      \
        if (row->sums != NULL) {                                               \
            iris_d_copy_bytes(row->sums, before, row->n * sizeof *before);     \
            return;                                                            \
        }                                                                      \
        iris_d_scale_row_##name(row, sums[(row->count - 1) & 1]);              \
        iris_d_narrow_row_##name(row, (c_type *)(void *)to,                    \
                                 sums[(row->count - 1) & 1]);                  \
    }                                                                          \
    IRIS_D_WIDER(name)
#if IRIS_ON_X86
#define IRIS_D_WIDER(name)                                                     \
    IRIS_D_AVX2 void iris_d_row_avx2_##name(const iris_d_ccl_row_t *row,       \
                                            char *to)                          \
    {                                                                          \
        iris_d_ccl_row_t wide = *row;                                          \
        wide.avx2 = 1;                                                         \
        iris_d_row_##name(&wide, to);                                          \
    }
#else
#define IRIS_D_WIDER(name)
#endif
IRIS_D_REDUCED_TYPES(IRIS_D_ROW, )
#undef IRIS_D_WIDER
#undef IRIS_D_ROW
#undef IRIS_D_AT

/* iris_d_row_f32() for a row of any kind, of this number of bytes. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    case IRIS_D_KIND_##name:                                                   \
        row.n = bytes / sizeof(c_type);                                        \
        arg##name(&row, to);                                                   \
        break;
IRIS_DEVICE void iris_d_ccl_reduce_row(enum iris_d_kind kind,
                                       iris_d_ccl_row_t row, size_t bytes,
                                       char *to)
{
#if IRIS_ON_X86
    if (iris_d_has_avx2()) {
        switch (kind) {
            IRIS_D_REDUCED_TYPES(IRIS_D_ROW, iris_d_row_avx2_)
        default:
            break;
        }
        return;
    }
#endif
    row.avx2 = 0;
    switch (kind) {
        IRIS_D_REDUCED_TYPES(IRIS_D_ROW, iris_d_row_)
    default:
        break;
    }
}
#undef IRIS_D_ROW
/* clang-format on */
#endif

#endif /* IRIS_DEVICE_KERNELS_CCL_ROWS_H */
