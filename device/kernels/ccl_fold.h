/* SPDX-License-Identifier: MIT
 *
 * The arithmetic of reductions: blocks of elements, combined one member after
 * the other in the group's order, with the same bits on every target.
 */
#ifndef IRIS_DEVICE_KERNELS_CCL_FOLD_H
#define IRIS_DEVICE_KERNELS_CCL_FOLD_H

#include <iris/device/core/float8.h>
#include <iris/device/core/value.h>
#include <iris/device/kernels/ccl_args.h>
#include <iris/device/core/atomic.h>

/* The kind as which kernels reduce a type, and the number of such values in an
 * element; 0: the type cannot be reduced. */
IRIS_HOST_DEVICE int iris_d_reduced_as(iris_dtype_t dtype, iris_reduce_op_t op,
                                       int *kind_p)
{
    int bitwise = op == IRIS_REDUCE_BAND || op == IRIS_REDUCE_BOR ||
                  op == IRIS_REDUCE_BXOR;

    int adds = op == IRIS_REDUCE_SUM || op == IRIS_REDUCE_AVG;

    if ((unsigned)op > IRIS_REDUCE_AVG) {
        return 0;
    }
    switch (dtype) {
#define IRIS_D_CASE(name, NAME, is_integer) \
    case IRIS_DTYPE_##NAME:                 \
        *kind_p = IRIS_D_KIND_##name;       \
        return (is_integer) ? op != IRIS_REDUCE_AVG : !bitwise;
        IRIS_D_CASE(i8, I8, 1)
        IRIS_D_CASE(i16, I16, 1)
        IRIS_D_CASE(i32, I32, 1)
        IRIS_D_CASE(i64, I64, 1)
        IRIS_D_CASE(u8, U8, 1)
        IRIS_D_CASE(u16, U16, 1)
        IRIS_D_CASE(u32, U32, 1)
        IRIS_D_CASE(u64, U64, 1)
        IRIS_D_CASE(f16, F16, 0)
        IRIS_D_CASE(bf16, BF16, 0)
        IRIS_D_CASE(f32, F32, 0)
        IRIS_D_CASE(f64, F64, 0)
        IRIS_D_CASE(f8e4m3, F8E4M3, 0)
        IRIS_D_CASE(f8e5m2, F8E5M2, 0)
#undef IRIS_D_CASE
    case IRIS_DTYPE_BOOL:
        *kind_p = IRIS_D_KIND_u8;
        return bitwise;
    case IRIS_DTYPE_COMPLEX64:
        *kind_p = IRIS_D_KIND_f32;
        return adds ? 2 : 0;
    case IRIS_DTYPE_COMPLEX128:
        *kind_p = IRIS_D_KIND_f64;
        return adds ? 2 : 0;
    default:
        return 0;
    }
}

/* Bytes that one lane combines at a time: the widest access of a GPU. */
#define IRIS_CCL_BLOCK_BYTES IRIS_CCL_DEVICE_BLOCK

/* clang-format off */
/* The type of sums for each element type. Sums of 16-bit floats are floats, so
 * that they are rounded once, at the end. Integers wrap around. */
#define IRIS_D_SUM_i8 int8_t
#define IRIS_D_SUM_u8 uint8_t
#define IRIS_D_SUM_i16 int16_t
#define IRIS_D_SUM_u16 uint16_t
#define IRIS_D_SUM_i32 int32_t
#define IRIS_D_SUM_u32 uint32_t
#define IRIS_D_SUM_i64 int64_t
#define IRIS_D_SUM_u64 uint64_t
#define IRIS_D_SUM_f16 float
#define IRIS_D_SUM_bf16 float
#define IRIS_D_SUM_f32 float
#define IRIS_D_SUM_f64 double
#define IRIS_D_SUM_f8e4m3 float
#define IRIS_D_SUM_f8e5m2 float

/* A sum times the call's factor. Only floating-point types have one. */
#define IRIS_D_SCALE_i8(sum, scale) (sum)
#define IRIS_D_SCALE_u8(sum, scale) (sum)
#define IRIS_D_SCALE_i16(sum, scale) (sum)
#define IRIS_D_SCALE_u16(sum, scale) (sum)
#define IRIS_D_SCALE_i32(sum, scale) (sum)
#define IRIS_D_SCALE_u32(sum, scale) (sum)
#define IRIS_D_SCALE_i64(sum, scale) (sum)
#define IRIS_D_SCALE_u64(sum, scale) (sum)
#define IRIS_D_SCALE_f16(sum, scale) ((sum) * (scale).f32)
#define IRIS_D_SCALE_bf16(sum, scale) ((sum) * (scale).f32)
#define IRIS_D_SCALE_f32(sum, scale) ((sum) * (scale).f32)
#define IRIS_D_SCALE_f64(sum, scale) ((sum) * (scale).f64)
#define IRIS_D_SCALE_f8e4m3(sum, scale) ((sum) * (scale).f32)
#define IRIS_D_SCALE_f8e5m2(sum, scale) ((sum) * (scale).f32)

/* The types that collectives reduce. */
#define IRIS_D_REDUCED_TYPES(X, arg)                                           \
    IRIS_TYPES(X, arg)                                                         \
    IRIS_FLOAT8_TYPES(X, arg)

/* Elements of an 8-bit float type that are combined at a time: those of a
 * packet. The sums of a whole block would take more registers than those of any
 * other type: too many for AMD GPUs in the kernels that read the members'
 * buffers. These kernels do not take the types on GPUs. */
#define IRIS_D_FLOAT8_BLOCK 8

/* A block as each type sees it, and its sums. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    c_type name[IRIS_CCL_BLOCK_BYTES / sizeof(c_type)];
typedef union iris_d_block {
    uint32_t words[IRIS_CCL_BLOCK_BYTES / 4];
    IRIS_D_REDUCED_TYPES(IRIS_D_ROW, )
} iris_d_block_t;
#undef IRIS_D_ROW
#define IRIS_D_ROW(name, c_type, arg) IRIS_D_SUM_##name name[arg / sizeof(c_type)];
typedef union iris_d_sums {
    IRIS_TYPES(IRIS_D_ROW, IRIS_CCL_BLOCK_BYTES)
    IRIS_FLOAT8_TYPES(IRIS_D_ROW, IRIS_D_FLOAT8_BLOCK)
} iris_d_sums_t;
#undef IRIS_D_ROW

/* For i32: int32_t iris_d_merge_i32(iris_reduce_op_t op, int32_t a, int32_t b).
 * `a` comes from the earlier members. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_d_merge_##name(iris_reduce_op_t op, c_type a,      \
                                           c_type b)                           \
    {                                                                          \
        return op == IRIS_REDUCE_SUM       ? (c_type)((uint64_t)a + (uint64_t)b) \
               : op == IRIS_REDUCE_PRODUCT ? (c_type)((uint64_t)a * (uint64_t)b) \
               : op == IRIS_REDUCE_MIN     ? (b < a ? b : a)                   \
               : op == IRIS_REDUCE_MAX     ? (a < b ? b : a)                   \
               : op == IRIS_REDUCE_BAND    ? (c_type)(a & b)                   \
               : op == IRIS_REDUCE_BOR     ? (c_type)(a | b)                   \
                                           : (c_type)(a ^ b);                  \
    }
IRIS_INTEGER_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

/* For f32: the minimum and maximum of a NaN and a number are the number. If
 * both are zeros, the earlier member's zero is the result. */
#define IRIS_D_ROW(name, c_type)                                               \
    IRIS_DEVICE c_type iris_d_merge_##name(iris_reduce_op_t op, c_type a,      \
                                           c_type b)                           \
    {                                                                          \
        return op == IRIS_REDUCE_SUM       ? a + b                             \
               : op == IRIS_REDUCE_PRODUCT ? a * b                             \
               : op == IRIS_REDUCE_MIN     ? (b < a || a != a ? b : a)         \
                                           : (a < b || a != a ? b : a);        \
    }
IRIS_D_ROW(f32, float)
IRIS_D_ROW(f64, double)
#undef IRIS_D_ROW
#define iris_d_merge_f16 iris_d_merge_f32
#define iris_d_merge_bf16 iris_d_merge_f32
#define iris_d_merge_f8e4m3 iris_d_merge_f32
#define iris_d_merge_f8e5m2 iris_d_merge_f32

/* Converts an element to its sum's type, and back: for f16 iris_d_widen_f16()
 * and iris_d_narrow_f16(). Processors differ in the NaN that they make; the
 * result is always the same one. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_d_widen_##name(c_type value) { return value; }
IRIS_INTEGER_TYPES(IRIS_D_ROW, )
IRIS_D_ROW(f32, float, )
IRIS_D_ROW(f64, double, )
#undef IRIS_D_ROW
#define iris_d_widen_f16 iris_f16_to_f32
#define iris_d_widen_bf16 iris_bf16_to_f32
#define iris_d_widen_f8e4m3 iris_f8e4m3_to_f32
#define iris_d_widen_f8e5m2 iris_f8e5m2_to_f32

#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE c_type iris_d_narrow_##name(c_type value) { return value; }
IRIS_INTEGER_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW
IRIS_DEVICE float iris_d_narrow_f32(float value)
{
    return value != value ? iris_d_value_f32(0x7fc00000u) : value;
}
IRIS_DEVICE double iris_d_narrow_f64(double value)
{
    return value != value ? iris_d_value_f64((uint64_t)0x7ff80000u << 32)
                          : value;
}
IRIS_DEVICE iris_f16_t iris_d_narrow_f16(float value)
{
    return iris_f16_from_f32(iris_d_narrow_f32(value));
}
IRIS_DEVICE iris_bf16_t iris_d_narrow_bf16(float value)
{
    return iris_bf16_from_f32(iris_d_narrow_f32(value));
}
IRIS_DEVICE iris_f8e4m3_t iris_d_narrow_f8e4m3(float value)
{
    iris_f8e4m3_t result = iris_f8e4m3_from_f32(value);

    /* A number that is too large for the type is a NaN, too. */
    result.bits = (result.bits & 0x7fu) == 0x7fu ? 0x7fu : result.bits;
    return result;
}
IRIS_DEVICE iris_f8e5m2_t iris_d_narrow_f8e5m2(float value)
{
    return iris_f8e5m2_from_f32(iris_d_narrow_f32(value));
}

/* For f32 and n elements: iris_d_begin_f32() converts them to sums,
 * iris_d_combine_f32() combines sums with them, iris_d_finish_f32() scales sums
 * and converts them to elements. n and op are constants when the compiler
 * optimises these loops. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_d_begin_##name(IRIS_D_SUM_##name *sums,              \
                                         const c_type *from, size_t n)         \
    {                                                                          \
        IRIS_D_UNROLL                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            sums[i] = iris_d_widen_##name(from[i]);                            \
        }                                                                      \
    }                                                                          \
    IRIS_DEVICE void iris_d_merge_all_##name(                                  \
        iris_reduce_op_t op, IRIS_D_SUM_##name *sums, const c_type *from,      \
        size_t n)                                                              \
    {                                                                          \
        IRIS_D_UNROLL                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            sums[i] =                                                          \
                iris_d_merge_##name(op, sums[i], iris_d_widen_##name(from[i])); \
        }                                                                      \
    }                                                                          \
    IRIS_DEVICE void iris_d_finish_##name(                                     \
        c_type *to, const IRIS_D_SUM_##name *sums, struct iris_ccl_scale scale, \
        size_t n)                                                              \
    {                                                                          \
        (void)scale;                                                           \
        IRIS_D_UNROLL                                                          \
        for (size_t i = 0; i < n; i++) {                                       \
            to[i] = iris_d_narrow_##name(IRIS_D_SCALE_##name(sums[i], scale)); \
        }                                                                      \
    }
IRIS_D_REDUCED_TYPES(IRIS_D_ROW, )
#undef IRIS_D_ROW

#define IRIS_D_CASE(name, op)                                                  \
    case op:                                                                   \
        iris_d_merge_all_##name(op, sums, from, n);                            \
        break;
#define IRIS_D_ROW(name, c_type, arg)                                          \
    IRIS_DEVICE void iris_d_combine_##name(                                    \
        iris_reduce_op_t op, IRIS_D_SUM_##name *sums, const c_type *from,      \
        size_t n)                                                              \
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
IRIS_FLOAT_TYPES(IRIS_D_ROW, IRIS_D_NO_MORE)
IRIS_FLOAT8_TYPES(IRIS_D_ROW, IRIS_D_NO_MORE)
#undef IRIS_D_NO_MORE
#undef IRIS_D_BITWISE
#undef IRIS_D_ROW
#undef IRIS_D_CASE

/* These three functions for a block of any kind, or for its first `bytes`, a
 * constant. */
#define IRIS_D_ROW(name, c_type, arg)                                          \
    case IRIS_D_KIND_##name:                                                   \
        arg(name, bytes / sizeof(c_type));                                     \
        break;
#define IRIS_D_ROW8(name, c_type, arg)                                         \
    case IRIS_D_KIND_##name:                                                   \
        if (bytes <= IRIS_D_FLOAT8_BLOCK) {                                    \
            arg(name, IRIS_D_FLOAT8_BLOCK);                                    \
        }                                                                      \
        break;
#define IRIS_D_BEGIN(name, n) iris_d_begin_##name(sums->name, from->name, n)
#define IRIS_D_COMBINE(name, n)                                                \
    iris_d_combine_##name(op, sums->name, from->name, n)
#define IRIS_D_FINISH(name, n)                                                 \
    iris_d_finish_##name(to->name, sums->name, scale, n)
IRIS_DEVICE void iris_d_fold_begin(enum iris_d_kind kind, iris_d_sums_t *sums,
                                   const iris_d_block_t *from, size_t bytes)
{
    switch (kind) {
        IRIS_TYPES(IRIS_D_ROW, IRIS_D_BEGIN)
        IRIS_FLOAT8_TYPES(IRIS_D_ROW8, IRIS_D_BEGIN)
    default:
        break;
    }
}

IRIS_DEVICE void iris_d_fold(enum iris_d_kind kind, iris_reduce_op_t op,
                             iris_d_sums_t *sums, const iris_d_block_t *from,
                             size_t bytes)
{
    switch (kind) {
        IRIS_TYPES(IRIS_D_ROW, IRIS_D_COMBINE)
        IRIS_FLOAT8_TYPES(IRIS_D_ROW8, IRIS_D_COMBINE)
    default:
        break;
    }
}

IRIS_DEVICE void iris_d_fold_finish(enum iris_d_kind kind, iris_d_block_t *to,
                                    const iris_d_sums_t *sums,
                                    struct iris_ccl_scale scale, size_t bytes)
{
    switch (kind) {
        IRIS_TYPES(IRIS_D_ROW, IRIS_D_FINISH)
        IRIS_FLOAT8_TYPES(IRIS_D_ROW8, IRIS_D_FINISH)
    default:
        break;
    }
}
#undef IRIS_D_FINISH
#undef IRIS_D_COMBINE
#undef IRIS_D_BEGIN
#undef IRIS_D_ROW8
#undef IRIS_D_ROW
/* clang-format on */

/* The reductions that have kernels of their own: X(name, kind, op). */
#define IRIS_CCL_FREQUENT_ROWS(X)                  \
    X(f32_sum, IRIS_D_KIND_f32, IRIS_REDUCE_SUM)   \
    X(f32_max, IRIS_D_KIND_f32, IRIS_REDUCE_MAX)   \
    X(bf16_sum, IRIS_D_KIND_bf16, IRIS_REDUCE_SUM) \
    X(bf16_max, IRIS_D_KIND_bf16, IRIS_REDUCE_MAX) \
    X(f16_sum, IRIS_D_KIND_f16, IRIS_REDUCE_SUM)   \
    X(f16_max, IRIS_D_KIND_f16, IRIS_REDUCE_MAX)   \
    X(i32_sum, IRIS_D_KIND_i32, IRIS_REDUCE_SUM)   \
    X(i32_max, IRIS_D_KIND_i32, IRIS_REDUCE_MAX)

#endif /* IRIS_DEVICE_KERNELS_CCL_FOLD_H */
